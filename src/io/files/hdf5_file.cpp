#include "files/hdf5_file.h"

#include <hdf5.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "files/hdf5_text.h"
#include "files/hdf5_walk.h"
#include "files/io_lock.h"

namespace jigsaw::inline files {

namespace {

constexpr std::size_t kMostDataSets = 10000;
constexpr std::size_t kMostTextBytes = std::size_t{1} << 24;

bool is_number(hid_t type) {
  const H5T_class_t kind = H5Tget_class(type);
  return kind == H5T_INTEGER || kind == H5T_FLOAT || kind == H5T_ENUM;
}

std::string text_of(hid_t attribute, hid_t type, std::size_t longest) {
  if (H5Tis_variable_str(type) > 0) {
    char* text = nullptr;
    const Hdf5Id memory(H5Tcopy(H5T_C_S1), H5Tclose);
    H5Tset_size(memory.get(), H5T_VARIABLE);
    H5Tset_cset(memory.get(), H5Tget_cset(type));
    if (H5Aread(attribute, memory.get(), &text) < 0 || text == nullptr) return "";
    std::string result = std::string(text).substr(0, longest);
    H5free_memory(text);
    return result;
  }
  std::string text(H5Tget_size(type), '\0');
  if (text.size() > longest || H5Aread(attribute, type, text.data()) < 0) return "";
  return text.substr(0, text.find('\0'));
}

/// The attribute, if it is there, as a text or as numbers; false when it is of another type.
bool read_attribute(hid_t object, const std::string& name, std::size_t longest, FileVariable& variable) {
  if (H5Aexists(object, name.c_str()) <= 0) return true;
  const Hdf5Id attribute(H5Aopen(object, name.c_str(), H5P_DEFAULT), H5Aclose);
  const Hdf5Id type(H5Aget_type(attribute.get()), H5Tclose), space(H5Aget_space(attribute.get()), H5Sclose);
  const hssize_t count = space.valid() ? H5Sget_simple_extent_npoints(space.get()) : 0;
  if (!type.valid() || count < 1 || count > static_cast<hssize_t>(longest)) return false;
  if (H5Tget_class(type.get()) == H5T_STRING && count == 1) {
    variable.texts[name] = text_of(attribute.get(), type.get(), longest);
  } else if (is_number(type.get())) {
    std::vector<double> numbers(static_cast<std::size_t>(count));
    if (H5Aread(attribute.get(), H5T_NATIVE_DOUBLE, numbers.data()) < 0) return false;
    variable.numbers[name] = numbers;
    const bool is_floating = H5Tget_class(type.get()) == H5T_FLOAT;
    if (is_floating) variable.floating.insert(name);
    if (is_floating && H5Tget_size(type.get()) == sizeof(float)) variable.single.insert(name);
  } else {
    return false;
  }
  return true;
}

/// How radar data are packed by ODIM (OPERA Data Information Model for HDF5, table 16): the groups `what`
/// beside dataset1/data1/data and dataset1/data1 hold gain and offset, and the number that stands for points
/// without data. That of points without an echo, `undetect`, stays a number.
void read_odim_packing(hid_t file, External external, FileVariable& variable) {
  if (!variable.name.ends_with("/data") || variable.numbers.contains("scale_factor")) return;
  const Hdf5Id access(H5Pcreate(H5P_LINK_ACCESS), H5Pclose);
  guard_links(access.get(), external);
  std::string group = variable.name;
  for (int up = 0; up < 2; ++up) {
    const std::size_t end = group.rfind('/');
    if (end == std::string::npos) return;
    // What stands beside all data of a dataset is not of their quality fields.
    if (up > 0 && !without_groups(group).starts_with("data")) return;
    group.resize(end);
    const std::string what = concat(group, "/what");
    if (H5Lexists(file, what.c_str(), access.get()) <= 0) continue;
    const Hdf5Id opened(H5Oopen(file, what.c_str(), access.get()), H5Oclose);
    if (!opened.valid() || H5Iget_type(opened.get()) != H5I_GROUP) continue;
    FileVariable said;
    for (const auto& [name, attribute] :
         {std::pair{"gain", "scale_factor"}, std::pair{"offset", "add_offset"},
          std::pair{"nodata", "_FillValue"}}) {
      const bool known = variable.numbers.contains(attribute);
      if (known || !read_attribute(opened.get(), name, 1, said) || !said.numbers.contains(name)) continue;
      variable.numbers[attribute] = said.numbers[name];
      variable.floating.insert(attribute);
    }
  }
}

/// Whether the file says that it is one of ODIM.
bool is_odim(hid_t file) {
  FileVariable root;
  const Hdf5Id group(H5Gopen2(file, "/", H5P_DEFAULT), H5Gclose);
  constexpr std::size_t kLongest = 256;
  return group.valid() && read_attribute(group.get(), "Conventions", kLongest, root) &&
         root.text("Conventions").starts_with("ODIM_H5");
}

}  // namespace

std::string hdf5_group_text(const std::string& path, const std::string& group, const std::string& attribute) {
  constexpr std::size_t kLongest = 256;
  const auto lock = lock_io();
  const Hdf5Id file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  const Hdf5Id access(H5Pcreate(H5P_LINK_ACCESS), H5Pclose);
  guard_links(access.get(), External::kRefused);
  if (!file.valid()) return "";
  for (std::size_t end = 0; end != std::string::npos;) {
    end = group.find('/', end + 1);
    if (H5Lexists(file.get(), group.substr(0, end).c_str(), access.get()) <= 0) return "";
  }
  const Hdf5Id opened(H5Oopen(file.get(), group.c_str(), access.get()), H5Oclose);
  FileVariable found;
  if (!opened.valid() || H5Iget_type(opened.get()) != H5I_GROUP ||
      !read_attribute(opened.get(), attribute, kLongest, found))
    return "";
  return found.text(attribute);
}

Hdf5File::Hdf5File(std::string path, External external)
    : VariableFile(std::move(path)), external_(external), values_(this->path(), external, chunk_key()) {
  const auto lock = lock_io();
  const hid_t file = values_.file();
  try {
    is_odim_ = is_odim(file);
    walk_hdf5(file, this->path(), external_,
              {[this](hid_t data_set, const std::string& name) {
                 if (variables_.size() < kMostDataSets) add(data_set, name);
               },
               [this](const std::string& name, const std::string& where) {
                 FileVariable variable;
                 variable.name = name;
                 variable.refuse(refusal_of_other_file(where));
                 if (variables_.size() < kMostDataSets) variables_.push_back(std::move(variable));
               },
               {}});
  } catch (...) {
    values_.close();
    throw;
  }
}

Hdf5File::Hdf5File(const FileDescription& known, External external)
    : VariableFile(known), external_(external), values_(this->path(), external, chunk_key()) {}

Hdf5File::~Hdf5File() {
  close();
}

void Hdf5File::close() {
  const auto lock = lock_io();
  values_.close();
}

void Hdf5File::add(std::int64_t data_set, const std::string& name) {
  FileVariable variable;
  variable.name = name;
  const OtherFiles others = other_files_of(data_set);
  if (!others.names.empty()) {
    const std::string where = join(others.names, ", ");
    if (external_ == External::kRefused) variable.refuse(refusal_of_other_file(where));
    if (!all_regular(path(), others.names))
      variable.refuse(concat("not all of ", where, " are regular files"));
  }
  if (variable.fault.empty() && refers_to_itself(data_set, path())) variable.refuse(kRefersToItself);
  // To ask for the extents of a data set that grows with other files would open these.
  if (!(others.decide_extents && !variable.fault.empty())) add_description(data_set, variable);
  variables_.push_back(std::move(variable));
}

void Hdf5File::add_description(std::int64_t data_set, FileVariable& variable) {
  const Hdf5Id type(H5Dget_type(data_set), H5Tclose), space(H5Dget_space(data_set), H5Sclose);
  const int rank = space.valid() ? H5Sget_simple_extent_ndims(space.get()) : -1;
  if (!type.valid() || rank < 0)
    throw DataError(concat("cannot read the header of ", variable.name, " in ", path()));
  std::vector<hsize_t> extents(static_cast<std::size_t>(rank));
  H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr);
  variable.set_extents(std::vector<std::uint64_t>(extents.begin(), extents.end()));
  // One that cannot be read stays in the list, and says so when it is asked for.
  if (!variable.fault.empty()) return;
  if (is_number(type.get())) variable.bytes = static_cast<std::int64_t>(H5Tget_size(type.get()));
  variable.single_precision = H5Tget_class(type.get()) == H5T_FLOAT && variable.bytes == 4;
  add_storage(data_set, variable);
  for (const std::string& attribute : attributes()) {
    if (!read_attribute(data_set, attribute, kLongestAttribute, variable)) add_unknown(variable, attribute);
  }
  if (is_odim_) read_odim_packing(values_.file(), external_, variable);
}

