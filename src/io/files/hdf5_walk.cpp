#include "files/hdf5_walk.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/printable.h"
#include "base/text.h"
#include "files/io_lock.h"

namespace jigsaw::inline files {

namespace {

constexpr std::size_t kLongestName = 1024;

bool is_regular_or_absent(const std::filesystem::path& path) {
  std::error_code ignored;
  const auto kind = std::filesystem::status(path, ignored).type();
  return kind == std::filesystem::file_type::regular || kind == std::filesystem::file_type::not_found;
}

/// Called by HDF5 before it opens the file that an external link names.
herr_t refuse_link(const char*, const char*, const char*, const char*, unsigned*, hid_t, void*) {
  return -1;
}
herr_t follow_to_regular_file(const char* parent, const char*, const char* child, const char*, unsigned*,
                              hid_t, void*) {
  try {
    return all_regular(parent, {child}) ? 0 : -1;
  } catch (const std::exception&) {
    return -1;  // no exception may pass through HDF5
  }
}

/// The same for an object under all its names, and no other's; "" when there is none.
std::string key_of(hid_t object) {
#if H5_VERSION_GE(1, 12, 0)
  H5O_info2_t info;
  if (H5Oget_info3(object, &info, H5O_INFO_BASIC) < 0) return "";
  return concat(info.fileno, " ",
                std::string_view(reinterpret_cast<const char*>(&info.token), sizeof info.token));
#else
  H5O_info_t info;
  if (H5Oget_info(object, &info) < 0) return "";
  return concat(info.fileno, " ", info.addr);
#endif
}

class Walk {
 public:
  Walk(const std::string& path, External external, const Hdf5Visitor& visitor)
      : path_(path), external_(external), visitor_(visitor), access_(H5Pcreate(H5P_LINK_ACCESS), H5Pclose) {
    guard_links(access_.get(), external);
  }

  void visit_group(hid_t group, const std::string& prefix, int depth) {
    const std::string key = key_of(group);
    if (key.empty()) return;
    if (!seen_.insert(key).second) {
      if (visitor_.known_group) visitor_.known_group(prefix);
      return;
    }
    if (depth > kDeepestGroup) refuse_deep_group(path_, prefix.substr(0, prefix.size() - 1));
    H5G_info_t info;
    if (H5Gget_info(group, &info) < 0) return;
    for (hsize_t i = 0; i < info.nlinks; ++i) {
      std::array<char, kLongestName> name{};
      const ssize_t length = H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, name.data(),
                                                name.size(), H5P_DEFAULT);
      if (length <= 0 || static_cast<std::size_t>(length) >= name.size()) continue;
      visit_link(group, name.data(), prefix, depth);
    }
  }

 private:
  void visit_link(hid_t group, const char* name, const std::string& prefix, int depth) {
    H5L_info_t link;
    if (H5Lget_info(group, name, &link, H5P_DEFAULT) < 0) return;
    if (link.type == H5L_TYPE_EXTERNAL && external_ == External::kRefused) {
      if (visitor_.other_file) visitor_.other_file(prefix + name, target_of(group, name, link));
      return;
    }
    const Hdf5Id object(H5Oopen(group, name, access_.get()), H5Oclose);
    if (!object.valid()) {
      if (link.type == H5L_TYPE_HARD && visitor_.unreadable) visitor_.unreadable(prefix + name);
      return;  // a link that leads nowhere
    }
    const H5I_type_t kind = H5Iget_type(object.get());
    if (kind == H5I_DATASET && visitor_.data_set) visitor_.data_set(object.get(), prefix + name);
    if (kind == H5I_GROUP) visit_group(object.get(), prefix + name + "/", depth + 1);
  }

  static std::string target_of(hid_t group, const char* name, const H5L_info_t& link) {
    std::vector<char> value(std::min<std::size_t>(link.u.val_size, 1 << 16));
    const char* file = nullptr;
    const char* object = nullptr;
    if (H5Lget_val(group, name, value.data(), value.size(), H5P_DEFAULT) < 0 ||
        H5Lunpack_elink_val(value.data(), value.size(), nullptr, &file, &object) < 0 || file == nullptr) {
      return "unknown";
    }
    return file;
  }

