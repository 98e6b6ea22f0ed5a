#include "verify/comparison.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline verify {

void Apart::keep_worse(const Apart& other) {
  const auto badness = [](const Apart& a) {
    if (std::isnan(a.difference)) return HUGE_VAL;
    return a.difference > 0 ? a.difference / std::max(a.tolerance, 1e-300) : 0.0;
  };
  if (other.of > of || (other.of == of && badness(other) >= badness(*this))) *this = other;
}

namespace {

using Parts = std::map<std::string, std::vector<KeptPart>>;

void append(std::string& text, std::int64_t number) {
  char raw[sizeof number];
  std::memcpy(raw, &number, sizeof number);
  text.append(raw, sizeof number);
}

std::int64_t take(const std::string& text, std::size_t& at) {
  std::int64_t number = 0;
  std::memcpy(&number, text.data() + at, sizeof number);
  at += sizeof number;
  return number;
}

/// A parameter's parts as one text: box, run of elements, bytes.
std::string packed(const Parts* all, const std::string& name) {
  std::string text;
  if (all == nullptr || !all->contains(name)) return text;
  for (const KeptPart& part : all->at(name)) {
    append(text, part.box.extent.rank());
    for (int d = 0; d < part.box.extent.rank(); ++d) {
      append(text, part.box.begin[d]);
      append(text, part.box.extent[d]);
    }
    append(text, part.first);
    append(text, part.count);
    append(text, std::ssize(part.bytes));
    text += part.bytes;
  }
  return text;
}

template <typename T>
void paste(const char* bytes, std::int64_t count, const Shape& shape, const Box& box, std::int64_t first,
           std::vector<double>& whole) {
  for_each_global_index(shape, box, first, count, [&](std::int64_t i, std::int64_t index) {
    T value = 0;
    std::memcpy(&value, bytes + static_cast<std::size_t>(i) * sizeof value, sizeof value);
    whole[static_cast<std::size_t>(index)] = value;
  });
}

void unpack(const std::string& text, const Shape& shape, std::vector<double>& whole) {
  for (std::size_t at = 0; at < text.size();) {
    const auto rank = static_cast<int>(take(text, at));
    Box box{Shape::filled(rank, 0), Shape::filled(rank, 0)};
    for (int d = 0; d < rank; ++d) {
      box.begin[d] = take(text, at);
      box.extent[d] = take(text, at);
    }
    const std::int64_t first = take(text, at), count = take(text, at), bytes = take(text, at);
    const char* const begin = text.data() + at;
    if (bytes == count * static_cast<std::int64_t>(sizeof(double))) {
      paste<double>(begin, count, shape, box, first, whole);
    } else {
      paste<float>(begin, count, shape, box, first, whole);
    }
    at += static_cast<std::size_t>(bytes);
  }
}

/// The whole of it on rank 0; elements that no rank tells are no number. Elsewhere nothing. Collective.
std::vector<double> gathered(Communicator& world, const Parts* parts, const RecordedParameter& parameter) {
  const std::vector<std::string> texts = world.gather_text(packed(parts, parameter.name));
  if (world.rank() != 0) return {};
  std::vector<double> whole(static_cast<std::size_t>(parameter.shape.count()), NAN);
  for (const std::string& text : texts) unpack(text, parameter.shape, whole);
  return whole;
}

double norm(const std::vector<double>& values) {
  double squares = 0;
  for (const double x : values) squares += x * x;
  return std::sqrt(squares);
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i) squares += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(squares);
}

/// A value of three runs, whole, on rank 0.
struct Three {
  std::vector<double> tested, reference, perturbed;

