#include "files/rechunk.h"

#include <netcdf.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/disk.h"
#include "base/error.h"
#include "base/file.h"
#include "base/heartbeat.h"
#include "base/text.h"
#include "files/full_disk.h"
#include "files/hyperslab.h"
#include "files/io_lock.h"
#include "files/netcdf_file.h"

namespace jigsaw::inline files {

namespace {

constexpr std::int64_t kMostBytesAtOnce = std::int64_t{64} << 20;
constexpr std::size_t kRechunkSlots = 4001;

/// An open NetCDF file, closed with the value.
class Handle {
 public:
  explicit Handle(std::string path) : path_(std::move(path)) {}
  ~Handle() {
    const auto lock = lock_io();
    if (id >= 0) nc_close(id);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  void check(int status, const std::string& doing) const {
    if (status == NC_NOERR) return;
    if (doing == "write") refuse_unwritten(path_, nc_strerror(status));
    throw DataError(concat("cannot ", doing, " ", path_, ": ", nc_strerror(status)));
  }
  const std::string& path() const { return path_; }

  int id = -1;

 private:
  std::string path_;
};

struct Variable {
  std::string name;  ///< with its groups
  nc_type type = 0;
  int group = 0, id = 0;  ///< in the copy
  int from_group = 0, from_id = 0;
  std::vector<std::size_t> shape, chunks;  ///< chunks of the copy; empty where it has none
};

/// Copies all but the values. Under lock_io().
class HeaderCopy {
 public:
  HeaderCopy(const Rechunk& what, const Handle& from, const Handle& to) : what_(what), from_(from), to_(to) {}

  std::vector<Variable> copy() {
    copy_group(from_.id, to_.id, "", {});
    return std::move(variables_);
  }

 private:
  void read(int status) const { from_.check(status, "read"); }
  void write(int status) const { to_.check(status, "write"); }

  void copy_attributes(int from, int from_variable, int to, int to_variable, int count) {
    for (int i = 0; i < count; ++i) {
      char name[NC_MAX_NAME + 1] = {};
      read(nc_inq_attname(from, from_variable, i, name));
      write(nc_copy_att(from, from_variable, name, to, to_variable));
    }
  }

  void copy_group(int from, int to, const std::string& prefix, std::map<int, int> dimensions) {
    int types = 0, count = 0, attributes = 0;
    if (nc_inq_typeids(from, &types, nullptr) == NC_NOERR && types > 0)
      throw DataError(concat(from_.path(), " has types of its own, which are not copied"));
    read(nc_inq_dimids(from, &count, nullptr, 0));
    std::vector<int> ids(static_cast<std::size_t>(count)), unlimited(static_cast<std::size_t>(NC_MAX_DIMS));
    read(nc_inq_dimids(from, &count, ids.data(), 0));
    int endless = 0;
    read(nc_inq_unlimdims(from, &endless, unlimited.data()));
    for (const int id : ids) {
      char name[NC_MAX_NAME + 1] = {};
      std::size_t length = 0;
      read(nc_inq_dim(from, id, name, &length));
      const bool grows = std::count(unlimited.begin(), unlimited.begin() + endless, id) > 0;
      write(nc_def_dim(to, name, grows ? NC_UNLIMITED : length, &dimensions[id]));
    }
    read(nc_inq_nvars(from, &count));
    for (int id = 0; id < count; ++id) copy_variable(from, id, to, prefix, dimensions);
    read(nc_inq_natts(from, &attributes));
    copy_attributes(from, NC_GLOBAL, to, NC_GLOBAL, attributes);
    int groups = 0;
    if (nc_inq_grps(from, &groups, nullptr) != NC_NOERR || groups == 0) return;
    std::vector<int> below(static_cast<std::size_t>(groups));
    read(nc_inq_grps(from, &groups, below.data()));
    for (const int group : below) {
      char name[NC_MAX_NAME + 1] = {};
      int made = 0;
      read(nc_inq_grpname(group, name));
      write(nc_def_grp(to, name, &made));
      copy_group(group, made, concat(prefix, name, "/"), dimensions);
    }
  }

