#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace jigsaw::inline files {

/// A NetCDF file (64-bit offset) being written: dimensions, variables and attributes first, then
/// end_definitions(), then values. Calls run under lock_io(). Every failure is a DataError that names the
/// file.
class NetcdfOutput {
 public:
  enum class Type : std::uint8_t { kFloat, kInt, kShort };
  /// In place of a variable, for attributes of the whole file.
  static const int kFile;

  /// Replaces the file.
  explicit NetcdfOutput(std::string path);
  ~NetcdfOutput();
  NetcdfOutput(const NetcdfOutput&) = delete;
  NetcdfOutput& operator=(const NetcdfOutput&) = delete;

  int add_dimension(const char* name, std::size_t extent);
  int add_variable(const char* name, Type type, const std::vector<int>& dimensions);
  void add_text(int variable, const char* name, const std::string& value);
  void add_number(int variable, const char* name, double value);
  void add_number(int variable, const char* name, std::int16_t value);
  void end_definitions();
  /// All values of a variable of that type, row-major.
  void write(int variable, const std::vector<float>& values);
  void write(int variable, const std::vector<int>& values);
  void write(int variable, const std::vector<std::int16_t>& values);
  void close();

 private:
  void check(int status) const;

  std::string path_;
  int file_ = -1;
};

}  // namespace jigsaw::inline files
