#pragma once
#include <cstdint>
#include <mutex>
#include <span>
#include <string>

#include "files/nifti_header.h"
#include "files/variable_file.h"

namespace jigsaw::inline files {

/// A NIfTI-1 file, .nii or .nii.gz: one variable, "image", turned so that its last three dims run from below
/// to above, from back to front and from left to right ([depth, height, width], nibabel's RAS+ read
/// backwards); channels or times stand before them. The number list "spacing" gives the distance of its
/// points along these three in mm.
///
/// Of a compressed file all that stands before what is read is decompressed.
class NiftiFile : public VariableFile {
 public:
  /// @param external  not asked: such a file has no links. @throws DataError
  explicit NiftiFile(std::string path, External external = External::kRefused);
  ~NiftiFile() override;

  void close() override;
  bool is_open() const override { return file_ != nullptr; }

 protected:
  StoredNumbers read_stored(const FileVariable& variable, const Box& box, ByteBuffer& out,
                            std::int64_t& fetched) override;

 private:
  void open();
  NiftiHeader read_header();
  void check_length() const;
  /// Bytes of the decompressed file.
  void read_bytes(std::int64_t begin, std::span<char> bytes);

  void* file_ = nullptr;  ///< gzFile, which reads plain files, too
  NiftiHeader header_;
  std::mutex mutex_;  ///< guards the file's position
};

}  // namespace jigsaw::inline files
