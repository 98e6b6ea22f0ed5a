#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "array/grid.h"
#include "array/random.h"
#include "samples/batch.h"
#include "samples/channels.h"
#include "samples/statistics.h"

namespace jigsaw::inline samples {

enum class Split : std::uint8_t { kTrain, kValid };

/// What one rank needs of a global batch, whatever its samples are.
struct SampleRequest {
  Split split = Split::kTrain;
  std::vector<std::int64_t> samples;  ///< numbers of the split's samples, B in all
  /// Training step, and number in it of the batch's first sample: where random crops, flips and noise are
  /// drawn.
  RandomPosition position;
  Box input;   ///< the rank's piece of [B, space…, Cin]; may be empty
  Box target;  ///< the rank's piece of [B, space…, Cout]; may be empty
  int rollout = 1;
  bool baseline = false;
  DType dtype = DType::kFloat32;  ///< or kFloat64
  bool origin = false;            ///< of forecasts: Batch::origin
  std::optional<int> lead = {};   ///< of forecasts: BatchRequest::lead
};

/// The same of forecasts, but for the times and members that the samples are of.
inline BatchRequest batch_request(const SampleRequest& request) {
  BatchRequest result;
  result.input = request.input;
  result.target = request.target;
  result.rollout = request.rollout;
  result.baseline = request.baseline;
  result.dtype = request.dtype;
  result.origin = request.origin;
  result.lead = request.lead;
  return result;
}

/// Reads pieces of batches; one for each thread.
class SampleReader {
 public:
  virtual ~SampleReader() = default;
  /// @param context  on the host; its arena counts the arrays as Purpose::kInput. @throws DataError
  virtual Batch read(const SampleRequest& request, const Context& context) = 0;
};

/// What training needs of data: samples of one shape, by number.
class SampleSource {
 public:
  virtual ~SampleSource() = default;

  /// All files that are read.
  virtual std::vector<std::string> paths() const { return {}; }
  /// Of each sample.
  virtual const Grid& grid() const = 0;
  virtual const Channels& channels() const = 0;
  virtual const Statistics& statistics() const = 0;
  /// Training: the samples of an epoch. Validation: all there is, 0 where no part is given.
  virtual std::int64_t count(Split split) const = 0;
  /// Numbers by which training samples of other data would differ: their times, or the places of parts in
  /// images.
  virtual std::vector<std::int64_t> identity() const = 0;
  /// No longer than the source lives.
  virtual std::unique_ptr<SampleReader> open_reader() = 0;
  virtual std::int64_t bytes_read() const = 0;
  /// Bytes that the system was asked for to read these (VariableFile::bytes_fetched).
  virtual std::int64_t bytes_fetched() const { return bytes_read(); }
  /// Values that this rank has read so far and that are neither numbers nor declared as missing, by
  /// "variable in file".
  virtual std::map<std::string, UndeclaredValues> undeclared() const { return {}; }
  /// Sentences on numbers that attributes unpack though they may mean something else.
  virtual std::vector<std::string> packing_remarks() const { return {}; }
};

}  // namespace jigsaw::inline samples
