#pragma once
#include <array>
#include <string>
#include <vector>

#include "autograd/output_watch.h"

namespace jigsaw::inline verify {

/// A fingerprint of a value, the same on every mesh up to rounding: sums of its elements with random signs,
/// which the number of an element decides, and the sum of squares. Of two values the differences of the sums
/// tell the norm of their difference: each has its square for a mean.
struct OutputPrint {
  static constexpr std::size_t kSums = 8;

  OutputWatch::Source source;
  std::array<double, kSums> sums{};
  double squares = 0;

  /// ‖a − b‖ / ‖b‖, as the fingerprints tell it.
  static double difference(const OutputPrint& a, const OutputPrint& b);
  /// "forward of block encoder, operation 2 (contract bk,nk->bn)".
  std::string to_string() const;
};

/// Takes the fingerprints of all that a rank's operations give while it lives.
class OutputPrints {
 public:
  explicit OutputPrints(const Rank& rank);
  ~OutputPrints();
  OutputPrints(const OutputPrints&) = delete;
  OutputPrints& operator=(const OutputPrints&) = delete;

  /// Those of whole values, summed over the ranks. Collective over the mesh.
  std::vector<OutputPrint> collect();

 private:
  void add(const OutputWatch::Source& source, const ShardedTensor& value);

  Rank rank_;
  std::vector<OutputPrint> prints_;
};

}  // namespace jigsaw::inline verify