void Hdf5File::add_storage(std::int64_t data_set, FileVariable& variable) {
  if (!variable.numeric()) return;
  const Hdf5Storage storage = storage_of(data_set, 0);
  variable.type = storage.numbers.type;
  variable.chunks = storage.chunks;
  variable.compressed = storage.compressed;
}

StoredNumbers Hdf5File::read_stored(const FileVariable& variable, const Box& box, ByteBuffer& out,
                                    std::int64_t& fetched) {
  return values_.read(variable.name, box, out, fetched);
}

std::optional<PlainNumbers> Hdf5File::plain_numbers(const FileVariable& variable) {
  return values_.plain_numbers(variable.name);
}

std::vector<std::string> Hdf5File::read_stored_texts(const FileVariable& variable) {
  const auto lock = lock_io();
  const Hdf5Id data_set(values_.open_data_set(variable.name), H5Dclose);
  const hid_t source = data_set.get();
  const Hdf5Id type(H5Dget_type(source), H5Tclose);
  const auto count = static_cast<std::size_t>(variable.shape.count());
  const std::size_t size = type.valid() ? H5Tget_size(type.get()) : 0;
  if (size == 0 || H5Tget_class(type.get()) != H5T_STRING || size * count > kMostTextBytes) return {};
  const auto check = [&](herr_t status) {
    if (status < 0) throw DataError(concat("cannot read ", variable.name, " of ", path()));
  };
  std::vector<std::string> texts;
  if (H5Tis_variable_str(type.get()) > 0) {
    std::vector<char*> stored(count, nullptr);
    check(H5Dread(source, type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, stored.data()));
    for (const char* text : stored) {
      texts.push_back(text == nullptr ? "" : std::string(text, ::strnlen(text, kLongestAttribute)));
    }
    const Hdf5Id space(H5Dget_space(source), H5Sclose);
    H5Dvlen_reclaim(type.get(), space.get(), H5P_DEFAULT, stored.data());
  } else {
    std::string stored(size * count, '\0');
    check(H5Dread(source, type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, stored.data()));
    for (std::size_t i = 0; i < count; ++i) {
      std::string text = stored.substr(i * size, size);
      text.resize(std::min(text.find('\0'), text.size()));
      text.resize(text.find_last_not_of(' ') + 1);  // Fortran pads with blanks
      texts.push_back(std::move(text));
    }
  }
  return texts;
}

}  // namespace jigsaw::inline files
