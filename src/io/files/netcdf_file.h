#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "files/variable_file.h"

namespace jigsaw::inline files {

/// A NetCDF file (classic, 64-bit offset, CDF-5 or NetCDF-4): the variables of its root group and what they
/// hold.
class NetcdfFile : public VariableFile {
 public:
  /// Opens the file and reads its header. @throws DataError
  explicit NetcdfFile(std::string path, External external = External::kRefused);
  ~NetcdfFile() override;

  void close() override;
  bool is_open() const override { return id_ >= 0; }

 protected:
  void read_stored(const FileVariable& variable, const Box& box, std::span<double> out) override;

 private:
  void open();
  void read_header();
  FileVariable read_variable(int id);
  void read_attribute(FileVariable& variable, const std::string& attribute);
  void check(int status, const std::string& what) const;

  int id_ = -1;
};

}  // namespace jigsaw::inline files
