#pragma once
#include <hdf5.h>

#include <functional>
#include <string>
#include <vector>

#include "files/variable_file.h"

namespace jigsaw::inline files {

/// An HDF5 identifier, closed with the value; negative when there is none. Used under lock_io().
class Hdf5Id {
 public:
  Hdf5Id(hid_t id, herr_t (*closer)(hid_t)) : id_(id), close_(closer) {}
  Hdf5Id(const Hdf5Id&) = delete;
  Hdf5Id& operator=(const Hdf5Id&) = delete;
  ~Hdf5Id() {
    if (id_ >= 0) close_(id_);
  }
  hid_t get() const { return id_; }
  bool valid() const { return id_ >= 0; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

/// What a walk through a file finds; each may be empty.
struct Hdf5Visitor {
  /// A data set, open for the call, under each name that it has: "scans/volume".
  std::function<void(hid_t data_set, const std::string& name)> data_set;
  /// A link to another file, which is not followed.
  std::function<void(const std::string& name, const std::string& file)> other_file;
  /// A group that was visited before under another name.
  std::function<void(const std::string& name)> known_group;
  /// What stands in the file and cannot be opened.
  std::function<void(const std::string& name)> unreadable;
};

/// Visits an open file, every group once, whatever links lead to it. Under lock_io().
/// @param path  of the file, for errors. @throws DataError  for groups deeper than kDeepestGroup.
void walk_hdf5(hid_t file, const std::string& path, External external, const Hdf5Visitor& visitor);

/// The other files in which values of a data set stand: external storage, sources of a virtual data set.
struct OtherFiles {
  std::vector<std::string> names;  ///< as the file gives them
  bool decide_extents = false;     ///< the data set grows with them
};
OtherFiles other_files_of(hid_t data_set);

inline constexpr const char* kRefersToItself = "it is a virtual data set whose values stand in itself";

/// Whether values of a virtual data set stand in itself, or in others of its file that lead back to it, which
/// HDF5 would follow without end. Other files are not looked into.
bool refers_to_itself(hid_t data_set, const std::string& path);

/// Whether these files, from the folder of `path` and from the working folder, are regular ones or absent.
bool all_regular(const std::string& path, const std::vector<std::string>& names);

/// Lets links in an access list be followed within the file only, or also to other regular files.
void guard_links(hid_t access, External external);

/// Why HDF5 has not opened a file: "HDF5 cannot open it", or that somebody is writing it, by his lock on it
/// or the mark in it, or that it ends before it should, by the address of its end that it holds (HDF5 File
/// Format Specification, "Disk Format: Level 0A").
std::string why_not_opened(const std::string& path);

/// Refuses, of an HDF5 file, what NetCDF-C would follow unasked on opening it: groups that are linked twice,
/// perhaps to themselves, and, unless it may be followed, all that stands in other files; and data sets, or
/// attributes of dimension scales on them, that a newer HDF5 wrote and this one cannot read: versions
/// before 1.12 free memory that is none of theirs where they then look for all attributes of an object. Does
/// nothing for other formats.
/// @throws DataError
void check_hdf5_for_netcdf(const std::string& path, External external);

}  // namespace jigsaw::inline files
