#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "files/variable_file.h"

namespace jigsaw::inline files {

/// A NetCDF file (classic, 64-bit offset, CDF-5 or NetCDF-4): the variables of all its groups and what they
/// hold. Names of variables and dimensions have those of their groups before them, "surface/t2m".
class NetcdfFile : public VariableFile {
 public:
  /// Opens the file and reads its header. @throws DataError
  explicit NetcdfFile(std::string path, External external = External::kRefused);
  ~NetcdfFile() override;

  void close() override;
  bool is_open() const override { return id_ >= 0; }

 protected:
  void read_stored(const FileVariable& variable, const Box& box, std::span<double> out) override;
  std::vector<std::string> read_stored_texts(const FileVariable& variable) override;

 private:
  /// A group: its number while the file is open, its name as it stands before those of variables, and the
  /// dimensions that it has and inherits, by their numbers.
  struct Group {
    int id = 0, depth = 0;
    std::string prefix;
    std::map<int, std::string> dimensions;
  };

  void open();
  void read_group(Group group);
  FileVariable read_variable(const Group& group, int id);
  void read_attribute(int group, FileVariable& variable, const std::string& attribute);
  /// The number of the group that a variable is in.
  int group_of(const FileVariable& variable) const;
  void check(int status, const std::string& what) const;

  int id_ = -1;
};

}  // namespace jigsaw::inline files
