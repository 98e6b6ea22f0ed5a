#include "optim/optimizer.h"

#include <array>
#include <utility>

#include "array/transfer.h"
#include "kernels/pointwise.h"
#include "optim/registry.h"

namespace jigsaw::inline optim {

Optimizer::Optimizer(const Rank& rank, const std::vector<ParameterBlock*>& blocks,
                     const OptimizerOptions& options, std::unique_ptr<UpdateRule> rule)
    : options_(options),
      rule_(std::move(rule)),
      owned_(rank, blocks, options_),
      average_(owned_, options_.ema_decay),
      numbers_(filled(rank.context, {UpdateNumbers::kKinds}, DType::kFloat64, 0.0, Purpose::kOptimizer)) {
  for (const OwnedParameters::Part& part : owned_.parts()) {
    const Array values = part.group->owned();
    std::vector<Array>& kept = states_.emplace_back();
    for (std::size_t i = 0; i < rule_->state_names().size(); ++i)
      kept.push_back(filled(rank.context, values.shape(), values.dtype(), 0.0, Purpose::kOptimizer));
  }
}

Optimizer::Optimizer(const Rank& rank, const std::vector<ParameterBlock*>& blocks, const Tagged& options)
    : Optimizer(rank, blocks, common_options(options), make_rule(options)) {}

Array Optimizer::finish_gradients() {
  owned_.synchronise_gradients();
  return gradient_squares(owned_);
}

double Optimizer::finish_gradients(double scale) {
  const Array squares = finish_gradients();
  return gradient_norm(download_values(owned_.rank().context, squares)[0], scale);
}

void Optimizer::step(double full_weight, const Array& loss, const Array& squares, std::int64_t forwards) {
  decide_update(owned_.rank().context, {full_weight, options_.clip_norm}, loss, squares, numbers_);
  update(forwards);
}

void Optimizer::step(double rate_factor, double scale, double norm, std::int64_t forwards) {
  ++steps_;
  set_rate_factor(rate_factor);
  write_number(UpdateNumbers::kApplies, 1);
  write_number(UpdateNumbers::kGradientScale, scale * clip_factor(norm, options_.clip_norm));
  write_number(UpdateNumbers::kUpdates, static_cast<double>(steps_));
  update(forwards);
}

void Optimizer::write_number(UpdateNumbers::Kind kind, double value) {
  write_values(owned_.rank().context, numbers_.slice(kind, {1}), std::array{value});
}

void Optimizer::update(std::int64_t forwards) {
  for (std::size_t p = 0; p < states_.size(); ++p) {
    const OwnedParameters::Part& part = owned_.parts()[p];
    rule_->update(owned_.rank().context, part.trained, numbers_, part.group->owned(),
                  part.group->owned_gradient(), states_[p], part.group->owned_copy());
  }
  follow_statistics(owned_, numbers_, forwards);
  average_.follow(numbers_);
  owned_.share(true);
}

std::int64_t Optimizer::optimizer_bytes() const {
  std::int64_t bytes = average_.bytes();
  for (const std::vector<Array>& kept : states_) {
    for (const Array& array : kept) bytes += array.bytes();
  }
  return bytes;
}

std::vector<std::string> Optimizer::kinds() const {
  std::vector<std::string> kinds = {"parameters"};
  for (const std::string& name : rule_->state_names()) kinds.push_back(name);
  if (average_.kept()) kinds.emplace_back("average");
  return kinds;
}

std::vector<Optimizer::State> Optimizer::state(Share share) const {
  std::vector<State> result;
  // `array` holds the elements of `range` of the group's flat buffer.
  const auto add = [&](const std::string& kind, const ParameterGroup& group, const Array& array,
                       const Range& range) {
    const Range wanted = share == Share::kSaved ? group.saved_range() : range;
    for (Segment segment : group.segments(wanted)) {
      const std::int64_t at = wanted.begin - range.begin + std::exchange(segment.at, 0);
      result.push_back({kind, segment, array.slice(at, {segment.count})});
    }
  };
  const std::vector<std::string> names = rule_->state_names();
  for (std::size_t p = 0; p < states_.size(); ++p) {
    const ParameterGroup& group = *owned_.parts()[p].group;
    add("parameters", group, group.stored(), group.stored_range());
    for (std::size_t i = 0; i < names.size(); ++i) add(names[i], group, states_[p][i], group.owned_range());
    if (average_.kept()) add("average", group, average_.of(p), group.owned_range());
  }
  return result;
}

void Optimizer::restore(std::int64_t steps_done) {
  steps_ = steps_done;
  write_number(UpdateNumbers::kUpdates, static_cast<double>(steps_));
  owned_.share();
}

void Optimizer::with_averages(const std::function<void()>& use) {
  average_.swap();
  use();
  average_.swap();
}

void Optimizer::restart() {
  average_.begin();
  restore(0);
}

}  // namespace jigsaw::inline optim