  void copy_variable(int from, int id, int to, const std::string& prefix,
                     const std::map<int, int>& dimensions) {
    Variable variable;
    char name[NC_MAX_NAME + 1] = {};
    int rank = 0, attributes = 0;
    read(nc_inq_var(from, id, name, &variable.type, &rank, nullptr, &attributes));
    std::vector<int> from_dims(static_cast<std::size_t>(rank)), to_dims;
    read(nc_inq_vardimid(from, id, from_dims.data()));
    std::size_t known = 0;
    for (const int dim : from_dims) {
      char dim_name[NC_MAX_NAME + 1] = {};
      std::size_t length = 0;
      read(nc_inq_dim(from, dim, dim_name, &length));
      to_dims.push_back(dimensions.at(dim));
      variable.shape.push_back(length);
      const auto wanted = what_.chunks.find(dim_name);
      known += wanted != what_.chunks.end() ? 1 : 0;
      const std::int64_t chunk = wanted != what_.chunks.end() ? wanted->second : 1;
      variable.chunks.push_back(
          std::clamp<std::size_t>(static_cast<std::size_t>(chunk), 1, std::max<std::size_t>(length, 1)));
    }
    if (known < 2) variable.chunks.clear();
    variable.name = prefix + name;
    variable.from_group = from;
    variable.from_id = id;
    variable.group = to;
    write(nc_def_var(to, name, variable.type, rank, to_dims.data(), &variable.id));
    if (!variable.chunks.empty()) {
      write(nc_def_var_chunking(to, variable.id, NC_CHUNKED, variable.chunks.data()));
      if (what_.deflate > 0) write(nc_def_var_deflate(to, variable.id, 1, 1, what_.deflate));
      // Slabs are written by whole chunks.
      std::size_t bytes = 0;
      read(nc_inq_type(from, variable.type, nullptr, &bytes));
      write(nc_set_var_chunk_cache(to, variable.id, static_cast<std::size_t>(2 * kMostBytesAtOnce),
                                   kRechunkSlots, 1));
    }
    copy_attributes(from, id, to, variable.id, attributes);
    variables_.push_back(std::move(variable));
  }

