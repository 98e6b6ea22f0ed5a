#include "comm/mpi/mpi_control.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <list>

#include "base/error.h"
#include "base/text.h"
#include "comm/reduce.h"

namespace jigsaw::inline comm {

namespace {

/// The messages of one control call. Those to one peer arrive in order.
class Messages {
 public:
  Messages(const MpiGroup& group, int tag, MpiSession::State& state, Sent& sent)
      : comm_(group.comm), rank_(group.rank), size_(group.size), tag_(tag), state_(state), sent_(sent) {}
  /// What MPI still reads, or fills, when an exception passes the session keeps.
  ~Messages() {
    const auto under_way = [](MPI_Request request) { return request != MPI_REQUEST_NULL; };
    if (std::ranges::any_of(requests_, under_way)) state_.left_texts.splice(state_.left_texts.end(), texts_);
  }
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  void send(int peer, std::string text) {
    if (std::ssize(text) > INT32_MAX)
      throw CommError(concat("a control text of ", text.size(), " bytes is too large"));
    const std::string& kept = texts_.emplace_back(std::move(text));
    MPI_Request& request = requests_.emplace_back(MPI_REQUEST_NULL);
    const MpiSession::State::Lock lock = state_.lock();
    check_mpi(MPI_Isend(kept.data(), static_cast<int>(kept.size()), MPI_CHAR, peer, tag_, comm_, &request),
              "MPI_Isend");
    sent_ += {1, static_cast<double>(kept.size())};
  }

  std::string receive(int peer) {
    int found = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    MpiSession::State::Lock lock = state_.lock();
    while (true) {
      check_mpi(MPI_Improbe(peer, tag_, comm_, &found, &message, &status), "MPI_Improbe");
      if (found != 0) break;
      lock.unlock();
      state_.progress();
      lock.lock();
    }
    int bytes = 0;
    check_mpi(MPI_Get_count(&status, MPI_CHAR, &bytes), "MPI_Get_count");
    std::string& text = texts_.emplace_back(static_cast<std::size_t>(bytes), '\0');
    MPI_Request& request = requests_.emplace_back(MPI_REQUEST_NULL);
    check_mpi(MPI_Imrecv(text.data(), bytes, MPI_CHAR, &message, &request), "MPI_Imrecv");
    lock.unlock();
    wait_for(request);
    return std::move(text);
  }

  void finish() {
    for (MPI_Request& request : requests_) wait_for(request);
  }

 private:
  void wait_for(MPI_Request& request) {
    int done = 0;
    while (done == 0) {
      {
        const MpiSession::State::Lock lock = state_.lock();
        check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
      }
      if (done == 0) state_.progress();
    }
  }

