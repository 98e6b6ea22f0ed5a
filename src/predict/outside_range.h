#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "images/sequence_data.h"
#include "samples/dataset.h"
#include "samples/state_limits.h"
#include "task/placed_model.h"

namespace jigsaw::inline predict {

/// Finds where states of forecasts leave these limits first.
class OutsideRange {
 public:
  /// Where a channel did so.
  struct Found {
    std::int64_t channel = 0;
    int step = 0;
    Time start = 0;
    bool above = false;
  };

  explicit OutsideRange(std::vector<StateLimits> limits) : limits_(std::move(limits)) {}

  /// @param states  f64, this rank's piece in the layout of one field of each sample; NaN does not count.
  /// @param starts  of all samples. @return  whether any state of this piece lies outside.
  bool add(const Rank& rank, const Layout& layout, const Array& states, int step,
           std::span<const Time> starts);
  /// Of each channel that left its limits the earliest step, of that the earliest start; over all ranks.
  /// Collective.
  std::vector<Found> find(Communicator& world) const;
  /// A sentence for each variable of these. Collective.
  std::vector<std::string> remarks(const Dataset& data, Communicator& world) const;
  /// The same of sequences, whose starts are numbers of states.
  std::vector<std::string> remarks(const SequenceData& data, Communicator& world) const;

 private:
  /// @param where  the step and the start in words.
  std::vector<std::string> remarks_of(const SampleSource& data, Communicator& world,
                                      const std::function<std::string(const Found&)>& where) const;

  std::vector<StateLimits> limits_;
  std::map<std::int64_t, Found> found_;  ///< by channel
};

}  // namespace jigsaw::inline predict
