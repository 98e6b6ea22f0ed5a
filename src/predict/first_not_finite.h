#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "comm/communicator.h"

namespace jigsaw::inline predict {

/// Counts the values of forecasts that are not finite, and remembers where the first of them were: at the
/// earliest step, of those in the forecast of the earliest start, of those in the first channel.
class FirstNotFinite {
 public:
  struct Found {
    std::int64_t count = 0;
    int step = 0;
    std::int64_t start = 0, channel = 0;
  };

  /// @param counts  of one step and start, of each channel from `channel` on.
  void add(int step, std::int64_t start, std::int64_t channel, std::span<const double> counts);
  /// Over all ranks; nothing where there is none. Collective.
  std::optional<Found> find(Communicator& world) const;

 private:
  double count_ = 0;
  Found first_;
};

}  // namespace jigsaw::inline predict