  MPI_Comm comm_;
  int rank_, size_;
  int tag_;
  MpiSession::State& state_;
  Sent& sent_;
  std::list<std::string> texts_;  ///< of messages either way
  std::deque<MPI_Request> requests_;
};

/// Texts in one message: each after its length.
void append_text(std::string& bundle, const std::string& text) {
  const auto length = static_cast<std::int64_t>(text.size());
  bundle.append(reinterpret_cast<const char*>(&length), sizeof length).append(text);
}

std::vector<std::string> split_bundle(std::string_view bundle) {
  std::vector<std::string> texts;
  while (!bundle.empty()) {
    std::int64_t length = 0;
    if (bundle.size() < sizeof length) throw CommError("a control message is cut short");
    std::memcpy(&length, bundle.data(), sizeof length);
    bundle.remove_prefix(sizeof length);
    if (length < 0 || length > std::ssize(bundle)) throw CommError("a control message is cut short");
    texts.emplace_back(bundle.substr(0, static_cast<std::size_t>(length)));
    bundle.remove_prefix(static_cast<std::size_t>(length));
  }
  return texts;
}

/// Innermost level first: everyone has the sum of its part, and gets those of the others.
std::vector<double> reduce(Messages& messages, const std::vector<Level>& levels, std::vector<double> values,
                           ReduceOp op) {
  for (auto level = levels.rbegin(); level != levels.rend(); ++level) {
    const std::string mine(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double));
    for (const int source : level->sources) messages.send(source, mine);
    std::vector<std::vector<double>> parts;
    for (std::size_t part = 0; part + 1 < level->begin.size(); ++part) {
      if (static_cast<int>(part) == level->own) {
        parts.push_back(values);
        continue;
      }
      const std::string text = messages.receive(level->counterparts[part]);
      if (text.size() != mine.size()) {
        throw CommError(concat("a control all_reduce: rank ", level->counterparts[part],
                               " of the group passed ", text.size() / sizeof(double), " values, rank ",
                               messages.rank(), " ", values.size()));
      }
      std::vector<double>& numbers = parts.emplace_back(values.size());
      if (!text.empty()) std::memcpy(numbers.data(), text.data(), text.size());
    }
    std::vector<const std::byte*> pieces;
    for (const auto& part : parts) pieces.push_back(reinterpret_cast<const std::byte*>(part.data()));
    reduce_in_order(pieces, std::ssize(values), DType::kFloat64, op,
                    reinterpret_cast<std::byte*>(values.data()));
  }
  return values;
}

/// Sends the texts of the ranks that this one relays for to its parent; the root then has all.
std::vector<std::string> gather(Messages& messages, std::string text, int root) {
  const Tree branch = tree(messages.size(), place_from(root, messages.rank(), messages.size()));
  std::string bundle;
  append_text(bundle, text);
  for (const auto& [child, end] : branch.branches)
    bundle += messages.receive(rank_at(root, child, messages.size()));
  if (branch.parent >= 0) {
    messages.send(rank_at(root, branch.parent, messages.size()), std::move(bundle));
    return {};
  }
  std::vector<std::string> from_root = split_bundle(bundle), result(from_root.size());
  for (std::size_t place = 0; place < from_root.size(); ++place) {
    result[static_cast<std::size_t>(rank_at(root, static_cast<int>(place), messages.size()))] =
        std::move(from_root[place]);
  }
  return result;
}

/// The last branch first: it has the most ranks below it.
std::string scatter(Messages& messages, const std::vector<std::string>& texts, int root) {
  const int own = place_from(root, messages.rank(), messages.size());
  const Tree branch = tree(messages.size(), own);
  std::vector<std::string> mine;  // of ranks [own, branch.end)
  if (branch.parent >= 0) {
    mine = split_bundle(messages.receive(rank_at(root, branch.parent, messages.size())));
    if (std::ssize(mine) != branch.end - own) throw CommError("a scattered control message is cut short");
  } else {
    for (int place = 0; place < messages.size(); ++place)
      mine.push_back(texts[static_cast<std::size_t>(rank_at(root, place, messages.size()))]);
  }
  for (auto at = branch.branches.rbegin(); at != branch.branches.rend(); ++at) {
    const auto [child, end] = *at;
    std::string bundle;
    for (int place = child; place < end; ++place)
      append_text(bundle, mine[static_cast<std::size_t>(place - own)]);
    messages.send(rank_at(root, child, messages.size()), std::move(bundle));
  }
  return std::move(mine.front());
}

std::string broadcast(Messages& messages, std::string text, int root) {
  const Tree branch = tree(messages.size(), place_from(root, messages.rank(), messages.size()));
  if (branch.parent >= 0) text = messages.receive(rank_at(root, branch.parent, messages.size()));
  for (auto at = branch.branches.rbegin(); at != branch.branches.rend(); ++at)
    messages.send(rank_at(root, at->first, messages.size()), text);
  return text;
}

}  // namespace

Call run_control(Call call, const MpiGroup& group, MpiSession::State& state, Sent& sent) {
  state.wait_for_arrivals();
  Messages messages(group, static_cast<int>(kTags + call.sequence % kTags), state, sent);
  std::string own = call.texts.empty() ? "" : call.texts.front();
  switch (call.control) {
    case Control::kReduce:
      call.values = reduce(messages, group.levels, std::move(call.values), call.op);
      break;
    case Control::kGather:
      call.texts = gather(messages, std::move(own), call.root);
      break;
    case Control::kScatter:
      call.texts = {scatter(messages, call.texts, call.root)};
      break;
    case Control::kBroadcast:
      call.texts = {broadcast(messages, std::move(own), call.root)};
      break;
  }
  messages.finish();
  return call;
}

}  // namespace jigsaw::inline comm
