#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "array/box.h"
#include "files/variable_file.h"
#include "samples/data_options.h"
#include "samples/field.h"

namespace jigsaw::inline samples {

/// HDF5, NetCDF or NIfTI files whose data sets are images or volumes, with dims in a configured order. A
/// variable with a * in its name is many data sets, such as one in each group, which hold images of their
/// own. The images of all files have numbers from 0 on: the files in order, in each the data sets by name, in
/// each its samples. read() may be called from several threads. At most kMostOpenFiles are held open.
///
/// Every error of reading is a DataError that names data set and file.
class ImageFiles {
 public:
  static constexpr std::size_t kMostOpenFiles = 64;

  /// @param dims  of the data sets, in their order in the files.
  ImageFiles(const std::vector<std::string>& paths, const std::vector<ImageDim>& dims,
             External external = External::kRefused);

  /// The fields of a variable: itself, or one for each channel (or each of the levels asked for).
  /// @throws DataError  for a data set that is not in every file, of another rank or without a channel that
  /// is asked for, or whose images differ in number or extents from those of the variables before.
  std::vector<Field> select(const VariableOptions& variable);

  std::int64_t count() const { return std::ssize(images_); }
  /// Extents of an image in the order of fields.
  const Shape& extents(std::int64_t image) const { return images_[static_cast<std::size_t>(image)].extents; }
  const std::string& path(std::int64_t image) const;
  const std::string& units(const Field& field) const;

  /// The box [space…] of a field of an image in its physical units, NaN where it is missing: one hyperslab.
  void read(const Field& field, std::int64_t image, const Box& box, std::span<double> out);

  /// Elements read so far times their size on disk.
  std::int64_t bytes_read() const;
  /// VariableFile::bytes_fetched() of all files.
  std::int64_t bytes_fetched() const;
  /// As FileSet::undeclared().
  std::map<std::string, UndeclaredValues> undeclared() const;

 private:
  struct Image {
    int file = 0;
    std::string group;  ///< what the * of the variable's name stands for here
    std::int64_t sample = 0;
    Shape extents;
  };

  VariableFile& use(int file);
  /// The data set of a variable, in which * stands for `group`.
  const FileVariable& find(int file, const std::string& variable, const std::string& group) const;
  /// What * stands for in the data sets of a file, by name; "" alone for a variable without one.
  std::vector<std::string> groups(int file, const std::string& variable) const;
  [[noreturn]] void refuse_unknown(int file, const std::string& variable) const;
  /// The dims of a data set; without "channel" where it has one dim less.
  std::vector<ImageDim> dims_of(int file, const FileVariable& variable) const;
  std::vector<Image> images_of(const std::string& variable) const;
  std::int64_t channels_of(const std::string& variable) const;

  std::vector<ImageDim> dims_;
  std::vector<std::unique_ptr<VariableFile>> files_;
  std::vector<Image> images_;
  std::string first_variable_;
  std::deque<int> open_;  ///< least recently used first
  std::mutex mutex_;      ///< guards open_ and the handles behind it
};

}  // namespace jigsaw::inline samples
