#include "parallel/collective_check.h"

#include <array>
#include <functional>
#include <numeric>

#include "array/transfer.h"
#include "base/text.h"
#include "kernels/pointwise.h"
#include "parallel/machine.h"

namespace jigsaw::inline parallel {

namespace {

using Counts = std::vector<std::int64_t>;

/// Element i of what a rank sends: so small that float32 has all sums.
double sent_number(int rank, std::int64_t i) {
  return static_cast<double>((31 * rank + 7 * i) % 61 - 30);
}

/// Tries the kinds one after the other and keeps what was wrong first.
class CollectiveCheck {
 public:
  explicit CollectiveCheck(Communicator& group) : group_(group) {
    for (int rank = 0; rank < group.size(); ++rank) pieces_.push_back(rank == 2 ? 0 : 3 + 5 * rank % 7);
  }

  std::string run() {
    // As activations travel, and as parameters and gradients do, which may have connections of their own.
    for (const Urgency urgency : {Urgency::kUrgent, Urgency::kBackground}) {
      gather(urgency);
      scatter_sum(urgency);
      for (const std::int64_t count : {5, 3001}) sum(count, urgency);  // small ones may go another way
    }
    transpose();
    broadcast();
    exchange();
    return failure_;
  }

 private:
  int own() const { return group_.rank(); }
  std::int64_t piece(int rank) const { return pieces_[static_cast<std::size_t>(rank)]; }
  Array sent(std::int64_t count) const {
    std::vector<double> numbers(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) numbers[static_cast<std::size_t>(i)] = sent_number(own(), i);
    return constant(group_.context(), {count}, DType::kFloat32, numbers);
  }
  double sum_of(std::int64_t i) const {
    double sum = 0;
    for (int rank = 0; rank < group_.size(); ++rank) sum += sent_number(rank, i);
    return sum;
  }
  void compare(Collective kind, const Array& result, const std::vector<double>& wanted) {
    const std::vector<double> found = download_values(group_.context(), result);
    const std::string what =
        concat(name(kind), " along ", group_.label(), " (", group_.size(), " ranks) gives ");
    if (found.size() != wanted.size())
      return note(concat(what, found.size(), " numbers in place of ", wanted.size()));
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (found[i] != wanted[i])
        return note(concat(what, found[i], " in place of ", wanted[i], " as number ", i));
    }
  }
  void note(const std::string& failure) {
    if (failure_.empty()) failure_ = failure;
  }

  void gather(Urgency urgency) {
    std::vector<double> wanted;
    for (int rank = 0; rank < group_.size(); ++rank) {
      for (std::int64_t i = 0; i < piece(rank); ++i) wanted.push_back(sent_number(rank, i));
    }
    compare(Collective::kAllGather,
            group_.start_all_gather(sent(piece(own())), pieces_, Purpose::kWorkspace, urgency).wait(),
            wanted);
  }
  void scatter_sum(Urgency urgency) {
    const std::int64_t first = offsets(pieces_)[static_cast<std::size_t>(own())];
    std::vector<double> wanted;
    for (std::int64_t i = 0; i < piece(own()); ++i) wanted.push_back(sum_of(first + i));
    const std::int64_t whole = std::accumulate(pieces_.begin(), pieces_.end(), std::int64_t{0});
    compare(Collective::kReduceScatter,
            group_.start_reduce_scatter(sent(whole), pieces_, ReduceOp::kSum, Purpose::kWorkspace, urgency)
                .wait(),
            wanted);
  }
  void sum(std::int64_t count, Urgency urgency) {
    std::vector<double> wanted;
    for (std::int64_t i = 0; i < count; ++i) wanted.push_back(sum_of(i));
    compare(Collective::kAllReduce,
            group_.start_all_reduce(sent(count), ReduceOp::kSum, Purpose::kWorkspace, urgency).wait(),
            wanted);
  }
  void transpose() {
    const auto counts = [&](const std::function<std::int64_t(int)>& count) {
      Counts all;
      for (int rank = 0; rank < group_.size(); ++rank) all.push_back(count(rank));
      return all;
    };
    const auto between = [](int from, int to) -> std::int64_t { return (from + 2 * to) % 4; };
    std::vector<double> wanted;
    for (int from = 0; from < group_.size(); ++from) {
      const Counts to = counts([&](int rank) { return between(from, rank); });
      const std::int64_t first = offsets(to)[static_cast<std::size_t>(own())];
      for (std::int64_t i = 0; i < between(from, own()); ++i) wanted.push_back(sent_number(from, first + i));
    }
    const Counts to = counts([&](int rank) { return between(own(), rank); }),
                 from = counts([&](int rank) { return between(rank, own()); });
    const std::int64_t whole = std::accumulate(to.begin(), to.end(), std::int64_t{0});
    compare(Collective::kAllToAll, group_.all_to_all(sent(whole), to, from), wanted);
  }
  void broadcast() {
    const int root = group_.size() - 1;
    constexpr std::int64_t kCount = 17;
    std::vector<double> wanted;
    for (std::int64_t i = 0; i < kCount; ++i) wanted.push_back(sent_number(root, i));
    compare(Collective::kBroadcast, group_.broadcast(sent(kCount), root), wanted);
  }
  /// To the next rank, from the one before.
  void exchange() {
    const int next = (own() + 1) % group_.size(), before = (own() + group_.size() - 1) % group_.size();
    const Message to{next, 0, 4 + own()}, from{before, 0, 4 + before};
    std::vector<double> wanted;
    for (std::int64_t i = 0; i < from.count; ++i) wanted.push_back(sent_number(before, i));
    compare(Collective::kExchange, group_.exchange(sent(to.count), {&to, 1}, {&from, 1}, from.count), wanted);
  }