  const std::string& path_;
  External external_;
  const Hdf5Visitor& visitor_;
  Hdf5Id access_;
  std::set<std::string> seen_;  ///< keys of groups
};

/// A name of a source of a virtual data set, by H5Pget_virtual_filename or H5Pget_virtual_dsetname.
std::string name_of_source(ssize_t (*get)(hid_t, size_t, char*, size_t), hid_t creation, std::size_t number) {
  const ssize_t length = get(creation, number, nullptr, 0);
  if (length <= 0) return "";
  std::string name(static_cast<std::size_t>(length) + 1, '\0');
  get(creation, number, name.data(), name.size());
  name.pop_back();
  return name;
}

/// The file of a source; ".": the data set's own.
std::string virtual_source(hid_t creation, std::size_t number) {
  const std::string name = name_of_source(H5Pget_virtual_filename, creation, number);
  return name.empty() ? "." : name;
}

/// Whether a mapping of a virtual data set has no end.
bool is_unlimited(hid_t creation, std::size_t number) {
  const Hdf5Id space(H5Pget_virtual_vspace(creation, number), H5Sclose);
  if (!space.valid() || H5Sget_select_type(space.get()) != H5S_SEL_HYPERSLABS) return false;
  if (H5Sis_regular_hyperslab(space.get()) <= 0) return false;
  std::array<hsize_t, H5S_MAX_RANK> start{}, stride{}, count{}, block{};
  if (H5Sget_regular_hyperslab(space.get(), start.data(), stride.data(), count.data(), block.data()) < 0)
    return true;
  const auto endless = [](hsize_t n) { return n == H5S_UNLIMITED; };
  return std::ranges::any_of(count, endless) || std::ranges::any_of(block, endless);
}

}  // namespace

void walk_hdf5(hid_t file, const std::string& path, External external, const Hdf5Visitor& visitor) {
  Walk(path, external, visitor).visit_group(file, "", 0);
}

OtherFiles other_files_of(hid_t data_set) {
  const Hdf5Id creation(H5Dget_create_plist(data_set), H5Pclose);
  if (!creation.valid()) return {};
  std::set<std::string> names;
  OtherFiles others;
  const int external = H5Pget_external_count(creation.get());
  for (int i = 0; i < external; ++i) {
    std::array<char, kLongestName> name{};
    off_t offset = 0;
    hsize_t bytes = 0;
    H5Pget_external(creation.get(), static_cast<unsigned>(i), name.size() - 1, name.data(), &offset, &bytes);
    names.insert(name.data());
  }
  std::size_t sources = 0;
  if (H5Pget_layout(creation.get()) == H5D_VIRTUAL) H5Pget_virtual_count(creation.get(), &sources);
  for (std::size_t i = 0; i < sources; ++i) {
    const std::string name = virtual_source(creation.get(), i);
    if (name != ".") names.insert(name);
    others.decide_extents = others.decide_extents || is_unlimited(creation.get(), i);
  }
  others.names.assign(names.begin(), names.end());
  return others;
}

namespace {

constexpr std::size_t kMostVirtual = 64;  ///< data sets of data sets

/// Whether a source of a virtual data set stands in its own file.
bool is_own_file(const std::string& source, const std::string& path) {
  if (source == ".") return true;
  const std::filesystem::path own = path;
  std::error_code absent;
  return std::filesystem::equivalent(own.parent_path() / source, own, absent) ||
         std::filesystem::equivalent(source, own, absent);
}

/// @param above  keys of the data sets that lead to this one. @param done  of those that were looked at.
bool leads_back(hid_t data_set, const std::string& path, std::vector<std::string>& above,
                std::set<std::string>& done) {
  const Hdf5Id creation(H5Dget_create_plist(data_set), H5Pclose);
  if (!creation.valid() || H5Pget_layout(creation.get()) != H5D_VIRTUAL) return false;
  const std::string key = key_of(data_set);
  if (std::ranges::find(above, key) != above.end() || above.size() > kMostVirtual) return true;
  if (!done.insert(key).second) return false;
  above.push_back(key);
  const Hdf5Id access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose), file(H5Iget_file_id(data_set), H5Fclose);
  guard_links(access.get(), External::kRefused);
  std::size_t sources = 0;
  H5Pget_virtual_count(creation.get(), &sources);
  std::map<std::string, bool> own;  // by the name of its file
  std::set<std::string> names;
  for (std::size_t i = 0; i < sources; ++i) {
    const std::string source = virtual_source(creation.get(), i);
    const auto [known, anew] = own.emplace(source, false);
    if (anew) known->second = is_own_file(source, path);
    if (known->second) names.insert(name_of_source(H5Pget_virtual_dsetname, creation.get(), i));
  }
  for (const std::string& name : names) {
    const Hdf5Id next(H5Dopen2(file.get(), name.c_str(), access.get()), H5Dclose);
    if (next.valid() && leads_back(next.get(), path, above, done)) return true;
  }
  above.pop_back();
  return false;
}

}  // namespace

bool refers_to_itself(hid_t data_set, const std::string& path) {
  std::vector<std::string> above;
  std::set<std::string> done;
  return leads_back(data_set, path, above, done);
}

