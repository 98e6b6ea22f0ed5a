#include "comm/levels.h"

#include <algorithm>
#include <numeric>

#include "comm/reduce.h"

namespace jigsaw::inline comm {

namespace {

int counterpart(const std::vector<int>& begin, int place, std::size_t part) {
  return begin[part] + std::min(place, begin[part + 1] - begin[part] - 1);
}

/// Where the parts of ranks [first, first + ranks) begin, and the end.
std::vector<int> part_begins(int first, int ranks) {
  std::vector<int> begin = {first};
  for (const std::int64_t size : even_counts(ranks, std::min(ranks, Level::kParts))) {
    begin.push_back(begin.back() + static_cast<int>(size));
  }
  return begin;
}

std::vector<Level> first_levels(std::size_t count, int ranks, int rank) {
  std::vector<Level> all = levels(ranks, rank);
  all.resize(count);
  return all;
}

/// Bytes of pieces [begin, end).
double bytes_of(const std::vector<std::int64_t>& counts, int begin, int end, std::int64_t element) {
  return static_cast<double>(element *
                             std::accumulate(counts.begin() + begin, counts.begin() + end, std::int64_t{0}));
}

Sent sent_to_reduce(const std::vector<Level>& all, const std::vector<std::int64_t>& counts,
                    std::int64_t element) {
  Sent sent;
  for (const Level& level : all) {
    for (int part = 0; part < level.parts(); ++part) {
      const auto p = static_cast<std::size_t>(part);
      const double bytes = bytes_of(counts, level.begin[p], level.begin[p + 1], element);
      if (part != level.own && bytes > 0) sent += {1, bytes};
    }
  }
  return sent;
}

Sent sent_to_gather(const std::vector<Level>& all, const std::vector<std::int64_t>& counts,
                    std::int64_t element) {
  Sent sent;
  for (const Level& level : all) {
    const auto own = static_cast<std::size_t>(level.own);
    const double bytes = bytes_of(counts, level.begin[own], level.begin[own + 1], element);
    const auto messages = std::ssize(level.sources);
    if (bytes > 0) sent += {messages, bytes * static_cast<double>(messages)};
  }
  return sent;
}

/// The whole goes to every source of every level.
Sent sent_whole(const std::vector<Level>& all, double bytes) {
  Sent sent;
  for (const Level& level : all) {
    const auto messages = std::ssize(level.sources);
    sent += {messages, bytes * static_cast<double>(messages)};
  }
  return sent;
}

}  // namespace

Sent& Sent::operator+=(const Sent& other) {
  messages += other.messages;
  bytes += other.bytes;
  return *this;
}

std::vector<Level> levels(int ranks, int rank) {
  std::vector<Level> result;
  int first = 0;
  while (ranks > 1) {
    Level level{part_begins(first, ranks), 0, {}, {}};
    while (level.begin[static_cast<std::size_t>(level.own) + 1] <= rank) ++level.own;
    const auto own = static_cast<std::size_t>(level.own);
    const int place = rank - level.begin[own];
    for (std::size_t part = 0; part + 1 < level.begin.size(); ++part) {
      level.counterparts.push_back(part == own ? rank : counterpart(level.begin, place, part));
    }
    for (const int other : summands(level, rank)) {
      if (other != rank) level.sources.push_back(other);
    }
    first = level.begin[own];
    ranks = level.begin[own + 1] - first;
    result.push_back(std::move(level));
  }
  return result;
}

std::vector<int> summands(const Level& level, int rank) {
  std::size_t own = 0;
  while (level.begin[own + 1] <= rank) ++own;
  std::vector<int> result;
  for (std::size_t part = 0; part + 1 < level.begin.size(); ++part) {
    if (part == own) {
      result.push_back(rank);
      continue;
    }
    const int size = level.begin[part + 1] - level.begin[part], place = rank - level.begin[own];
    const bool last = rank + 1 == level.begin[own + 1];
    for (int other = place; other < (last ? size : std::min(size, place + 1)); ++other) {
      result.push_back(level.begin[part] + other);
    }
  }
  return result;
}

std::vector<std::vector<std::vector<int>>> forwarded_from(const std::vector<Level>& own, int ranks,
                                                          int rank) {
  std::vector<std::vector<std::vector<int>>> result;
  for (std::size_t l = 0; l < own.size(); ++l) {
    std::vector<std::vector<int>> brought;
    for (const int from : summands(own[l], rank)) {
      std::vector<int>& held = brought.emplace_back();
      if (l == 0) {
        held = {from};
        continue;
      }
      // What `from` holds by then; of this rank that is known.
      const auto before =
          from == rank ? result.back() : forwarded_from(first_levels(l, ranks, from), ranks, from).back();
      for (const std::vector<int>& part : before) held.insert(held.end(), part.begin(), part.end());
    }
    result.push_back(std::move(brought));
  }
  return result;
}

/// To each counterpart what this rank then holds for each of its part.
Sent sent_to_forward(int rank, int ranks) {
  Sent sent;
  double held = 1;
  const std::vector<Level> all = levels(ranks, rank);
  const auto brought = forwarded_from(all, ranks, rank);
  for (std::size_t l = 0; l < all.size(); ++l) {
    for (int part = 0; part < all[l].parts(); ++part) {
      const auto p = static_cast<std::size_t>(part);
      if (part != all[l].own) sent += {1, held * (all[l].begin[p + 1] - all[l].begin[p])};
    }
    held = 0;
    for (const std::vector<int>& from : brought[l]) held += static_cast<double>(from.size());
  }
  return sent;
}

Forwarding forwarding(int ranks, double peers, double block_bytes) {
  Forwarding result{false, most_messages(Collective::kAllGather, ranks, 0), 0};
  // At each level all blocks travel but those of the own part.
  for (int left = ranks; left > 1; left = (left + Level::kParts - 1) / Level::kParts) {
    result.bytes += block_bytes * ranks * (1 - 1.0 / std::min(left, Level::kParts));
  }
  result.worth_it =
      result.messages * kBytesOfAMessage + result.bytes < peers * (kBytesOfAMessage + block_bytes);
  return result;
}

Sent sent_by(const Call& call, int rank, int ranks) {
  // An exchange has none, and of rings there are many.
  const bool by_levels = call.kind == Collective::kAllGather || call.kind == Collective::kReduceScatter ||
                         call.kind == Collective::kAllReduce || call.kind == Collective::kControl;
  const std::vector<Level> all = by_levels ? levels(ranks, rank) : std::vector<Level>();
  const std::int64_t element = call.send.defined() ? size_of(call.send.dtype()) : 1;
  Sent sent;
  switch (call.kind) {
    case Collective::kAllGather:
      return sent_to_gather(all, call.counts, element);
    case Collective::kReduceScatter:
      return sent_to_reduce(all, call.counts, element);
    case Collective::kAllReduce: {
      if (call.send.bytes() <= kSmallReduceBytes)
        return sent_whole(all, static_cast<double>(call.send.bytes()));
      const std::vector<std::int64_t> counts = even_counts(call.send.count(), ranks);
      sent = sent_to_reduce(all, counts, element);
      return sent += sent_to_gather(all, counts, element);
    }
    case Collective::kAllToAll:
      if (call.block > 0) {
        sent = sent_to_forward(rank, ranks);
        return {sent.messages, sent.bytes * static_cast<double>(call.block * element)};
      }
      for (int peer = 0; peer < ranks; ++peer) {
        const std::int64_t count = call.counts[static_cast<std::size_t>(peer)];
        if (peer != rank && count > 0) sent += {1, static_cast<double>(count * element)};
      }
      return sent;
    case Collective::kBroadcast:
      return sent_by_texts(Control::kBroadcast, call.root, rank, ranks, {call.send.bytes()});
    case Collective::kExchange:
      for (const Message& message : call.sends) {
        if (message.peer != rank) sent += {1, static_cast<double>(message.count * element)};
      }
      return sent;
    case Collective::kControl:
      return sent_whole(all, static_cast<double>(call.values.size() * sizeof(double)));
  }
  return sent;
}

Tree tree(int ranks, int rank) {
  Tree result{-1, ranks, {}};
  bool speaks = rank == 0;
  for (const Level& level : levels(ranks, rank)) {
    const auto own = static_cast<std::size_t>(level.own);
    if (speaks) {
      for (std::size_t part = 1; part + 1 < level.begin.size(); ++part)
        result.branches.emplace_back(level.begin[part], level.begin[part + 1]);
    } else if (level.begin[own] == rank) {
      speaks = true;
      result.parent = level.begin.front();
      result.end = level.begin[own + 1];
    }
  }
  std::ranges::sort(result.branches);
  return result;
}

Sent sent_by_texts(Control control, int root, int rank, int ranks,
                   const std::vector<std::int64_t>& text_bytes) {
  const int own = place_from(root, rank, ranks);
  const Tree branch = tree(ranks, own);
  const auto bundle = [&](int begin, int end) {
    double bytes = 0;
    for (int place = begin; place < end; ++place) {
      const auto at = static_cast<std::size_t>(rank_at(root, place, ranks));
      bytes += sizeof(std::int64_t) + static_cast<double>(text_bytes[text_bytes.size() == 1 ? 0 : at]);
    }
    return bytes;
  };
  if (control == Control::kGather) return own == 0 ? Sent{} : Sent{1, bundle(own, branch.end)};
  Sent sent;
  for (const auto& [child, end] : branch.branches) {
    sent += {1, control == Control::kScatter ? bundle(child, end) : static_cast<double>(text_bytes.front())};
  }
  return sent;
}

int most_messages(Collective kind, int ranks, double bytes) {
  if (kind == Collective::kAllToAll) return ranks - 1;
  if (kind == Collective::kExchange) return 0;
  int messages = 0;
  for (int left = ranks; left > 1; left = (left + Level::kParts - 1) / Level::kParts) {
    messages += std::min(left, Level::kParts) - 1;
  }
  const bool twice = kind == Collective::kAllReduce && bytes > static_cast<double>(kSmallReduceBytes);
  return twice ? 2 * messages : messages;
}

}  // namespace jigsaw::inline comm
