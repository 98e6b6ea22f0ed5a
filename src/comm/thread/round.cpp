#include "comm/thread/round.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "comm/reduce.h"

namespace jigsaw {

namespace {

void copy(const Array& from, std::int64_t from_first, const Array& to, std::int64_t to_first,
          std::int64_t count) {
  const std::int64_t size = size_of(from.dtype());
  std::memcpy(to.raw() + to_first * size, from.raw() + from_first * size,
              static_cast<std::size_t>(count * size));
}

std::vector<Message> with_peer(const std::vector<Message>& messages, std::size_t peer) {
  std::vector<Message> found;
  std::copy_if(messages.begin(), messages.end(), std::back_inserter(found),
               [peer](const Message& message) { return message.peer == static_cast<int>(peer); });
  return found;
}

/// What two ranks must agree on, whatever the kind.
bool agree(const Call& a, const Call& b) {
  if (a.kind != b.kind) return false;
  if (a.kind == Collective::kControl) return true;
  const bool pieces = a.kind == Collective::kAllGather || a.kind == Collective::kReduceScatter;
  return a.op == b.op && a.root == b.root && a.send.dtype() == b.send.dtype() &&
         a.global_count() == b.global_count() && (!pieces || a.counts == b.counts);
}

}  // namespace

std::string Round::arrive(int rank, Call call, Array result, Clock::time_point ready) {
  const auto own = static_cast<std::size_t>(rank);
  for (std::size_t other = 0; other < calls_.size(); ++other) {
    if (calls_[other] && !agree(*calls_[other], call)) {
      return concat("rank ", names_[own], " called ", call.describe(), " where rank ", names_[other],
                    " called ", calls_[other]->describe(),
                    "; all must make the same call with the same counts");
    }
  }
  calls_[own] = std::move(call);
  results_[own] = std::move(result);
  ready_ = std::max(ready_, ready);
  ++arrived_;
  return complete() ? cross_check() : "";
}

std::string Round::cross_check() const {
  const Collective kind = calls_[0]->kind;
  for (std::size_t from = 0; from < calls_.size(); ++from) {
    for (std::size_t to = 0; to < calls_.size(); ++to) {
      if (kind == Collective::kExchange) {
        if (std::string wrong = check_messages(from, to); !wrong.empty()) return wrong;
      }
      if (kind == Collective::kAllToAll && calls_[from]->counts[to] != calls_[to]->receive_counts[from]) {
        return concat(calls_[from]->describe(), ": rank ", names_[from], " sends ", calls_[from]->counts[to],
                      " elements to rank ", names_[to], ", which expects ", calls_[to]->receive_counts[from]);
      }
    }
  }
  return "";
}

std::string Round::check_messages(std::size_t from, std::size_t to) const {
  const std::vector<Message> sends = with_peer(calls_[from]->sends, to);
  const std::vector<Message> receives = with_peer(calls_[to]->receives, from);
  if (std::equal(sends.begin(), sends.end(), receives.begin(), receives.end(),
                 [](const Message& a, const Message& b) { return a.count == b.count; })) {
    return "";
  }
  const auto counts = [](const std::vector<Message>& messages) {
    std::vector<std::int64_t> result;
    for (const Message& message : messages) result.push_back(message.count);
    return concat("[", join(result, ", "), "]");
  };
  return concat(calls_[from]->describe(), ": rank ", names_[from], " sends messages of ", counts(sends),
                " elements to rank ", names_[to], ", which expects ", counts(receives));
}

std::optional<int> Round::claim() {
  if (claimed_ == calls_.size()) return std::nullopt;
  return static_cast<int>(claimed_++);
}

Array Round::take(int rank) {
  const auto own = static_cast<std::size_t>(rank);
  calls_[own]->send = Array();
  return std::move(results_[own]);
}

void Round::run(int index) const {
  const auto own = static_cast<std::size_t>(index);
  switch (calls_[own]->kind) {
    case Collective::kAllGather:
      return gather(own);
    case Collective::kReduceScatter:
      return reduce_piece(own);
    case Collective::kAllReduce:
      return reduce_part(own);
    case Collective::kAllToAll:
      return collect(own);
    case Collective::kBroadcast: {
      const int root = calls_[own]->root;
      const Array& whole = calls_[static_cast<std::size_t>(root)]->send;
      if (index != root) copy(whole, 0, results_[own], 0, whole.count());
      return;
    }
    case Collective::kExchange:
      return receive_messages(own);
    case Collective::kControl:
      return;
  }
}

void Round::gather(std::size_t to) const {
  std::int64_t first = 0;
  for (const auto& call : calls_) {
    copy(call->send, 0, results_[to], first, call->send.count());
    first += call->send.count();
  }
}

void Round::reduce_piece(std::size_t to) const {
  const Call& own = *calls_[to];
  const std::int64_t first = offsets(own.counts)[to] * size_of(own.send.dtype());
  std::vector<const std::byte*> pieces;
  for (const auto& call : calls_) pieces.push_back(call->send.raw() + first);
  reduce_in_order(pieces, own.counts[to], own.send.dtype(), own.op, results_[to].raw());
}

void Round::reduce_part(std::size_t part) const {
  const Call& own = *calls_[part];
  const std::vector<std::int64_t> counts = even_counts(own.send.count(), static_cast<int>(calls_.size()));
  const std::int64_t first = offsets(counts)[part];
  const std::int64_t first_byte = first * size_of(own.send.dtype());
  std::vector<const std::byte*> pieces;
  for (const auto& call : calls_) pieces.push_back(call->send.raw() + first_byte);
  reduce_in_order(pieces, counts[part], own.send.dtype(), own.op, results_[part].raw() + first_byte);
  for (std::size_t to = 0; to < results_.size(); ++to) {
    if (to != part) copy(results_[part], first, results_[to], first, counts[part]);
  }
}

void Round::collect(std::size_t to) const {
  std::int64_t first = 0;
  for (const auto& call : calls_) {
    copy(call->send, offsets(call->counts)[to], results_[to], first, call->counts[to]);
    first += call->counts[to];
  }
}

void Round::receive_messages(std::size_t to) const {
  for (std::size_t from = 0; from < calls_.size(); ++from) {
    const std::vector<Message> sends = with_peer(calls_[from]->sends, to);
    const std::vector<Message> receives = with_peer(calls_[to]->receives, from);
    for (std::size_t i = 0; i < sends.size(); ++i) {
      copy(calls_[from]->send, sends[i].first, results_[to], receives[i].first, sends[i].count);
    }
  }
}

}  // namespace jigsaw