bool all_regular(const std::string& path, const std::vector<std::string>& names) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return std::ranges::all_of(names, [&](const std::string& name) {
    return is_regular_or_absent(folder / name) && is_regular_or_absent(name);
  });
}

void guard_links(hid_t access, External external) {
  H5Pset_elink_cb(access, external == External::kFollowed ? follow_to_regular_file : refuse_link, nullptr);
}

namespace {

/// Whether somebody has the lock that HDF5 takes for a file that it writes.
bool is_locked(const std::string& path) {
  try {
    const File file(path, O_RDONLY);
    return ::flock(file.descriptor(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  } catch (const FileError&) {
    return false;
  }
}

}  // namespace

std::string why_not_opened(const std::string& path) {
  if (is_locked(path)) return "it is being written by another program; wait until that has closed it";
  std::string otherwise = "HDF5 cannot open it";
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const auto size = static_cast<std::int64_t>(file.tellg());
  std::array<unsigned char, 64> head{};
  if (!file || size < std::ssize(head)) return otherwise;
  file.seekg(0);
  file.read(reinterpret_cast<char*>(head.data()), std::ssize(head));
  constexpr std::array<unsigned char, 8> kSignature = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
  if (!file || !std::equal(kSignature.begin(), kSignature.end(), head.begin())) return otherwise;
  // Addresses of 8 bytes: of the base, of two other places (of one from version 2 on), and of the end.
  const int version = head[8];
  if (version > 3 || head[version < 2 ? 13 : 9] != 8) return otherwise;
  constexpr int kOpenForWriting = 1;
  if (version == 3 && (head[11] & kOpenForWriting) != 0) {
    return "it is marked as being written by another program; wait until that has closed it, or, where it "
           "ended without doing so, take the mark away by h5clear -s";
  }
  const std::size_t end = version < 2 ? std::size_t{24} + (version == 1 ? 4 : 0) + 16 : std::size_t{12} + 16;
  std::uint64_t bytes = 0;
  for (std::size_t i = 8; i-- > 0;) bytes = bytes << 8 | head[end + i];
  if (bytes <= static_cast<std::uint64_t>(size)) return otherwise;
  return concat("it is truncated: ", size, " of ", bytes,
                " bytes are there; wait where it is still being written, else copy or download it again");
}

namespace {

/// Whether an object has an attribute that this HDF5 does not understand, such as those of dimension scales
/// in the form of 1.12. Attributes are asked for by name, which does not make a list of all.
bool has_unknown_attributes(hid_t object) {
  return std::ranges::any_of(std::array{"DIMENSION_LIST", "REFERENCE_LIST"}, [&](const char* name) {
    const htri_t there = H5Aexists(object, name);
    if (there <= 0) return there < 0;
    return !Hdf5Id(H5Aopen(object, name, H5P_DEFAULT), H5Aclose).valid();
  });
}

std::string written_by_a_newer_one(const char* what) {
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  return concat("HDF5 ", major, ".", minor, ".", release, " cannot read ", what,
                ", which a newer one wrote; write it for older ones (h5py: libver=\"v110\"; h5repack "
                "--high=2 of that HDF5)");
}

}  // namespace

void check_hdf5_for_netcdf(const std::string& path, External external) {
  const auto lock = lock_io();
  if (H5Fis_hdf5(path.c_str()) <= 0) return;
  const Hdf5Id file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  if (!file.valid()) throw DataError(concat("cannot read ", path, ": ", why_not_opened(path)));
  const auto refuse = [&](const std::string& name, const std::string& why) {
    throw DataError(concat(printable(name.substr(0, 200)), " in ", path, " cannot be used: ", why));
  };
  Hdf5Visitor visitor;
  visitor.data_set = [&](hid_t data_set, const std::string& name) {
    if (has_unknown_attributes(data_set)) refuse(name, written_by_a_newer_one("its attributes"));
    const OtherFiles others = other_files_of(data_set);
    if (refers_to_itself(data_set, path)) refuse(name, kRefersToItself);
    if (others.names.empty()) return;
    const std::string where = join(others.names, ", ");
    if (external == External::kRefused) refuse(name, refusal_of_other_file(where));
    if (!all_regular(path, others.names)) refuse(name, concat("not all of ", where, " are regular files"));
  };
  visitor.other_file = [&](const std::string& name, const std::string& where) {
    refuse(name, refusal_of_other_file(where));
  };
  visitor.unreadable = [&](const std::string& name) { refuse(name, written_by_a_newer_one("it")); };
  visitor.known_group = [&](const std::string& name) { refuse(name, "the group is in the file twice"); };
  walk_hdf5(file.get(), path, external, visitor);
}

}  // namespace jigsaw::inline files
