#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <vector>

#include "files/classic_header.h"
#include "files/hdf5_values.h"
#include "files/variable_file.h"

namespace jigsaw::inline files {

/// A NetCDF file (classic, 64-bit offset, CDF-5 or NetCDF-4): the variables of all its groups and what they
/// hold. Names of variables and dimensions have those of their groups before them, "surface/t2m".
class NetcdfFile : public VariableFile {
 public:
  static constexpr const char* kFormat = "NetCDF";

  /// Opens the file and reads its header. @throws DataError
  explicit NetcdfFile(std::string path, External external = External::kRefused);
  NetcdfFile(const FileDescription& known, External external);
  ~NetcdfFile() override;

  std::string_view format() const override { return kFormat; }
  void close() override;
  bool is_open() const override { return id_ >= 0 || values_.is_open(); }

 protected:
  StoredNumbers read_stored(const FileVariable& variable, const Box& box, ByteBuffer& out,
                            std::int64_t& fetched) override;
  std::optional<PlainNumbers> plain_numbers(const FileVariable& variable) override;
  std::vector<std::string> read_stored_texts(const FileVariable& variable) override;
  std::string own_description() const override;

 private:
  /// A group: its number while the file is open, its name as it stands before those of variables, and the
  /// dimensions that it has and inherits, by their numbers.
  struct Group {
    int id = 0, depth = 0;
    std::string prefix;
    std::map<int, std::string> dimensions;
  };

  /// While it lives the caller has the lock of libraries, and the library the file open.
  class LibraryCalls {
   public:
    explicit LibraryCalls(NetcdfFile& file);
    ~LibraryCalls();
    LibraryCalls(const LibraryCalls&) = delete;
    LibraryCalls& operator=(const LibraryCalls&) = delete;

   private:
    NetcdfFile& file_;
    std::unique_lock<std::mutex> lock_;
  };

  void open();
  /// NetCDF-C and HDF5 do not hold the same file at a time; under lock_io().
  void close_library();
  void add_storage(const Group& group, int type, FileVariable& variable);
  /// In HDF5, where a variable with the name of a dimension that it is no coordinate of has another one.
  const std::string& hdf5_name(const FileVariable& variable);
  /// Of a classic file, where its header says where the variable's numbers stand; else null.
  const PlainArray* classic_array(const FileVariable& variable) const;
  /// The name of a variable in HDF5, to be read by `values_` while `library_` is locked.
  std::string in_hdf5(const FileVariable& variable);
  StoredNumbers read_by_library(const FileVariable& variable, const Box& box, ByteBuffer& out);
  void read_group(Group group);
  FileVariable read_variable(const Group& group, int id);
  void read_attribute(int group, FileVariable& variable, const std::string& attribute);
  void read_other_attributes(int group, FileVariable& variable);
  std::vector<std::string> read_characters(const FileVariable& variable) const;
  /// The number of the group that a variable is in.
  int group_of(const FileVariable& variable) const;
  void check(int status, const std::string& what) const;

  int id_ = -1;
  std::shared_mutex library_;  ///< one thread alone reads by NetCDF-C, several by HDF5
  std::optional<std::vector<ClassicVariable>> classic_;  ///< of the classic formats; others are HDF5
  RunReader runs_;
  Hdf5Values values_;
  std::map<std::string, std::string> hdf5_names_;  ///< under lock_io()
};

}  // namespace jigsaw::inline files
