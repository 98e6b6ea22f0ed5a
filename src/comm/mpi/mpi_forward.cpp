#include "comm/mpi/mpi_forward.h"

#include "array/copy_bytes.h"
#include "array/host_view.h"

namespace jigsaw::inline comm {

namespace {

/// Blocks under way: [ranks whose they are, ranks of the part that they are for], each of `bytes`.
struct Blocks {
  Array memory;
  std::vector<int> from;
  int begin = 0, count = 0;  ///< of the part
  std::int64_t bytes = 0;

  Blocks(const Context& host, DType dtype, std::int64_t block, std::vector<int> whose, int first, int end)
      : memory(host, {std::ssize(whose) * (end - first) * block}, dtype, Purpose::kWorkspace),
        from(std::move(whose)),
        begin(first),
        count(end - first),
        bytes(block * size_of(dtype)) {}

  std::int64_t row_bytes() const { return count * bytes; }
  std::byte* at(std::size_t row, int rank) const {
    return host_memory(memory) + static_cast<std::int64_t>(row) * row_bytes() + (rank - begin) * bytes;
  }
};

/// What is held for the ranks of a part, packed for its counterpart.
Array blocks_for(const Context& host, const Blocks& held, int begin, int end) {
  const std::int64_t row = (end - begin) * held.bytes, element = size_of(held.memory.dtype());
  Array packed(host, {std::ssize(held.from) * row / element}, held.memory.dtype(), Purpose::kWorkspace);
  for (std::size_t r = 0; r < held.from.size(); ++r)
    copy_bytes(host_memory(packed) + static_cast<std::int64_t>(r) * row, held.at(r, begin), row);
  return packed;
}

/// Receives what sources hold for the own part, beside what this rank has for it.
void receive_level(MpiTransfer& transfer, const ForwardRoute& route, std::size_t l, const Blocks& held,
                   const Blocks& next) {
  const std::int64_t element = size_of(next.memory.dtype());
  std::size_t row = 0, number = 0;
  for (const int rank : summands(route.levels[l], route.rank)) {
    const std::size_t rows = route.brought[l][number++].size();
    if (rank != route.rank) {
      transfer.receive(rank, next.at(row, next.begin),
                       static_cast<std::int64_t>(rows) * next.row_bytes() / element);
    } else {
      for (std::size_t r = 0; r < rows; ++r)
        copy_bytes(next.at(row + r, next.begin), held.at(r, next.begin), next.row_bytes());
    }
    row += rows;
  }
}

}  // namespace

void forward_blocks(MpiTransfer& transfer, const Call& call, const Array& result,
                    const std::shared_ptr<const ForwardRoute>& route, const Context& host) {
  const DType dtype = call.send.dtype();
  const std::int64_t element = size_of(dtype);
  const auto held =
      std::make_shared<Blocks>(host, dtype, call.block, std::vector<int>{route->rank}, 0, route->ranks);
  const std::vector<std::int64_t> first = offsets(call.counts);
  transfer.read([=, &call] {
    for (int peer = 0; peer < route->ranks; ++peer) {
      const auto p = static_cast<std::size_t>(peer);
      copy_bytes(held->at(0, peer), host_memory(call.send) + first[p] * element, call.counts[p] * element);
    }
  });
  for (std::size_t l = 0; l < route->levels.size(); ++l) {
    transfer.then([=, &transfer, &call, &host] {
      const Level& level = route->levels[l];
      const auto own = static_cast<std::size_t>(level.own);
      std::vector<int> from;
      for (const std::vector<int>& brought : route->brought[l])
        from.insert(from.end(), brought.begin(), brought.end());
      const Blocks next(host, dtype, call.block, std::move(from), level.begin[own], level.begin[own + 1]);
      receive_level(transfer, *route, l, *held, next);
      // Each rank turns to the part after its own first, so that not all turn to the same one.
      for (int step = 1; step < level.parts(); ++step) {
        const auto part = static_cast<std::size_t>((level.own + step) % level.parts());
        const Array& packed = transfer.own(blocks_for(host, *held, level.begin[part], level.begin[part + 1]));
        transfer.send(level.counterparts[part], host_memory(packed), packed.count());
      }
      *held = next;
    });
  }
  transfer.then([=, &call] {
    const std::vector<std::int64_t> to = offsets(call.receive_counts);
    for (std::size_t row = 0; row < held->from.size(); ++row) {
      const auto from = static_cast<std::size_t>(held->from[row]);
      copy_bytes(host_memory(result) + to[from] * element, held->at(row, route->rank),
                 call.receive_counts[from] * element);
    }
  });
}

}  // namespace jigsaw::inline comm
