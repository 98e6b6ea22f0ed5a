#pragma once
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "evaluate/image_report.h"
#include "images/image_data.h"
#include "images/window_reader.h"

namespace jigsaw::inline evaluate {

/// What a rank holds of what is predicted of a part of an image.
struct HeldPart {
  Box box, own;                ///< with and without the halo, kSsimReach columns
  std::vector<double> values;  ///< [box, targets] in physical units; of classes the labels [box]
};

/// Scores of predictions, part by part, against the targets of images: see evaluate_images().
class ImageScorer {
 public:
  /// @param ranges  of the data, of each target that is a number. @param noisy  gives the noisy images, which
  /// are scored beside the predictions; may be null.
  ImageScorer(const ImageData& data, Communicator& world, std::vector<double> ranges,
              const WindowReader* noisy)
      : data_(data), world_(world), noisy_(noisy), ranges_(std::move(ranges)) {}

  /// The next part. Collective: what throws on one rank throws on all. @throws DataError
  void score(const ImageRegion& part, HeldPart held);
  const std::vector<double>& ranges() const { return ranges_; }
  const std::vector<ImageMeasure>& measures() const { return measures_; }
  /// Numbers that were predicted, and are none.
  double not_finite() const { return not_finite_; }

 private:
  void score_numbers(const ImageRegion& region);
  void score_labels(const ImageRegion& region);
  double surface_distance(const ImageRegion& region, const std::vector<double>& truth, std::int64_t label,
                          const std::vector<double>& spacing);
  std::vector<double> inside(const std::vector<double>& labels, std::int64_t region) const;
  std::vector<std::int32_t> gathered(const std::vector<std::int32_t>& points, int root);
  void add(const std::string& target, const std::string& name, std::optional<std::int64_t> label,
           const std::string& units, double value);
  std::string units_of(const Field& field) const;
  std::vector<double> truth_of(const Field& field, std::int64_t image) const;
  std::vector<double> channel(std::size_t number, std::size_t of) const;

  const ImageData& data_;
  Communicator& world_;
  const WindowReader* noisy_;
  std::vector<double> ranges_;
  HeldPart held_;
  std::vector<ImageMeasure> measures_;
  double not_finite_ = 0;
};

/// What a report calls parts: file, group, sample, and the box of what is no whole image.
std::vector<std::string> names_of_parts(const ImageData& data, const std::vector<ImageRegion>& parts);

}  // namespace jigsaw::inline evaluate
