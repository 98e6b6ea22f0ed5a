#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "files/chunk_cache.h"
#include "files/nifti_header.h"
#include "files/variable_file.h"

namespace jigsaw::inline files {

/// A NIfTI-1 file, .nii or .nii.gz: one variable, "image", turned so that its last three dims run from below
/// to above, from back to front and from left to right ([depth, height, width], nibabel's RAS+ read
/// backwards); channels or times stand before them. The number list "spacing" gives the distance of its
/// points along these three in mm; "affine", three rows of four, says where they lie: the steps in mm to the
/// right, to the front and up of one point along width, height and depth, and the place of point (0, 0, 0).
///
/// Of a compressed file all that stands before what is read is decompressed, in slabs of some rows, which are
/// kept (files/chunk_cache.h): crops of one image, and processes of one machine, share them.
class NiftiFile : public VariableFile {
 public:
  static constexpr const char* kFormat = "NIfTI";

  /// @param external  not asked: such a file has no links. @throws DataError
  explicit NiftiFile(const std::string& path, External external = External::kRefused);
  NiftiFile(const FileDescription& known, External external);
  ~NiftiFile() override;

  const NiftiHeader& header() const { return header_; }
  /// From now on the file's axes run through the world as this says, whatever its header does: to be called
  /// before anything is read. header().world, extents, spacing and affine follow.
  void turn(const std::array<NiftiAxis, 3>& world);
  /// Whether they run otherwise than the header says.
  bool is_turned() const;

  std::string_view format() const override { return kFormat; }
  void close() override;
  bool is_open() const override { return file_ != nullptr; }

 protected:
  StoredNumbers read_stored(const FileVariable& variable, const Box& box, ByteBuffer& out,
                            std::int64_t& fetched) override;
  std::string own_description() const override { return begin_; }

 private:
  void open();
  NiftiHeader read_header();
  void describe_image();
  void check_length() const;
  std::int64_t image_bytes() const;
  /// Bytes of the decompressed file.
  void read_bytes(std::int64_t begin, std::span<char> bytes);
  /// A slab of a compressed file. @param fetched  gets the bytes of slabs that were decompressed.
  std::shared_ptr<const ChunkCache::Chunk> slab(std::int64_t number, std::int64_t slab_bytes,
                                                std::int64_t& fetched);

  void* file_ = nullptr;        ///< gzFile, which reads plain files, too
  std::uint64_t key_;           ///< in the cache of chunks
  std::int64_t next_slab_ = 0;  ///< behind the last that was read from the file since it was opened
  std::string begin_;           ///< the bytes of the header
  NiftiHeader header_;
  std::mutex mutex_;  ///< guards the file's position and the slabs'
};

}  // namespace jigsaw::inline files
