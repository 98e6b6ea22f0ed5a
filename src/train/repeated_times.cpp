#include "train/repeated_times.h"

#include <algorithm>

#include "base/progress_bar.h"
#include "comm/agreement.h"

namespace jigsaw::inline train {

void require_equal_repeats(Dataset& data, Communicator& world, Log& log) {
  FileSet& files = data.files();
  const DataOptions& options = data.options();
  std::vector<Period> periods = files.periods(options.train, "data.train");
  for (const Period& period : files.periods(options.valid, "data.valid")) periods.push_back(period);
  // Inputs may precede a period.
  const Time before = std::min<Time>(0, std::ranges::min(options.input_times));
  std::vector<std::pair<Field, Moment>> repeated;
  for (const Field& field : fields_in_time(data.channels())) {
    const bool cycle = files.between(field) == Between::kCycle;
    for (const Time time : files.repeated_times(field)) {
      const auto needs = [&](const Period& period) {
        return Period{period.first + before, period.last}.contains(time);
      };
      if (!cycle && std::ranges::none_of(periods, needs)) continue;
      for (std::int32_t member = 0; member < files.members_of(field); ++member)
        repeated.emplace_back(field, Moment(time, member));
    }
  }
  if (repeated.empty()) return;
  ProgressBar bar(log, "times that stand twice");
  const Box box = Box::whole(files.grid().shape());
  std::vector<double> values(static_cast<std::size_t>(box.extent.count()));
  const std::int64_t count = std::ssize(repeated), rank = world.rank(), ranks = world.size();
  together(world, [&] {
    for (std::int64_t i = rank * count / ranks; i < (rank + 1) * count / ranks; ++i) {
      const auto& [field, moment] = repeated[static_cast<std::size_t>(i)];
      files.read(field, moment, box, values);
      bar.update(i + 1, count);
    }
  });
}

}  // namespace jigsaw::inline train
