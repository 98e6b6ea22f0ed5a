#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "files/hdf5_values.h"
#include "files/variable_file.h"

namespace jigsaw::inline files {

/// An HDF5 file: its data sets of integers and floating point numbers, in all groups, each group once, with
/// those attributes that NetCDF has, too (scale_factor, _FillValue, units, …). What stands in other files is
/// listed, and cannot be read unless it may be followed.
class Hdf5File : public VariableFile {
 public:
  static constexpr const char* kFormat = "HDF5";

  /// Opens the file and finds its data sets. @throws DataError
  explicit Hdf5File(std::string path, External external = External::kRefused);
  Hdf5File(const FileDescription& known, External external);
  ~Hdf5File() override;

  std::string_view format() const override { return kFormat; }
  void close() override;
  bool is_open() const override { return values_.is_open(); }

 protected:
  StoredNumbers read_stored(const FileVariable& variable, const Box& box, ByteBuffer& out,
                            std::int64_t& fetched) override;
  std::optional<PlainNumbers> plain_numbers(const FileVariable& variable) override;
  std::vector<std::string> read_stored_texts(const FileVariable& variable) override;

 private:
  void add(std::int64_t data_set, const std::string& name);
  void add_description(std::int64_t data_set, FileVariable& variable);
  static void add_storage(std::int64_t data_set, FileVariable& variable);

  External external_;
  Hdf5Values values_;
  bool is_odim_ = false;  ///< of radar data, packed as ODIM has it
};

}  // namespace jigsaw::inline files
