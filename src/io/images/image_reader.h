#pragma once

#include "images/image_data.h"

namespace jigsaw::inline images {

/// Reads the pieces of batches of images: for each sample and field the part of its crop that the rank holds,
/// one hyperslab; what input and target share is read once. Noise is added, labels are checked, what does not
/// count is NaN in the target. See Batch; a baseline there is for denoise only: its input.
class ImageReader : public SampleReader {
 public:
  /// @param data  outlives the reader.
  explicit ImageReader(const ImageData& data) : data_(data) {}

  /// @throws DataError  also for a label that is none of the classes.
  Batch read(const SampleRequest& request, const Context& context) override;

 private:
  class Values;

  void fill_inputs(const SampleRequest& request, std::int64_t number, Values& values, Batch& batch) const;
  void fill_targets(const SampleRequest& request, std::int64_t number, Values& values, Batch& batch) const;

  const ImageData& data_;
};

}  // namespace jigsaw::inline images
