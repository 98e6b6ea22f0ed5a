#include "autograd/parameter.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "array/parallel.h"
#include "array/transfer.h"
#include "base/error.h"
#include "base/text.h"
#include "kernels/contraction.h"
#include "kernels/pointwise.h"

namespace jigsaw::inline autograd {

Initial Initial::fan_in(std::int64_t fan_in) {
  return {Kind::kUniform, 1.0 / std::sqrt(static_cast<double>(std::max<std::int64_t>(fan_in, 1)))};
}

Shape Parameter::shape_without_noise() const {
  Shape shape = shape_;
  if (noise_.range.size() > 0) shape[noise_.dim] -= noise_.range.size();
  return shape;
}

ShardedTensor Parameter::value() const {
  require(group_ != nullptr && group_->users_ > 0, "a parameter is used outside of its block");
  return {group_->gathered().slice(offset_, box_.extent), compute_};
}

Array Parameter::gradient() const {
  require(group_ != nullptr && group_->gradient_.defined(),
          "a gradient is added outside of its block's backward");
  return group_->gradient_.slice(offset_, box_.extent);
}

bool Parameter::contributes(const Rank& rank, const Placements& gradient) {
  for (int axis = 0; axis < rank.mesh.shape().axes; ++axis) {
    if (gradient[axis].is_replicate() && rank.mesh.coordinate(axis) != 0) return false;
  }
  return true;
}

// ---- ParameterGroup

bool ParameterGroup::takes(AxisSet axes) const {
  // That many elements are worth a transfer of their own on any network, and that many of each rank a
  // message.
  constexpr std::int64_t kEnough = std::int64_t{1} << 18, kEnoughOfARank = std::int64_t{1} << 13;
  const std::int64_t enough = std::max(kEnough, kEnoughOfARank * rank_.mesh.size(axes_));
  return axes == axes_ && (largest_ < enough || !travels());
}

void ParameterGroup::add(Parameter& parameter) {
  largest_ += parameter.compute_.largest_piece(rank_.mesh.shape()).count();
  parameter.group_ = this;
  parameter.offset_ = length_;
  parameter.box_ = rank_.box(parameter.compute_);
  length_ += parameter.box_.extent.count();
  parameters_.push_back(&parameter);
}

std::vector<std::int64_t> ParameterGroup::stored_counts() const {
  const int ranks = rank_.mesh.size(axes_);
  std::vector<std::int64_t> counts;
  for (int i = 0; i < ranks; ++i) counts.push_back(cut_range(length_, ranks, i).size());
  return counts;
}

std::vector<std::int64_t> ParameterGroup::owned_counts() const {
  const int ranks = rank_.mesh.size(Mesh::kData);
  std::vector<std::int64_t> counts;
  for (int i = 0; i < ranks; ++i) counts.push_back(cut_range(stored_range_.size(), ranks, i).size());
  return counts;
}

AxisSet ParameterGroup::owning_axes() const {
  const AxisSet data = axis_bit(Mesh::kData);
  return zero_ == Zero::kNone ? rank_.mesh.all_axes() & ~data : rank_.mesh.all_axes();
}

Range ParameterGroup::saved_range() const {
  if (zero_ == Zero::kParameters) return stored_range_;
  const Range part =
      cut_range(stored_range_.size(), rank_.mesh.size(Mesh::kData), rank_.mesh.coordinate(Mesh::kData));
  return {stored_range_.begin + part.begin, stored_range_.begin + part.end};
}

void ParameterGroup::pad() {
  constexpr std::int64_t kShareUnit = 8, kLeast = 64;
  const std::int64_t shares =
      rank_.mesh.size(axes_) * (zero_ == Zero::kParameters ? 1 : rank_.mesh.size(Mesh::kData));
  if (shares == 1 || length_ < kLeast * kShareUnit * shares) return;
  const std::int64_t unit = kShareUnit * shares;
  length_ = (length_ + unit - 1) / unit * unit;
}

void ParameterGroup::materialise(std::uint64_t seed) {
  const std::int64_t unpadded = length_;
  pad();
  const int ranks = rank_.mesh.size(axes_);
  int index = 0;
  for (int axis = 0; axis < rank_.mesh.shape().axes; ++axis) {
    if (contains(axes_, axis)) index = index * rank_.mesh.size(axis) + rank_.mesh.coordinate(axis);
  }
  stored_range_ = cut_range(length_, ranks, index);
  owned_range_ = zero_ == Zero::kOptimizer ? saved_range() : stored_range_;
  stored_ = Array(rank_.context, {stored_range_.size()}, master_, Purpose::kParameters);
  if (rank_.context.device() == Device::kMeta) return;
  for (const Segment& segment : stored_segments()) initialise(segment, seed);
  const std::int64_t filled =
      std::clamp(unpadded - stored_range_.begin, std::int64_t{0}, stored_range_.size());
  const std::vector<double> zeros(static_cast<std::size_t>(stored_range_.size() - filled), 0.0);
  write_values(rank_.context, stored_.slice(filled, {std::ssize(zeros)}), zeros);
  if (rank_.context.runtime() != nullptr && compute_ == DType::kBfloat16)
    stored_copy_ = cast(rank_.context, stored_, compute_, Purpose::kParameters);
}

bool ParameterGroup::shares_ownership() const {
  return zero_ == Zero::kOptimizer && rank_.mesh.size(Mesh::kData) > 1;
}

Array ParameterGroup::stored_for_use() const {
  return stored_copy_.defined() ? stored_copy_ : cast(rank_.context, stored_, compute_, Purpose::kWorkspace);
}

void ParameterGroup::initialise(const Segment& segment, std::uint64_t seed) {
  const Parameter& parameter = *segment.parameter;
  const Initial& initial = parameter.initial();
  const RandomStream random(seed, RandomPurpose::kInitialValue, parameter.name());
  const auto random_value = [&](std::uint64_t element) {
    return initial.kind == Initial::Kind::kUniform ? 2 * random.uniform({}, element) - 1
                                                   : random.normal({}, element);
  };
  constexpr std::int64_t kAtOnce = std::int64_t{1} << 20, kWork = 16;
  for (std::int64_t first = 0; first < segment.count; first += kAtOnce) {
    const std::int64_t count = std::min(kAtOnce, segment.count - first);
    std::vector<double> values(static_cast<std::size_t>(count), initial.scale);
    const auto draw = [&](std::int64_t begin, std::int64_t end, int) {
      for_each_global_index(parameter.shape(), segment.box, segment.first + first + begin, end - begin,
                            [&](std::int64_t i, std::int64_t index) {
                              values[static_cast<std::size_t>(begin + i)] *=
                                  random_value(static_cast<std::uint64_t>(index));
                            });
    };
    if (initial.kind != Initial::Kind::kConstant)
      for_ranges(threads_for(rank_.context.host(), count, kWork), count, 1, draw);
    write_values(rank_.context, stored_.slice(segment.at + first, {count}), values);
  }
}

std::vector<Segment> ParameterGroup::segments(const Range& range) const {
  std::vector<Segment> result;
  for (const Parameter* parameter : parameters_) {
    const std::int64_t begin = std::max(range.begin, parameter->offset_);
    const std::int64_t end = std::min(range.end, parameter->offset_ + parameter->box_.extent.count());
    if (begin >= end) continue;
    result.push_back(
        {parameter, parameter->box_, begin - parameter->offset_, end - begin, begin - range.begin});
  }
  return result;
}

Array ParameterGroup::owned() const {
  return stored_.slice(owned_range_.begin - stored_range_.begin, {owned_range_.size()});
}

Array ParameterGroup::owned_copy() const {
  return shares_ownership() ? Array() : stored_copy_;  // of what others own it is made when that has come
}

Array ParameterGroup::owned_gradient() const {
  return owned_gradient_;
}

void ParameterGroup::start_acquire() {
  if (users_ > 0 || gathering_.valid() || !travels()) return;
  const Array mine = stored_for_use();
  gathering_ = rank_.mesh.communicator(axes_).start_all_gather(mine, stored_counts(), Purpose::kWorkspace,
                                                               Urgency::kBackground);
}

void ParameterGroup::acquire() {
  if (users_ == 0) start_acquire();
  if (users_++ > 0 || gathering_.valid()) return;
  gathered_ = stored_for_use();
  if (compute_ != master_) return;
  // The stored memory itself is used until the next update: backends may keep it packed.
  for (const Parameter* parameter : parameters_) {
    if (parameter->shape().rank() > 1) keep_packed(rank_.context, parameter->value().piece);
  }
}

const Array& ParameterGroup::gathered() {
  if (gathering_.valid()) gathered_ = gathering_.wait();
  return gathered_;
}

void ParameterGroup::release() {
  require(users_ > 0, "a parameter block is released more often than acquired");
  if (--users_ > 0) return;
  if (gathering_.valid()) gathering_.wait();
  gathered_ = Array();
}

Array ParameterGroup::zeros(std::int64_t count) const {
  return filled(rank_.context, {count}, master_, 0.0, Purpose::kGradients);
}

void ParameterGroup::begin_gradients() {
  if (!stored_gradient_.defined()) stored_gradient_ = zeros(stored_range_.size());
  gradient_ = travels() ? zeros(length_) : stored_gradient_;
}

void ParameterGroup::start_finish_gradients() {
  if (!gradient_.defined()) return;
  if (travels())
    scattering_ = rank_.mesh.communicator(axes_).start_reduce_scatter(
        gradient_, stored_counts(), ReduceOp::kSum, Purpose::kGradients, Urgency::kBackground);
  gradient_ = Array();
}

void ParameterGroup::finish_gradients() {
  start_finish_gradients();
  if (scattering_.valid()) accumulate(rank_.context, stored_gradient_, scattering_.wait());
}

void ParameterGroup::start_synchronise_gradients() {
  if (!stored_gradient_.defined()) stored_gradient_ = zeros(stored_range_.size());  // a block not used
  if (zero_ == Zero::kParameters || rank_.mesh.size(Mesh::kData) == 1) return;
  Communicator& data = rank_.mesh.communicator(axis_bit(Mesh::kData));
  synchronising_ = zero_ == Zero::kOptimizer
                       ? data.start_reduce_scatter(stored_gradient_, owned_counts(), ReduceOp::kSum,
                                                   Purpose::kGradients, Urgency::kBackground)
                       : data.start_all_reduce(stored_gradient_, ReduceOp::kSum, Purpose::kGradients,
                                               Urgency::kBackground);
}

void ParameterGroup::synchronise_gradients() {
  if (!synchronising_.valid()) start_synchronise_gradients();
  owned_gradient_ = synchronising_.valid() ? synchronising_.wait() : stored_gradient_;
}

void ParameterGroup::share_parameters(bool copied) {
  if (gathering_.valid()) gathering_.wait();  // of parameters that are no more
  Context& context = rank_.context;
  if (shares_ownership()) {
    Communicator& data = rank_.mesh.communicator(axis_bit(Mesh::kData));
    Array whole =
        data.start_all_gather(owned(), owned_counts(), Purpose::kParameters, Urgency::kBackground).wait();
    if (context.runtime() == nullptr) {
      stored_ = std::move(whole);
    } else {  // where a recorded step reads them
      copy_elements(context, whole, 0, stored_, 0, whole.count());
    }
  }
  const bool written = copied && owned_copy().defined();
  if (stored_copy_.defined() && !written) cast_into(context, stored_, stored_copy_);
}

void ParameterGroup::zero_gradients() {
  owned_gradient_ = stored_gradient_ = Array();
}

void ParameterGroup::forget_pass() {
  for (Pending* const pending : {&gathering_, &scattering_, &synchronising_}) *pending = Pending();
  gathered_ = gradient_ = Array();
  users_ = 0;
  zero_gradients();
}

// ---- ParameterBlock

Parameter& ParameterBlock::add(const std::string& name, const Shape& shape, Initial initial,
                               double momentum) {
  return *parameters_.emplace_back(std::make_unique<Parameter>(name, shape, initial, momentum));
}

void ParameterBlock::set_compute(Parameter& parameter, const Placements& placements) {
  const Layout layout{parameter.shape(), placements};
  if (parameter.compute_.global.rank() > 0 && !(parameter.compute_ == layout)) {
    throw ShapeError(concat("parameter ", parameter.name(), " is wanted in two layouts"));
  }
  parameter.compute_ = layout;
}

void ParameterBlock::materialise(const Rank& rank, Zero zero, DType master, DType compute,
                                 std::uint64_t seed) {
  for (const auto& parameter : parameters_) {
    require(parameter->compute_.global == parameter->shape_,
            "a parameter is not used by any operation of its block");
    AxisSet axes = 0;
    for (int axis = 0; axis < rank.mesh.shape().axes; ++axis) {
      const bool cuts = axis != Mesh::kData || zero == Zero::kParameters;
      if (cuts && !parameter->compute_.placements[axis].is_shard()) axes |= axis_bit(axis);
    }
    axes = rank.mesh.active(axes);
    auto group = std::find_if(groups_.begin(), groups_.end(), [&](const auto& g) { return g->takes(axes); });
    if (group == groups_.end()) {
      groups_.push_back(std::make_unique<ParameterGroup>(rank, axes, zero, master, compute));
      group = groups_.end() - 1;
    }
    (*group)->add(*parameter);
  }
  for (auto& group : groups_) group->materialise(seed);
}

void ParameterBlock::acquire() {
  for (auto& group : groups_) group->acquire();
}
void ParameterBlock::release() {
  for (auto& group : groups_) group->release();
}
void ParameterBlock::begin_gradients() {
  for (auto& group : groups_) group->begin_gradients();
}
void ParameterBlock::finish_gradients() {
  for (auto& group : groups_) group->finish_gradients();
}
void ParameterBlock::start_synchronise_gradients() {
  for (auto& group : groups_) group->start_synchronise_gradients();
}
void ParameterBlock::forget_pass() {
  for (auto& group : groups_) group->forget_pass();
}

}  // namespace jigsaw::inline autograd