  const Rechunk& what_;
  const Handle& from_;
  const Handle& to_;
  std::vector<Variable> variables_;
};

/// Slabs of an array that are whole chunks of the copy (and of the source, as far as memory has room for
/// that), in row-major order.
template <typename F>
void for_each_slab(const FileVariable& source, const std::vector<std::size_t>& chunks, const F& f) {
  const Shape& shape = source.shape;
  const int rank = shape.rank();
  Shape slab = shape;
  // All of the last dims, as much as there is room for of the one before them, 1 of the first.
  std::int64_t bytes = std::max<std::int64_t>(source.bytes, 1);
  for (int d = rank - 1; d >= 0; --d) {
    const std::int64_t unit =
        chunks.empty() ? 1 : static_cast<std::int64_t>(chunks[static_cast<std::size_t>(d)]);
    const std::int64_t room = std::max<std::int64_t>(kMostBytesAtOnce / bytes / unit * unit, unit);
    slab[d] = std::clamp<std::int64_t>(room, 1, std::max<std::int64_t>(shape[d], 1));
    bytes *= slab[d];
  }
  if (shape.count() == 0) return;
  Box parts = chunks_of(Box::whole(shape), slab);
  Shape index = parts.begin;
  do {
    Box box{index, slab};
    for (int d = 0; d < rank; ++d) box.begin[d] *= slab[d];
    f(intersect(box, Box::whole(shape)));
  } while (advance(index, parts, rank));
}

void to_native(std::span<std::byte> bytes, StoredNumbers numbers) {
  const auto size = static_cast<std::size_t>(size_of(numbers.type));
  if (!numbers.swapped || size == 1) return;
  for (std::size_t i = 0; i < bytes.size(); i += size)
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(i),
                 bytes.begin() + static_cast<std::ptrdiff_t>(i + size));
}

std::span<std::byte> read_native(VariableFile& file, const FileVariable& variable, const Box& box,
                                 ByteBuffer& buffer) {
  const StoredNumbers numbers = file.read_as_stored(variable, box, buffer);
  const std::span<std::byte> bytes =
      buffer.take(static_cast<std::size_t>(box.extent.count() * size_of(numbers.type)));
  to_native(bytes, numbers);
  return bytes;
}

/// Texts and single characters, which are few. Under lock_io().
void copy_others(const Variable& variable, const Handle& from, const Handle& to) {
  std::size_t count = 1;
  for (const std::size_t extent : variable.shape) count *= extent;
  if (count == 0) return;
  if (count > (std::size_t{1} << 24)) {
    throw DataError(concat(variable.name, " in ", from.path(), " holds more texts than are copied"));
  }
  const std::vector<std::size_t> start(variable.shape.size(), 0);
  if (variable.type == NC_STRING) {
    std::vector<char*> texts(count, nullptr);
    from.check(nc_get_vara_string(variable.from_group, variable.from_id, start.data(), variable.shape.data(),
                                  texts.data()),
               "read");
    const int status = nc_put_vara_string(variable.group, variable.id, start.data(), variable.shape.data(),
                                          const_cast<const char**>(texts.data()));
    nc_free_string(count, texts.data());
    to.check(status, "write");
  } else {
    std::vector<char> letters(count);
    from.check(nc_get_vara(variable.from_group, variable.from_id, start.data(), variable.shape.data(),
                           letters.data()),
               "read");
    to.check(nc_put_vara(variable.group, variable.id, start.data(), variable.shape.data(), letters.data()),
             "write");
  }
}

void require_room(const Rechunk& what) {
  std::error_code failed;
  const auto space = std::filesystem::space(std::filesystem::absolute(what.to).parent_path(), failed);
  if (failed) return;
  const auto needed = std::filesystem::file_size(what.from, failed);
  // What is packed may take less, so only half of it is asked for.
  if (failed || space.available > needed / 2) return;
  throw DiskError(concat("cannot write ", what.to, ": ",
                         reason_of(ENOSPC, what.to, static_cast<std::int64_t>(needed / 2)), ", half of what ",
                         what.from, " has"));
}

void copy_values(const std::vector<Variable>& variables, NetcdfFile& source, const Handle& to,
                 const std::function<void(std::int64_t)>& did) {
  ByteBuffer buffer;
  for (const Variable& variable : variables) {
    const FileVariable* from = source.find(variable.name);
    if (from == nullptr || !from->numeric()) continue;
    for_each_slab(*from, variable.chunks, [&](const Box& box) {
      const std::span<std::byte> bytes = read_native(source, *from, box, buffer);
      const Slab slab(box);
      {
        const auto lock = lock_io();
        to.check(
            nc_put_vara(variable.group, variable.id, slab.start.data(), slab.extent.data(), bytes.data()),
            "write");
      }
      beat();
      if (did) did(std::ssize(bytes));
    });
  }
}

void compare(const std::vector<Variable>& variables, NetcdfFile& source, const std::string& copy,
             const std::string& name) {
  NetcdfFile written(copy);
  ByteBuffer ours, theirs;
  for (const Variable& variable : variables) {
    const FileVariable* from = source.find(variable.name);
    const FileVariable* to = written.find(variable.name);
    const auto differs = [&] {
      throw DataError(concat(variable.name, " in ", name, " is not what was written; is the disk sound?"));
    };
    if (to == nullptr || from == nullptr || !(to->shape == from->shape) || to->texts != from->texts)
      differs();
    if (!from->numeric()) continue;
    for_each_slab(*from, variable.chunks, [&](const Box& box) {
      const std::span<std::byte> wanted = read_native(source, *from, box, ours);
      const std::span<std::byte> found = read_native(written, *to, box, theirs);
      if (!std::equal(wanted.begin(), wanted.end(), found.begin(), found.end())) differs();
      beat();
    });
  }
}

/// Under the name `temporary`, and compared with what was read.
void write_copy(const Rechunk& what, NetcdfFile& source, const std::string& temporary,
                const std::function<void(std::int64_t)>& did) {
  std::vector<Variable> variables;
  {
    Handle to(what.to);
    {
      Handle from(what.from);
      const auto lock = lock_io();
      from.check(nc_open(what.from.c_str(), NC_NOWRITE, &from.id), "read");
      to.check(nc_create(temporary.c_str(), NC_NETCDF4 | NC_CLOBBER, &to.id), "write");
      variables = HeaderCopy(what, from, to).copy();
      to.check(nc_enddef(to.id), "write");
      for (const Variable& variable : variables) {
        if (variable.type == NC_STRING || variable.type == NC_CHAR) copy_others(variable, from, to);
      }
      const int id = std::exchange(from.id, -1);
      from.check(nc_close(id), "read");
    }
    copy_values(variables, source, to, did);
    const auto lock = lock_io();
    const int id = std::exchange(to.id, -1);
    to.check(nc_close(id), "write");
  }
  compare(variables, source, temporary, what.to);
}

}  // namespace

void rechunk(const Rechunk& what, const std::function<void(std::int64_t)>& did) {
  require_room(what);
  try {
    NetcdfFile source(what.from, what.external);
    source.close();
    Replacement replacement(what.to);
    write_copy(what, source, replacement.file().path(), did);
    replacement.commit();
  } catch (const FileError& error) {
    refuse_output<DataError>(error, error.what());
  }
}

}  // namespace jigsaw::inline files