  /// @param noise  this perturbed run is added.
  /// @param least  what counts as nothing.
  /// @param instead  the norm of all gradients, by which one is measured that is zero everywhere in the
  ///                 reference, and which bounds its noise; 0: of what is no gradient.
  Apart apart(Noise& noise, double relative, double least, double instead) const {
    noise.add(distance(perturbed, reference));
    const double size = norm(reference), apart = distance(tested, reference);
    if (size == 0 && apart == 0) return {0, 0, tested.empty() ? Apart::Of::kNothing : Apart::Of::kZeros};
    const double unit = size > 0 ? size : instead > 0 ? instead : 1;
    double noisy = noise.allowed();
    if (instead > 0) noisy = std::min(noisy, Tolerances::kMostNoise * instead);
    return {apart / unit, (std::max(relative * size, noisy) + least) / unit, Apart::Of::kValues};
  }
  /// Only these elements.
  void keep(const std::vector<bool>& mask) {
    for (std::vector<double>* values : {&tested, &reference, &perturbed}) {
      std::size_t kept = 0;
      for (std::size_t i = 0; i < mask.size(); ++i) {
        if (mask[i]) (*values)[kept++] = (*values)[i];
      }
      values->resize(kept);
    }
  }
};

class Comparer {
 public:
  Comparer(Communicator& world, const ComparedRuns& runs, Precision precision, RunNoise& noise)
      : world_(world),
        runs_(runs),
        precision_(precision),
        tolerances_(precision, *runs.tested),
        noise_(noise) {
    const std::size_t parameters = runs.tested->parameters.size();
    parts_.resize(parameters);
    moved_.resize(parameters);
    wandered_.resize(parameters);
    noise_.resize(runs.tested->steps.size());
    for (StepNoise& of_step : noise_) {
      of_step.gradients.resize(parameters);
      of_step.updates.resize(parameters);
    }
  }

  Comparison run() {
    for (const RecordedParameter& parameter : runs_.tested->parameters) {
      result_.parameters.push_back({.name = parameter.name});
      masks_.emplace_back(world_.rank() == 0 ? parameter.shape.count() : 0, true);
    }
    for (std::size_t step = 0; step < runs_.tested->steps.size(); ++step) {
      const std::string of_parameters = compare_parameters(step);
      std::string failure = compare_loss(step);
      if (failure.empty()) failure = of_parameters;
      const double failed = world_.all_reduce(std::array{failure.empty() ? 0.0 : 1.0}, ReduceOp::kMax)[0];
      if (failed == 0 || result_.first_failing > 0) continue;
      result_.first_failing = static_cast<int>(step) + 1;
      result_.first_failure = concat("step ", step + 1, ": ", failure);
    }
    return std::move(result_);
  }

 private:
  const RecordedStep* step_of(const RecordedRun* run, std::size_t step) const {
    return run == nullptr ? nullptr : &run->steps[step];
  }

  std::string compare_loss(std::size_t step) {
    if (world_.rank() != 0) return "";
    const double tested = runs_.tested->steps[step].loss, reference = runs_.reference->steps[step].loss,
                 perturbed = runs_.perturbed->steps[step].loss;
    const Three three{{tested}, {reference}, {perturbed}};
    const Apart apart = three.apart(noise_[step].loss, tolerances_.of_loss(), loss_moved_, 0);
    result_.losses.push_back({tested, reference, apart});
    return apart.within() ? "" : "the loss";
  }

  Three gather(std::size_t step, const RecordedParameter& parameter, Parts RecordedStep::*kind) const {
    const auto of = [&](const RecordedRun* run) {
      const RecordedStep* const recorded = step_of(run, step);
      return gathered(world_, recorded == nullptr ? nullptr : &(recorded->*kind), parameter);
    };
    Three three;
    three.tested = of(runs_.tested);
    three.reference = of(runs_.reference);
    three.perturbed = of(runs_.perturbed);
    return three;
  }

