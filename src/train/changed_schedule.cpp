#include "train/changed_schedule.h"

#include <algorithm>
#include <cmath>
#include <exception>

#include "base/text.h"
#include "optim/registry.h"

namespace jigsaw::inline train {
namespace {

double rate_of(const Configuration& configuration, std::int64_t step, std::int64_t steps) {
  const double rate = common_options(configuration.optimizer).learning_rate;
  return rate * make_schedule(configuration.schedule, rate)->factor(step, steps);
}

}  // namespace

std::string changed_schedule(const Json& extra, const Configuration& now, std::int64_t step,
                             std::int64_t steps) {
  constexpr double kWorthAWord = 0.01;  // of the rate without a schedule
  if (step < 1 || step >= steps) return "";
  Configuration before;
  std::int64_t steps_before = 0;
  try {
    before = parse<Configuration>(extra.at("configuration"));
    steps_before = extra.at("schedule").at("steps").get<std::int64_t>();
  } catch (const std::exception&) {
    return "";  // of another version
  }
  // Behind its last step a schedule goes on with that.
  const double is = rate_of(now, step + 1, steps),
               would_be = rate_of(before, std::min(step + 1, steps_before), steps_before);
  const double whole =
      std::max(common_options(now.optimizer).learning_rate, common_options(before.optimizer).learning_rate);
  if (std::abs(is - would_be) <= kWorthAWord * whole) return "";
  return concat("the schedule is another one from here on",
                steps == steps_before ? "" : concat(", of ", steps, " steps in place of ", steps_before),
                ": the learning rate of step ", step, " was ", rate_of(before, step, steps_before),
                ", and that of step ", step + 1, " is ", is);
}

}  // namespace jigsaw::inline train
