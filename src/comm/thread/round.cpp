#include "comm/thread/round.h"

#include <algorithm>

#include "array/copy_bytes.h"
#include "array/host_view.h"
#include "base/text.h"
#include "comm/reduce.h"

namespace jigsaw::inline comm {

namespace {

void copy(const Array& from, std::int64_t from_first, const Array& to, std::int64_t to_first,
          std::int64_t count) {
  const std::int64_t size = size_of(from.dtype());
  copy_bytes(host_memory(to) + to_first * size, host_memory(from) + from_first * size, count * size);
}

std::vector<Message> with_peer(const std::vector<Message>& messages, std::size_t peer) {
  std::vector<Message> found;
  std::copy_if(messages.begin(), messages.end(), std::back_inserter(found),
               [peer](const Message& message) { return message.peer == static_cast<int>(peer); });
  return found;
}

/// Each peer once.
std::vector<std::size_t> peers_of(const std::vector<Message>& messages) {
  std::vector<std::size_t> peers;
  for (const Message& message : messages) peers.push_back(static_cast<std::size_t>(message.peer));
  std::ranges::sort(peers);
  peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
  return peers;
}

/// What two ranks must agree on, whatever the kind.
bool agree(const Call& a, const Call& b) {
  if (a.kind != b.kind) return false;
  if (a.kind == Collective::kControl) {
    return a.control == b.control && a.root == b.root && a.op == b.op && a.values.size() == b.values.size();
  }
  const bool pieces = a.kind == Collective::kAllGather || a.kind == Collective::kReduceScatter;
  return a.op == b.op && a.root == b.root && a.block == b.block && a.send.dtype() == b.send.dtype() &&
         a.global_count() == b.global_count() && (!pieces || a.counts == b.counts);
}

}  // namespace

/// Whoever agrees with the first agrees with all.
std::string Round::arrive(int rank, Call call, Array result, double sent) {
  const auto own = static_cast<std::size_t>(rank);
  if (!first_) first_ = rank;
  const auto first = static_cast<std::size_t>(*first_);
  if (first != own && !agree(*calls_[first], call)) {
    return concat("rank ", names_[own], " called ", call.describe(), " where rank ", names_[first],
                  " called ", calls_[first]->describe(),
                  "; all must make the same call with the same counts");
  }
  calls_[own] = std::move(call);
  results_[own] = std::move(result);
  sent_[own] = sent;
  ++arrived_;
  return complete() ? cross_check() : "";
}

std::string Round::cross_check() const {
  const Collective kind = calls_[0]->kind;
  for (std::size_t from = 0; from < calls_.size(); ++from) {
    if (kind == Collective::kExchange) {
      for (const std::size_t peer : peers_of(calls_[from]->sends)) {
        if (std::string wrong = check_messages(from, peer); !wrong.empty()) return wrong;
      }
      for (const std::size_t peer : peers_of(calls_[from]->receives)) {
        if (std::string wrong = check_messages(peer, from); !wrong.empty()) return wrong;
      }
    }
    for (std::size_t to = 0; kind == Collective::kAllToAll && to < calls_.size(); ++to) {
      if (calls_[from]->counts[to] == calls_[to]->receive_counts[from]) continue;
      return concat(calls_[from]->describe(), ": rank ", names_[from], " sends ", calls_[from]->counts[to],
                    " elements to rank ", names_[to], ", which expects ", calls_[to]->receive_counts[from]);
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

double Round::arrival(int rank) const {
  const auto own = static_cast<std::size_t>(rank);
  if (calls_[own]->kind != Collective::kExchange) return *std::max_element(sent_.begin(), sent_.end());
  double last = sent_[own];
  for (const Message& message : calls_[own]->receives)
    last = std::max(last, sent_[static_cast<std::size_t>(message.peer)]);
  return last;
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

Call Round::take_control(int rank) const {
  Call call = *calls_[static_cast<std::size_t>(rank)];
  const Call& root = *calls_[static_cast<std::size_t>(call.root)];
  if (call.control == Control::kReduce) call.values = values_;
  if (call.control == Control::kBroadcast) call.texts = root.texts;
  if (call.control == Control::kScatter) call.texts = {root.texts[static_cast<std::size_t>(rank)]};
  if (call.control != Control::kGather) return call;
  call.texts.clear();
  for (const auto& other : calls_) {
    if (rank == call.root) call.texts.push_back(other->texts.front());
  }
  return call;
}

Sent Round::sent_by_control(int rank) const {
  const Call& call = *calls_[static_cast<std::size_t>(rank)];
  const auto ranks = static_cast<int>(calls_.size());
  if (call.control == Control::kReduce) return sent_by(call, rank, ranks);
  std::vector<std::int64_t> bytes;
  if (call.control == Control::kGather) {
    for (const auto& other : calls_) bytes.push_back(std::ssize(other->texts.front()));
  } else {
    for (const std::string& text : calls_[static_cast<std::size_t>(call.root)]->texts)
      bytes.push_back(std::ssize(text));
  }
  return sent_by_texts(call.control, call.root, rank, ranks, bytes);
}

void Round::run(int index) {
  const auto own = static_cast<std::size_t>(index);
  if (results_[own].defined() && results_[own].device() == Device::kMeta) return;
  switch (calls_[own]->kind) {
    case Collective::kAllGather:
      return gather(own);
    case Collective::kReduceScatter:
      return reduce_piece(own);
    case Collective::kAllReduce:
      if (calls_[own]->send.bytes() <= kSmallReduceBytes) return reduce_small(own);
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
      if (index == 0) reduce_values();
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
  for (const auto& call : calls_) pieces.push_back(host_memory(call->send) + first);
  reduce_for(static_cast<int>(to), pieces, own.counts[to], own.send.dtype(), own.op,
             host_memory(results_[to]));
}

/// The first rank's task sums, once for all.
void Round::reduce_small(std::size_t to) const {
  if (to != 0) return;
  const Call& own = *calls_[to];
  std::vector<const std::byte*> pieces;
  for (const auto& call : calls_) pieces.push_back(host_memory(call->send));
  reduce_for_all(pieces, own.send.count(), own.send.dtype(), own.op, host_memory(results_[to]));
  for (std::size_t other = 1; other < results_.size(); ++other) {
    copy(results_[to], 0, results_[other], 0, own.send.count());
  }
}

void Round::reduce_values() {
  const Call& own = *calls_[0];
  if (own.control != Control::kReduce) return;
  std::vector<const std::byte*> pieces;
  for (const auto& call : calls_) pieces.push_back(reinterpret_cast<const std::byte*>(call->values.data()));
  values_.resize(own.values.size());
  reduce_for_all(pieces, std::ssize(values_), DType::kFloat64, own.op,
                 reinterpret_cast<std::byte*>(values_.data()));
}

void Round::reduce_part(std::size_t part) const {
  const Call& own = *calls_[part];
  const std::vector<std::int64_t> counts = even_counts(own.send.count(), static_cast<int>(calls_.size()));
  const std::int64_t first = offsets(counts)[part];
  const std::int64_t first_byte = first * size_of(own.send.dtype());
  std::vector<const std::byte*> pieces;
  for (const auto& call : calls_) pieces.push_back(host_memory(call->send) + first_byte);
  reduce_for(static_cast<int>(part), pieces, counts[part], own.send.dtype(), own.op,
             host_memory(results_[part]) + first_byte);
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
  for (const std::size_t from : peers_of(calls_[to]->receives)) {
    const std::vector<Message> sends = with_peer(calls_[from]->sends, to);
    const std::vector<Message> receives = with_peer(calls_[to]->receives, from);
    for (std::size_t i = 0; i < sends.size(); ++i) {
      copy(calls_[from]->send, sends[i].first, results_[to], receives[i].first, sends[i].count);
    }
  }
}

}  // namespace jigsaw::inline comm