  std::string compare_parameters(std::size_t step) {
    const double total = gradient_norm(step);
    const std::vector<double> stored = stored_sizes(step);
    std::string failure;
    loss_moved_ = 0;
    for (std::size_t p = 0; p < runs_.tested->parameters.size(); ++p) {
      const RecordedParameter& parameter = runs_.tested->parameters[p];
      const Three gradient = gather(step, parameter, &RecordedStep::gradients);
      Three update = gather(step, parameter, &RecordedStep::updates);
      if (world_.rank() != 0) continue;
      ComparedParameter& compared = result_.parameters[p];
      Noise& of_gradients = noise_[step].gradients[p];
      const double relative = tolerances_.of_gradient(parameter.terms),
                   least = tolerances_.of_all_gradients(total), size = norm(gradient.reference);
      const Apart of_gradient = gradient.apart(of_gradients, relative, least, total);
      compared.gradient.keep_worse(of_gradient);
      if (failure.empty() && !of_gradient.within()) failure = "the gradient of " + parameter.name;
      loss_moved_ += moved_by_parameter(gradient, p);
      choose(gradient, of_gradients, masks_[p]);
      const double moved = moved_by_rounding(gradient.reference, update.reference, least, p);
      update.keep(masks_[p]);
      const auto kept = static_cast<double>(update.tested.size()),
                 all = static_cast<double>(std::max<std::size_t>(masks_[p].size(), 1));
      compared.compared = std::min(compared.compared, kept / all);
      // An update differs by the part by which its gradient does, or did: moments hold those of all steps.
      parts_[p] = std::max(parts_[p], relative + (size > 0 ? least / size : 0));
      const Apart of_update =
          update.apart(noise_[step].updates[p], parts_[p], tolerances_.of_stored(stored[p]) + moved, 0);
      compared.update.keep_worse(of_update);
      if (failure.empty() && !of_update.within()) failure = "the update of " + parameter.name;
    }
    return failure;
  }

  double gradient_norm(std::size_t step) const {
    double squares = 0;
    if (const RecordedStep* const recorded = step_of(runs_.reference, step)) {
      for (const auto& [name, parts] : recorded->gradients) {
        for (const KeptPart& part : parts) {
          const Shape flat{part.count};
          std::vector<double> values(static_cast<std::size_t>(part.count));
          const bool wide = std::ssize(part.bytes) == part.count * std::ptrdiff_t{8};
          const Box box = Box::whole(flat);
          if (wide) {
            paste<double>(part.bytes.data(), part.count, flat, box, 0, values);
          } else {
            paste<float>(part.bytes.data(), part.count, flat, box, 0, values);
          }
          squares += std::pow(norm(values), 2);
        }
      }
    }
    return std::sqrt(world_.all_reduce(std::array{squares}, ReduceOp::kSum)[0]);
  }

  /// Root mean square of each parameter behind a step.
  std::vector<double> stored_sizes(std::size_t step) const {
    const RecordedStep* const recorded = step_of(runs_.reference, step);
    std::vector<double> sizes;
    for (const RecordedParameter& parameter : runs_.tested->parameters) {
      const bool known = recorded != nullptr && recorded->squares.contains(parameter.name);
      sizes.push_back(known ? recorded->squares.at(parameter.name) : 0);
    }
    if (!sizes.empty()) sizes = world_.all_reduce(sizes, ReduceOp::kSum);
    for (std::size_t p = 0; p < sizes.size(); ++p) {
      const auto count = std::max<std::int64_t>(runs_.tested->parameters[p].shape.count(), 1);
      sizes[p] = std::sqrt(sizes[p] / static_cast<double>(count));
    }
    return sizes;
  }

