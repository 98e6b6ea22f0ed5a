#include "files/netcdf_output.h"

#include <netcdf.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "files/full_disk.h"
#include "files/hyperslab.h"
#include "files/io_lock.h"

namespace jigsaw::inline files {

namespace {

nc_type netcdf_type(NetcdfOutput::Type type) {
  switch (type) {
    case NetcdfOutput::Type::kDouble:
      return NC_DOUBLE;
    case NetcdfOutput::Type::kFloat:
      return NC_FLOAT;
    case NetcdfOutput::Type::kInt:
      return NC_INT;
    case NetcdfOutput::Type::kShort:
      return NC_SHORT;
    case NetcdfOutput::Type::kChar:
      return NC_CHAR;
    case NetcdfOutput::Type::kByte:
      return NC_UBYTE;
  }
  fail("unknown type of a variable");
}

/// Level of deflate: higher ones take several times as long for a few percent.
constexpr int kNetcdfDeflateLevel = 1;
/// Slots of the table of cached chunks, a prime; two chunks in one slot displace each other.
constexpr std::size_t kChunkSlots = 10007;

}  // namespace

const int NetcdfOutput::kFile = NC_GLOBAL;
const float NetcdfOutput::kFill = NC_FILL_FLOAT;

NetcdfOutput::NetcdfOutput(std::string path, Format format) : path_(std::move(path)) {
  const auto lock = lock_io();
  int file = -1;
  check(nc_create(path_.c_str(), NC_CLOBBER | (format == Format::kNetcdf4 ? NC_NETCDF4 : NC_64BIT_OFFSET),
                  &file));
  file_ = file;
}

NetcdfOutput::~NetcdfOutput() {
  const auto lock = lock_io();
  if (file_ >= 0) nc_close(file_);
}

std::string NetcdfOutput::free_name(std::string name) const {
  const auto lock = lock_io();
  std::ranges::replace_if(
      name, [](char c) { return c == '/' || c == '*'; }, '_');
  for (int variable = 0; nc_inq_varid(file_, name.c_str(), &variable) == NC_NOERR;) name += '_';
  return name;
}

int NetcdfOutput::add_dimension(const char* name, std::size_t extent) {
  const auto lock = lock_io();
  int dimension = 0;
  check(nc_def_dim(file_, name, extent, &dimension));
  return dimension;
}

int NetcdfOutput::add_growing_dimension(const char* name) {
  return add_dimension(name, NC_UNLIMITED);
}

int NetcdfOutput::add_variable(const char* name, Type type, const std::vector<int>& dimensions) {
  const auto lock = lock_io();
  int variable = 0;
  check(nc_def_var(file_, name, netcdf_type(type), static_cast<int>(dimensions.size()), dimensions.data(),
                   &variable));
  return variable;
}

void NetcdfOutput::add_text(int variable, const char* name, const std::string& value) {
  const auto lock = lock_io();
  check(nc_put_att_text(file_, variable, name, value.size(), value.c_str()));
}

void NetcdfOutput::add_number(int variable, const char* name, double value) {
  const auto lock = lock_io();
  check(nc_put_att_double(file_, variable, name, NC_DOUBLE, 1, &value));
}

void NetcdfOutput::add_number(int variable, const char* name, float value) {
  const auto lock = lock_io();
  check(nc_put_att_float(file_, variable, name, NC_FLOAT, 1, &value));
}

void NetcdfOutput::add_number(int variable, const char* name, std::int16_t value) {
  const auto lock = lock_io();
  check(nc_put_att_short(file_, variable, name, NC_SHORT, 1, &value));
}

void NetcdfOutput::add_numbers(int variable, const char* name, const std::vector<double>& values) {
  const auto lock = lock_io();
  check(nc_put_att_double(file_, variable, name, NC_DOUBLE, values.size(), values.data()));
}

void NetcdfOutput::add_numbers(int variable, const char* name, const std::vector<int>& values) {
  const auto lock = lock_io();
  check(nc_put_att_int(file_, variable, name, NC_INT, values.size(), values.data()));
}

void NetcdfOutput::add_chunks(int variable, const std::vector<std::size_t>& extents,
                              std::size_t cache_bytes) {
  const auto lock = lock_io();
  check(nc_def_var_chunking(file_, variable, NC_CHUNKED, extents.data()));
  check(nc_def_var_deflate(file_, variable, 1, 1, kNetcdfDeflateLevel));
  // Chunks that are whole give way first.
  check(nc_set_var_chunk_cache(file_, variable, cache_bytes, kChunkSlots, 1.0F));
}

void NetcdfOutput::end_definitions() {
  const auto lock = lock_io();
  check(nc_enddef(file_));
}

void NetcdfOutput::write(int variable, const std::vector<double>& values) {
  const auto lock = lock_io();
  check(nc_put_var_double(file_, variable, values.data()));
}

void NetcdfOutput::write(int variable, const std::vector<float>& values) {
  const auto lock = lock_io();
  check(nc_put_var_float(file_, variable, values.data()));
}

void NetcdfOutput::write(int variable, const std::vector<int>& values) {
  const auto lock = lock_io();
  check(nc_put_var_int(file_, variable, values.data()));
}

void NetcdfOutput::write(int variable, const std::vector<std::int16_t>& values) {
  const auto lock = lock_io();
  check(nc_put_var_short(file_, variable, values.data()));
}

void NetcdfOutput::write(int variable, const std::vector<std::string>& texts) {
  const auto lock = lock_io();
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::array<std::size_t, 2> start = {i, 0}, extent = {1, texts[i].size()};
    check(nc_put_vara_text(file_, variable, start.data(), extent.data(), texts[i].c_str()));
  }
}

void NetcdfOutput::write(int variable, const Box& box, std::span<const double> values) {
  require(std::ssize(values) == box.extent.count(), "the values do not fill the box");
  const Slab slab(box);
  const auto lock = lock_io();
  check(nc_put_vara_double(file_, variable, slab.start.data(), slab.extent.data(), values.data()));
}

void NetcdfOutput::write(int variable, const Box& box, std::span<const float> values) {
  require(std::ssize(values) == box.extent.count(), "the values do not fill the box");
  const Slab slab(box);
  const auto lock = lock_io();
  check(nc_put_vara_float(file_, variable, slab.start.data(), slab.extent.data(), values.data()));
}

void NetcdfOutput::write(int variable, const Box& box, std::span<const int> values) {
  require(std::ssize(values) == box.extent.count(), "the values do not fill the box");
  const Slab slab(box);
  const auto lock = lock_io();
  check(nc_put_vara_int(file_, variable, slab.start.data(), slab.extent.data(), values.data()));
}

void NetcdfOutput::close() {
  const auto lock = lock_io();
  check(nc_close(std::exchange(file_, -1)));
}

void NetcdfOutput::check(int status) const {
  if (status != NC_NOERR) refuse_unwritten(path_, nc_strerror(status));
}

}  // namespace jigsaw::inline files
