#pragma once
#include <filesystem>
#include <memory>

#include "task/configuration.h"
#include "task/given_statistics.h"
#include "task/scores.h"

namespace jigsaw::inline task {

/// What differs between tasks: the data, the loss and the scores.
class Objective {
 public:
  virtual ~Objective() = default;

  virtual SampleSource& data() = 0;
  virtual const Loss& loss() const = 0;
  /// Channels that a model predicts.
  virtual std::int64_t output_channels() const = 0;
  virtual std::unique_ptr<Scores> make_scores() const = 0;
};

/// Opens the data of a configuration. Collective: when it throws on one rank it throws on all.
///
/// @param folder  that of the configuration, from which relative names start. @throws ConfigError, DataError
/// @param use     what goes with the opening; statistics are for data whose configuration names none.
std::unique_ptr<Objective> open_objective(const Configuration& configuration,
                                          const std::filesystem::path& folder, Communicator& communicator,
                                          DataUse use = {});

}  // namespace jigsaw::inline task