  Communicator& group_;
  Counts pieces_;
  std::string failure_;
};

/// One call with arrays of so many bytes; made ready before it is timed.
std::function<void()> collective_call(const Rank& rank, Communicator& group, Collective kind,
                                      std::int64_t bytes) {
  const int size = group.size();
  const std::int64_t piece = bytes / 4 / size, whole = piece * size;
  const std::int64_t own = kind == Collective::kAllGather ? piece : whole;
  const Array send = filled(rank.context, {own}, DType::kFloat32, 1.0, Purpose::kWorkspace);
  const Counts counts(static_cast<std::size_t>(size), piece);
  switch (kind) {
    case Collective::kAllGather:
      return [&group, send, counts] { group.all_gather(send, counts); };
    case Collective::kReduceScatter:
      return [&group, send, counts] { group.reduce_scatter(send, counts); };
    case Collective::kAllReduce:
      return [&group, send] { group.all_reduce(send); };
    case Collective::kAllToAll:
      return [&group, send, counts] { group.all_to_all(send, counts, counts); };
    default:
      return [&group, send, size, whole] {
        const Message to{(group.rank() + 1) % size, 0, whole},
            from{(group.rank() + size - 1) % size, 0, whole};
        group.exchange(send, {&to, 1}, {&from, 1}, whole);
      };
  }
}

}  // namespace

std::string wrong_collective(Communicator& group) {
  return CollectiveCheck(group).run();
}

std::vector<CollectiveRate> collective_rates(const Rank& rank, int axis, std::int64_t most_bytes,
                                             double seconds) {
  constexpr int kTries = 5;
  constexpr std::array<std::int64_t, 3> kSizes = {std::int64_t{1} << 16, std::int64_t{1} << 21,
                                                  std::int64_t{1} << 26};
  constexpr double kLarger = static_cast<double>(kSizes[1]) / static_cast<double>(kSizes[0]);
  constexpr std::array kKinds = {Collective::kAllGather, Collective::kReduceScatter, Collective::kAllReduce,
                                 Collective::kAllToAll, Collective::kExchange};
  Communicator& group = rank.mesh.communicator(axis_bit(axis));
  std::vector<CollectiveRate> rates;
  for (std::size_t k = 0; k < kKinds.size(); ++k) {
    const double share = seconds / static_cast<double>(kKinds.size() - k);
    double spent = 0, expected = 0;
    for (const std::int64_t bytes : kSizes) {
      const bool smallest = bytes == kSizes.front();
      if (!smallest && (bytes > most_bytes || spent + expected > share)) break;
      const std::function<void()> call = collective_call(rank, group, kKinds[k], bytes);
      const double& sent = group.traffic().sent_bytes[static_cast<std::size_t>(kKinds[k])];
      const double before = sent, first = seconds_of(rank, 1, call), once = sent - before;
      // What takes long enough is not made faster by a second try.
      const bool long_enough = first > share / kTries;
      const double fastest = long_enough ? first : seconds_of(rank, kTries, call);
      rates.push_back({kKinds[k], bytes, once / fastest});
      spent += first + (long_enough ? 0 : kTries * fastest);
      expected = first * kLarger * (kTries + 1);
    }
    seconds -= spent;
  }
  return rates;
}

}  // namespace jigsaw::inline parallel
