#include "layers/time_embedding.h"

#include "array/transfer.h"
#include "autograd/field_operations.h"
#include "config/config.h"
#include "kernels/pointwise.h"
#include "layers/linear.h"
#include "layers/registry.h"

namespace jigsaw::inline layers {

void declare(Keys<TimeEmbeddingOptions>& keys) {
  keys.tagged("layers", &TimeEmbeddingOptions::layers, layer_types)
      .required()
      .not_empty()
      .doc("Layers over the model's input, to whose result the time is added.");
}

namespace {

/// A small array that every rank holds whole.
Variable as_variable(const Array& whole) {
  return Variable({whole, {whole.shape(), {}}}, false);
}

/// [K, C]: 1 where row k's channel is.
Array selection(Tape& tape, const std::vector<std::int64_t>& channels, std::int64_t inputs) {
  std::vector<double> matrix(channels.size() * static_cast<std::size_t>(inputs), 0.0);
  for (std::size_t k = 0; k < channels.size(); ++k)
    matrix[k * static_cast<std::size_t>(inputs) + static_cast<std::size_t>(channels[k])] = 1.0;
  return kept_constant(tape.context(), {std::ssize(channels), inputs}, tape.dtype(), matrix);
}

FieldShape one_point(const FieldShape& field, std::int64_t channels) {
  return {Shape::filled(field.space.rank(), 1), channels};
}

LayerPtr linear(const LayerSite& site, const char* name, const FieldShape& input, std::int64_t features) {
  return std::make_unique<Linear>(site.inner(name, input), LinearOptions{features});
}

}  // namespace

TimeEmbedding::TimeEmbedding(const LayerSite& site, LayerPtr inner)
    : Layer(inner->output()), inner_(std::move(inner)), channels_(site.time_channels) {
  const std::int64_t width = output().channels;
  fc1_ = linear(site, "fc1", one_point(site.input, std::ssize(channels_)), width);
  fc2_ = linear(site, "fc2", one_point(site.input, width), width);
}

LayerPtr with_time(const LayerSite& site, bool wanted, LayerPtr encoder) {
  if (!wanted) return encoder;
  if (site.time_channels.empty()) {
    site.error("time_embedding", "needs \"time_of_day\" or \"day_of_year\" in data.forcings");
  }
  LayerSite time = site.at_root("time", site.input);
  time.time_channels = site.time_channels;
  return std::make_unique<TimeEmbedding>(time, std::move(encoder));
}

Variable TimeEmbedding::run(Tape& tape, const Variable& x, const Variable& residual) const {
  const int space = x.shape().rank() - 2;
  const std::string in = field_letters(space, 'c'), points = space_letters(space),
                    one = std::string("xyz").substr(0, static_cast<std::size_t>(space));
  const Variable phases = contract(tape, in + ",kc->" + field_letters(space, 'k'), global_average(tape, x),
                                   as_variable(selection(tape, channels_, x.shape().back())));
  const Variable hidden = pointwise(tape, fc1_->run(tape, phases),
                                    {.letters = field_letters(space, 'n'), .activation = Activation::kSilu});
  const Variable time = fc2_->run(tape, hidden);
  // The same at every point.
  Shape spread = output().space;
  for (int dim = 0; dim < space; ++dim) spread.append(1);
  const Array ones = filled(tape.context(), spread, tape.dtype(), 1, Purpose::kWorkspace);
  const Variable everywhere =
      contract(tape, "b" + one + "n," + points + one + "->b" + points + "n", time, as_variable(ones));
  return inner_->run(tape, x, add_residual(tape, everywhere, residual));
}

}  // namespace jigsaw::inline layers
