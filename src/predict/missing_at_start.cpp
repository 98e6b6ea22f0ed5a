#include "predict/missing_at_start.h"

#include <cmath>
#include <cstdio>
#include <optional>
#include <set>

#include "array/host_view.h"
#include "base/text.h"

namespace jigsaw::inline predict {

namespace {

/// Whether so large a part of a field is missing as was not in training.
bool is_odd(double missing, const std::optional<double>& trained) {
  constexpr double kLeast = 0.01, kMore = 0.5;  // of all points; of those that were missing in training
  if (missing == 1 || !trained) return missing == 1;
  return missing - *trained > kLeast && missing - *trained > kMore * *trained;
}

/// "99.8 %"
std::string percent(double part) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g %%", 100 * part);
  return text;
}

}  // namespace

MissingAtStart::MissingAtStart(const Dataset& data, std::size_t starts) : data_(&data) {
  for (std::vector<double>* counts : {&looked_, &found_})
    counts->assign(starts * data.channels().targets.size(), 0);
}

void MissingAtStart::note(std::size_t first, const Box& box, const Array& origin) {
  if (box.empty()) return;
  const HostView<const double> values(origin);
  const auto channels = static_cast<std::size_t>(box.extent[3]), targets = data_->channels().targets.size(),
             size = values.size() / static_cast<std::size_t>(box.extent[0]);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t start = first + static_cast<std::size_t>(box.begin[0]) + i / size,
                      at = start * targets + static_cast<std::size_t>(box.begin[3]) + i % channels;
    ++looked_[at];
    if (!std::isnan(values[i])) ++found_[at];
  }
}

std::vector<std::string> MissingAtStart::remarks(std::span<const Time> starts, Communicator& world) const {
  // What several ranks hold counts in both as often.
  const std::vector<double> looked = world.all_reduce(looked_, ReduceOp::kSum),
                            found = world.all_reduce(found_, ReduceOp::kSum);
  const std::vector<Channel>& targets = data_->channels().targets;
  std::vector<std::string> remarks;
  std::set<std::string> told;
  for (std::size_t c = 0; c < targets.size(); ++c) {
    if (targets[c].role != Role::kPrognostic) continue;
    const std::optional<double> trained = data_->statistics().of(targets[c].field).missing;
    std::vector<Time> odd;
    double first = 0;
    for (std::size_t start = 0; start < starts.size(); ++start) {
      const std::size_t at = start * targets.size() + c;
      const double missing = looked[at] > 0 ? 1 - found[at] / looked[at] : 1;
      if (!is_odd(missing, trained)) continue;
      if (odd.empty()) first = missing;
      odd.push_back(starts[start]);
    }
    if (odd.empty() || !told.insert(targets[c].field.variable).second) continue;
    remarks.push_back(
        concat(targets[c].name, " is missing ",
               first == 1 ? std::string("everywhere") : concat("at ", percent(first), " of the points"),
               " at ", data_->files().text_of(odd.front()),
               odd.size() > 1
                   ? concat(", and at ", odd.size() - 1, " more of ", counted(std::ssize(starts), "start"))
                   : std::string(),
               first == 1 ? "" : concat(", and was at ", percent(*trained), " in training"),
               "; the model was given its mean there"));
  }
  return remarks;
}

}  // namespace jigsaw::inline predict
