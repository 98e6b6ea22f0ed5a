#pragma once
#include <fstream>
#include <string>

#include "files/image_output.h"

namespace jigsaw::inline files {

/// NIfTI-1 for create_image_output(). Points are written in place; a compressed file is compressed when it is
/// whole, so that its temporary one, of the name behind which ".raw" stands, is as large as the image.
class NiftiOutput : public ImageOutput {
 public:
  using ImageOutput::write;
  NiftiOutput(std::string path, bool compressed, const OutputImage& image, const std::string& description,
              const NiftiHeader* like);
  ~NiftiOutput() override;

  void write(std::size_t image, const Box& box, std::span<const double> values) override;
  void finish() override;

 private:
  void place(const OutputImage& image, const NiftiHeader* like);
  std::string header(const OutputImage& image, const std::string& description) const;
  void compress() const;
  [[noreturn]] void refuse(const std::string& why) const;
  [[noreturn]] void refuse_to_write() const;

  std::string path_, raw_;
  bool compressed_, flat_ = false, channels_ = false;
  OutputImage::Type type_;
  Shape shape_;                            ///< [channel, depth, height, width]
  std::array<std::int64_t, 3> extents_{};  ///< along the file's axes
  std::array<NiftiAxis, 3> world_;
  std::array<std::array<double, 4>, 3> affine_{};
  std::array<double, 3> spacing_{};
  int code_ = 0;
  bool picture_ = false;  ///< of two dims, as the file that it is like
  NiftiHeader::Qform qform_;
  bool units_known_ = true;  ///< whether its place is in millimetres, or in steps from point to point
  std::fstream file_;
};

}  // namespace jigsaw::inline files
