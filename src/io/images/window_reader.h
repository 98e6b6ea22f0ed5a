#pragma once
#include <span>
#include <vector>

#include "images/image_data.h"
#include "images/sliding_window.h"

namespace jigsaw::inline images {

/// Reads what a trained model sees of images through windows. Thread-safe.
class WindowReader {
 public:
  /// @param data   outlives the reader.
  /// @param noisy  adds the noise of validation to the images (task denoise).
  WindowReader(const ImageData& data, bool noisy) : data_(data), noisy_(noisy) {}

  /// This rank's piece `input` of [windows, space…, Cin], normalised, as the windows are mirrored; 0 where a
  /// value is missing or a window reaches beyond its image. @param context  on the host. @throws DataError
  Array read(std::span<const ImageWindow> windows, const Box& input, DType dtype,
             const Context& context) const;
  /// The points of a box of an image in physical units, NaN where they are missing. @throws DataError
  std::vector<double> field(const Field& field, std::int64_t image, const Box& box) const;

 private:
  const ImageData& data_;
  bool noisy_;
};

}  // namespace jigsaw::inline images
