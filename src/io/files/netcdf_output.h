#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "array/box.h"

namespace jigsaw::inline files {

/// A NetCDF file being written: dimensions, variables and attributes first, then end_definitions(), then
/// values. Calls run under lock_io(). Every failure is a DataError that names the file.
class NetcdfOutput {
 public:
  enum class Format : std::uint8_t { k64BitOffset, kNetcdf4 };
  enum class Type : std::uint8_t {
    kDouble,
    kFloat,
    kInt,
    kShort,
    kChar,  ///< of texts, along a last dimension as long as the longest
    kByte   ///< unsigned, of NetCDF-4 alone
  };
  /// In place of a variable, for attributes of the whole file.
  static const int kFile;
  /// The library's own value for what is missing.
  static const float kFill;

  /// Replaces the file.
  explicit NetcdfOutput(std::string path, Format format = Format::k64BitOffset);
  ~NetcdfOutput();
  NetcdfOutput(const NetcdfOutput&) = delete;
  NetcdfOutput& operator=(const NetcdfOutput&) = delete;

  /// A name that NetCDF takes and no variable has yet: "surface_t" of a group's "surface/t", "surface_t_"
  /// where there is one of that name. The '*' of a pattern becomes '_', too.
  std::string free_name(std::string name) const;

  int add_dimension(const char* name, std::size_t extent);
  /// One that is as long as what is written along it reaches. Of NetCDF-4 a variable may have several; those
  /// that have one want add_chunks().
  int add_growing_dimension(const char* name);
  int add_variable(const char* name, Type type, const std::vector<int>& dimensions);
  void add_text(int variable, const char* name, const std::string& value);
  void add_number(int variable, const char* name, double value);
  void add_number(int variable, const char* name, float value);
  void add_number(int variable, const char* name, std::int16_t value);
  void add_numbers(int variable, const char* name, const std::vector<double>& values);
  void add_numbers(int variable, const char* name, const std::vector<int>& values);
  /// Stores a NetCDF-4 variable in deflated chunks of these extents.
  /// @param cache_bytes  of chunks that are kept until they are whole.
  void add_chunks(int variable, const std::vector<std::size_t>& extents, std::size_t cache_bytes);
  void end_definitions();
  /// All values of a variable of that type, row-major.
  void write(int variable, const std::vector<double>& values);
  void write(int variable, const std::vector<float>& values);
  void write(int variable, const std::vector<int>& values);
  void write(int variable, const std::vector<std::int16_t>& values);
  /// Texts of a variable of Type::kChar [texts, bytes].
  void write(int variable, const std::vector<std::string>& texts);
  /// The values of a box of the variable, row-major.
  void write(int variable, const Box& box, std::span<const double> values);
  void write(int variable, const Box& box, std::span<const float> values);
  void write(int variable, const Box& box, std::span<const int> values);
  void close();

 private:
  void check(int status) const;

  std::string path_;
  int file_ = -1;
};

}  // namespace jigsaw::inline files
