#include "comm/call.h"

#include <array>
#include <numeric>

#include "base/text.h"

namespace jigsaw::inline comm {

const char* name(Collective kind) {
  static constexpr std::array<const char*, kKinds> kNames = {
      "all_gather", "reduce_scatter", "all_reduce", "all_to_all", "broadcast", "exchange", "control"};
  return kNames[static_cast<std::size_t>(kind)];
}

const char* name(Control control) {
  static constexpr std::array<const char*, 4> kNames = {"all_reduce", "gather", "scatter", "broadcast"};
  return kNames[static_cast<std::size_t>(control)];
}

std::int64_t Call::global_count() const {
  switch (kind) {
    case Collective::kAllGather:
      return result_shape.count();
    case Collective::kReduceScatter:
    case Collective::kAllReduce:
    case Collective::kBroadcast:
      return send.count();
    default:
      return 0;
  }
}

std::string Call::describe() const {
  if (kind == Collective::kControl) {
    return concat("control ", jigsaw::name(control), " #", sequence,
                  control == Control::kReduce ? concat(" of ", values.size(), " values") : "");
  }
  return concat(name(kind), " #", sequence, " of ", send.count(), " ", jigsaw::name(send.dtype()));
}

std::vector<std::int64_t> offsets(const std::vector<std::int64_t>& counts) {
  std::vector<std::int64_t> result(counts.size());
  std::exclusive_scan(counts.begin(), counts.end(), result.begin(), std::int64_t{0});
  return result;
}

}  // namespace jigsaw::inline comm
