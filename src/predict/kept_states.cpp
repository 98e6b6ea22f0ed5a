#include "predict/kept_states.h"

#include <filesystem>
#include <system_error>

#include "array/host_view.h"
#include "array/transfer.h"
#include "base/disk.h"
#include "base/error.h"
#include "kernels/pointwise.h"
#include "parallel/redistribute.h"

namespace jigsaw::inline predict {

namespace {

template <typename AnyState>
auto& variable_of(AnyState& state, RestartPart part) {
  if (part == RestartPart::kInput) return state.input;
  return part == RestartPart::kPrediction ? state.prediction : state.sum;
}

/// In which a part stands, here and in the rollout.
Layout layout_of(const PlacedModel& placed, RestartPart part, std::int64_t samples) {
  const std::int64_t forecasts = samples * placed.members();
  return part == RestartPart::kInput ? placed.model().input_layout(placed.mesh(), forecasts)
                                     : placed.model().output_layout(placed.mesh(), forecasts);
}

}  // namespace

KeptStates::KeptStates(PlacedModel& placed, Communicator& world, const RestartModel& model)
    : placed_(placed), world_(world), model_(model) {}

/// What is left of a file that failed goes at once, for the disk may be full.
void KeptStates::guarded(const std::function<void()>& work) {
  if (failure_) return;
  try {
    work();
  } catch (const Error& error) {
    if (error.code() != ExitCode::kData && !is_of_disk(error)) throw;
    failure_ = error;
    file_.reset();
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
}

void KeptStates::open(const std::vector<Time>& starts, const std::string& path) {
  path_ = path;
  guarded([&] { file_ = std::make_unique<RestartWriter>(model_, starts, path); });
}

void KeptStates::keep(const RolloutState& state, std::int64_t first, std::int64_t samples, int step,
                      std::span<const double> digests, BackgroundWriter* writer) {
  const Rank& rank = placed_.rank();
  for (const auto& [part, channels] : model_.parts()) {
    const Layout layout = layout_of(placed_, part, samples);
    const ShardedTensor values = redistribute(rank, variable_of(state, part).value(), layout);
    PackedPiece<double> own = piece_of<double>(rank, layout, channels, world_.rank());
    if (own.count() > 0) {
      const Array exact = cast(rank.context, values.piece, DType::kFloat64, Purpose::kWorkspace);
      pack<double>(HostView<const double>(download(rank.context, exact)), channels, own);
    }
    for (int from = 0; from < world_.size(); ++from) {
      const auto piece = std::make_shared<PackedPiece<double>>(
          from > 0 ? bring(rank, world_, layout, channels, own, from) : own);
      if (writer == nullptr || piece->count() == 0) continue;
      writer->push(
          [this, piece, first, part = part] { guarded([&] { file_->write(part, first, *piece); }); });
    }
  }
  steps_.insert(steps_.end(), static_cast<std::size_t>(samples), step);
  digests_.insert(digests_.end(), digests.begin(), digests.end());
}

void KeptStates::close() {
  guarded([&] { file_->close(steps_, digests_); });
}

RolloutState read_state(PlacedModel& placed, const RestartModel& model, const RestartFile& file,
                        std::span<const Time> starts) {
  const Rank& rank = placed.rank();
  RolloutState state;
  const auto samples = std::ssize(starts);
  const auto variable = [&](const Layout& layout, const std::vector<double>& values) {
    const Array piece = constant(rank.context, rank.box(layout).extent, placed.types().compute, values,
                                 Purpose::kActivations);
    return Variable({piece, layout}, false);
  };
  for (const auto& [part, channels] : model.parts()) {
    const Layout layout = layout_of(placed, part, samples);
    variable_of(state, part) = variable(layout, file.read(part, starts, channels, rank.box(layout)));
  }
  if (!state.input.defined()) {
    const Layout layout = layout_of(placed, RestartPart::kInput, samples);
    const std::vector<double> nothing(static_cast<std::size_t>(rank.box(layout).extent.count()));
    state.input = variable(layout, nothing);
  }
  if (!model.accumulates) state.sum = state.prediction;
  return state;
}

}  // namespace jigsaw::inline predict