  /// How far a parameter's update may be moved by what its gradient may differ by, element by element: where
  /// few large terms cancel, that may be more than the element itself, though perturbed runs do not move it.
  /// @param least  of the whole gradient, absolute.
  double moved_by_rounding(const std::vector<double>& gradient, const std::vector<double>& update,
                           double least, std::size_t p) {
    const double each = least / std::sqrt(static_cast<double>(std::max<std::size_t>(gradient.size(), 1)));
    std::vector<float>&moved = moved_[p], &wandered = wandered_[p];
    moved.resize(gradient.size(), 0);
    wandered.resize(gradient.size(), 0);
    double largest = 0, squares = 0;
    for (const double step : update) largest = std::max(largest, std::abs(step));
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      if (gradient[i] != 0) moved[i] = std::max(moved[i], static_cast<float>(each / std::abs(gradient[i])));
      // One that may as well have the other sign gives an update of any size, up or down.
      const double by = !masks_[p][i] || moved[i] > 0.5 ? 2 * largest : std::abs(moved[i] * update[i]);
      wandered[i] += static_cast<float>(by);
      if (masks_[p][i]) squares += by * by;
    }
    return std::sqrt(squares);
  }

  /// How far the loss may be moved by what rounding has moved of a parameter in the steps before: by the mean
  /// value theorem, with the larger gradient of the two runs for one between them. Of many elements, which go
  /// up or down by chance, a random walk.
  double moved_by_parameter(const Three& gradient, std::size_t p) const {
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < wandered_[p].size(); ++i) {
      const double by =
          wandered_[p][i] * std::max(std::abs(gradient.tested[i]), std::abs(gradient.reference[i]));
      sum += by;
      squares += by * by;
    }
    return std::min(sum, Tolerances::kFactor * std::sqrt(squares));
  }

  /// Where the gradient stands above its noise, or is nothing at all: elsewhere an update by the gradient's
  /// sign is arbitrary.
  void choose(const Three& gradient, const Noise& of_gradients, std::vector<bool>& mask) const {
    if (precision_ == Precision::kFloat64) return;
    const double noise =
        of_gradients.first() / std::sqrt(static_cast<double>(std::max<std::size_t>(mask.size(), 1)));
    for (std::size_t i = 0; i < mask.size(); ++i) {
      const double size = std::abs(gradient.reference[i]);
      const bool nothing = size == 0 && gradient.tested[i] == 0 && gradient.perturbed[i] == 0;
      mask[i] = mask[i] && (nothing || (size > 0 && size >= Tolerances::kAboveNoise * noise));
    }
  }

  Communicator& world_;
  const ComparedRuns& runs_;
  Precision precision_;
  Tolerances tolerances_;
  RunNoise& noise_;
  Comparison result_;
  std::vector<std::vector<bool>> masks_;
  std::vector<double> parts_;                 // of each parameter, see compare_parameters()
  std::vector<std::vector<float>> moved_;     // of each element of a parameter, the most of all steps
  std::vector<std::vector<float>> wandered_;  // how far rounding may have moved each by now
  double loss_moved_ = 0;                     // by that, at most, in the step that is compared
};

std::string line(const char* format, auto... values) {
  char text[300];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

/// Difference and tolerance, in two columns.
std::string columns(const Apart& apart) {
  switch (apart.of) {
    case Apart::Of::kNothing:
      return line("%9s %9s", "-", "-");
    case Apart::Of::kZeros:
      return line("%9s %9s", "all zero", "-");
    case Apart::Of::kValues:
      return line("%9.1e %9.1e", apart.difference, apart.tolerance);
  }
  fail("unknown comparison");
}

}  // namespace

Comparison compare(Communicator& world, const ComparedRuns& runs, Precision precision, RunNoise& noise) {
  return Comparer(world, runs, precision, noise).run();
}

std::string Comparison::to_text() const {
  std::string text;
  for (std::size_t step = 0; step < losses.size(); ++step) {
    const ComparedLoss& loss = losses[step];
    text += line("step %-3zu loss %.9g and %.9g: %.1e apart, tolerance %.1e%s\n", step + 1, loss.tested,
                 loss.reference, loss.apart.difference, loss.apart.tolerance,
                 loss.apart.within() ? "" : "  DIFFERS");
  }
  text += line("%-48s %9s %9s   %9s %9s %9s\n", "parameter (worst of all steps)", "gradient", "tolerance",
               "update", "tolerance", "compared");
  for (const ComparedParameter& each : parameters) {
    text += line("%-48s %s   %s %8.1f%%%s\n", each.name.c_str(), columns(each.gradient).c_str(),
                 columns(each.update).c_str(), 100 * each.compared,
                 each.gradient.within() && each.update.within() ? "" : "  DIFFERS");
  }
  const auto zeros = std::ranges::count_if(
      parameters, [](const ComparedParameter& each) { return each.gradient.of == Apart::Of::kZeros; });
  if (zeros > 0) {
    text += concat("all zero: ", zeros, " of ", parameters.size(), " gradients are zero everywhere on both ",
                   "meshes, in every step: equal, and no proof of what comes behind them; with more --steps ",
                   "they may have values\n");
  }
  return text;
}

}  // namespace jigsaw::inline verify
