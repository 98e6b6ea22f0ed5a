#include "comm/record/repeated_steps.h"

#include <map>
#include <optional>

#include "comm/record/recorded_transfers.h"

namespace jigsaw::inline comm {

void for_steps(Communicator& group, const std::vector<std::vector<std::int64_t>>& kinds,
               const std::function<void(std::size_t)>& work) {
  RecordedTransfers* const transfers = recorded_transfers(group);
  if (transfers == nullptr) {
    for (std::size_t step = 0; step < kinds.size(); ++step) work(step);
    return;
  }
  std::map<std::vector<std::int64_t>, std::size_t> numbers;
  std::vector<std::size_t> kind;
  for (const std::vector<std::int64_t>& each : kinds)
    kind.push_back(numbers.emplace(each, numbers.size()).first->second);
  std::vector<std::optional<RecordedTransfers::Step>> known(numbers.size());
  for (std::size_t step = 0; step < kind.size();) {
    // What is under way behind those that are counted must be what really is: that of the last one made.
    std::size_t end = step;
    while (step > 0 && end < kind.size() && known[kind[end]]) ++end;
    while (end > step && kind[end - 1] != kind[step - 1]) --end;
    for (; step < end; ++step) transfers->repeat(*known[kind[step]], group.traffic());
    if (step == kind.size()) return;
    const std::int64_t under_way = transfers->under_way();
    RecordedTransfers::Step made = transfers->record([&] { work(step); });
    if (made.whole && transfers->under_way() == under_way) known[kind[step]] = std::move(made);
    ++step;
  }
}

}  // namespace jigsaw::inline comm
