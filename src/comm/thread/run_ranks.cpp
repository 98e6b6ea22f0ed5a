#include "comm/thread/run_ranks.h"

#include <algorithm>
#include <numeric>
#include <thread>

#include "base/error.h"
#include "base/text.h"
#include "comm/thread/world.h"

namespace jigsaw::inline comm {

namespace {

/// Bytes that a call brings to a rank of so many.
double received_bytes(const Call& call, int rank, int size) {
  const auto sum = [](const std::vector<std::int64_t>& counts) {
    return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  };
  const auto own = static_cast<std::size_t>(rank);
  std::int64_t elements = 0;
  switch (call.kind) {
    case Collective::kAllGather:
      elements = sum(call.counts) - call.counts[own];
      break;
    case Collective::kReduceScatter:
      elements = (size - 1) * call.counts[own];
      break;
    case Collective::kAllReduce:
      return call.sent_bytes;
    case Collective::kAllToAll:
      elements = sum(call.receive_counts) - call.receive_counts[own];
      break;
    case Collective::kBroadcast:
      elements = call.root == rank ? 0 : call.send.count();
      break;
    case Collective::kExchange:
      for (const Message& message : call.receives) elements += message.peer == rank ? 0 : message.count;
      break;
    case Collective::kControl:
      return 0;
  }
  return static_cast<double>(elements * size_of(call.send.dtype()));
}

class ThreadOperation : public Pending::Operation {
 public:
  ThreadOperation(std::shared_ptr<World> world, std::shared_ptr<Group> group, std::shared_ptr<Round> round,
                  int rank, World::Transfer transfer, Context& context)
      : world_(std::move(world)),
        group_(std::move(group)),
        round_(std::move(round)),
        rank_(rank),
        transfer_(transfer),
        context_(context) {}

  /// Peers may still read what was sent. When an exception passes they end, too, and nothing is read.
  ~ThreadOperation() override {
    if (waited_ || std::uncaught_exceptions() > exceptions_) return;
    try {
      wait();
    } catch (const CommError&) {
      // The job has failed; every further call says so.
    }
  }

  Array wait() override {
    waited_ = true;
    World::Lock lock = world_->lock();
    await_arrivals(lock);
    help(lock);
    world_->wait(lock, round_->changed, [this] { return round_->finished(); });
    world_->wait_for(lock, round_->changed, world_rank(), context_.tally(), transfer_,
                     round_->arrival(rank_));
    return round_->take(rank_);
  }

  bool poll() override {
    World::Lock lock = world_->lock();
    world_->check(lock);
    // What has arrived by virtual time does not depend on which thread runs first.
    const bool virtual_time = world_->clock() != nullptr;
    if (virtual_time) await_arrivals(lock);
    if (!round_->complete()) return false;
    help(lock);
    if (virtual_time) world_->wait(lock, round_->changed, [this] { return round_->finished(); });
    return round_->finished() &&
           world_->is_past(lock, world_rank(), context_.tally(), round_->arrival(rank_));
  }

  void await_arrivals(World::Lock& lock) {
    int lost = -1;
    const bool in_time = world_->wait(lock, round_->changed,
                                      [&] { return round_->complete() || (lost = lost_rank(lock)) >= 0; });
    if (in_time && lost < 0) return;
    const std::string where = concat("rank ", world_rank(), " waits in ", round_->call(rank_).describe(),
                                     " on ", group_->label, " for ", missing());
    const std::string reason =
        lost >= 0 ? concat(where, ", and rank ", lost, " has ended")
                  : concat(where, " since ", world_->options().time_limit_seconds, " seconds");
    world_->fail(lock, reason);
    throw CommError(reason);
  }

 private:
  int world_rank() const { return group_->members[static_cast<std::size_t>(rank_)]; }

  /// Runs tasks that nobody else has, without the lock.
  void help(World::Lock& lock) {
    while (const std::optional<int> task = round_->claim()) {
      lock.unlock();
      round_->run(*task);
      lock.lock();
      round_->finish_one();
      if (round_->finished()) round_->changed.notify_all();
    }
  }

  int lost_rank(const World::Lock& lock) const {
    for (const int rank : missing_ranks()) {
      if (world_->has_ended(lock, rank)) return rank;
    }
    return -1;
  }

  /// As numbers in the whole job.
  std::vector<int> missing_ranks() const {
    std::vector<int> ranks;
    for (int other = 0; other < std::ssize(group_->members); ++other) {
      if (!round_->has(other)) ranks.push_back(group_->members[static_cast<std::size_t>(other)]);
    }
    return ranks;
  }
  std::string missing() const {
    const std::vector<int> ranks = missing_ranks();
    return concat(ranks.size() == 1 ? "rank " : "ranks ", join(ranks, ", "));
  }

  std::shared_ptr<World> world_;
  std::shared_ptr<Group> group_;
  std::shared_ptr<Round> round_;
  int rank_;
  World::Transfer transfer_;
  Context& context_;
  bool waited_ = false;
  int exceptions_ = std::uncaught_exceptions();
};

class ThreadCommunicator : public Communicator {
 public:
  ThreadCommunicator(Context& context, std::shared_ptr<World> world, std::shared_ptr<Group> group, int rank)
      : Communicator(context), world_(std::move(world)), group_(std::move(group)), rank_(rank) {}
  ThreadCommunicator(const ThreadCommunicator& parent, std::shared_ptr<Group> group, int rank)
      : Communicator(parent, group->label), world_(parent.world_), group_(std::move(group)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(group_->members.size()); }
  void abort(int exit_code) override {
    world_->fail(world_->lock(), concat("rank ", group_->members[static_cast<std::size_t>(rank_)],
                                        " aborted the job with exit code ", exit_code));
  }

 protected:
  std::unique_ptr<Pending::Operation> do_start(Call call) override {
    const bool own = call.kind == Collective::kBroadcast && call.root == rank_;
    *sent_counter(call.kind) += sent_by(call, rank_, size());
    Array result = own ? call.send : Array(host(), call.result_shape, call.send.dtype(), call.result_purpose);
    return arrive(std::move(call), std::move(result)).first;
  }

  Call do_control(Call call) override {
    const auto [operation, round] = arrive(std::move(call), Array());
    operation->wait();
    *sent_counter(Collective::kControl) += round->sent_by_control(rank_);
    return round->take_control(rank_);
  }

  std::unique_ptr<Communicator> do_split(const std::string& label, const std::vector<int>& members,
                                         std::int64_t sequence) override {
    std::vector<int> in_world;
    for (const int member : members) in_world.push_back(group_->members[static_cast<std::size_t>(member)]);
    const auto own = std::find(members.begin(), members.end(), rank_) - members.begin();
    const World::Lock lock = world_->lock();
    world_->check(lock);
    const auto key = std::make_pair(sequence, in_world);
    Group::Child& child = group_->children[key];
    if (!child.group) child.group = std::make_shared<Group>(in_world, label);
    std::shared_ptr<Group> group = child.group;
    if (++child.joined == members.size()) group_->children.erase(key);
    return std::make_unique<ThreadCommunicator>(*this, std::move(group), static_cast<int>(own));
  }

 private:
  std::pair<std::unique_ptr<ThreadOperation>, std::shared_ptr<Round>> arrive(Call call, Array result) {
    const std::int64_t sequence = call.sequence;
    const World::Lock lock = world_->lock();
    world_->check(lock);
    const double bytes = std::max(call.sent_bytes, received_bytes(call, rank_, size()));
    const World::Transfer transfer = world_->start(lock, group_->members[static_cast<std::size_t>(rank_)],
                                                   context().tally(), call, label(), bytes);
    std::shared_ptr<Round> round = group_->rounds[sequence];
    if (!round) round = group_->rounds[sequence] = std::make_shared<Round>(group_->members);
    const std::string wrong = round->arrive(rank_, std::move(call), std::move(result), transfer.sent);
    if (!wrong.empty()) {
      const std::string reason = concat("on ", label(), " ", wrong);
      world_->fail(lock, reason);
      throw CommError(reason);
    }
    if (round->complete()) {
      group_->rounds.erase(sequence);
      round->changed.notify_all();
    }
    return {std::make_unique<ThreadOperation>(world_, group_, round, rank_, transfer, context()), round};
  }

  std::shared_ptr<World> world_;
  std::shared_ptr<Group> group_;
  int rank_;
};

/// The first error of any rank, as it was thrown.
class FirstError {
 public:
  void keep(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr error_;
};

void run(int ranks, const ThreadOptions& options, VirtualClock* clock,
         const std::function<Context(int rank)>& make_context,
         const std::function<void(Communicator&)>& body) {
  const auto world = std::make_shared<World>(ranks, options, clock);
  std::vector<int> members(static_cast<std::size_t>(ranks));
  std::iota(members.begin(), members.end(), 0);
  const auto group = std::make_shared<Group>(members, "world");
  FirstError first;
  const auto run_rank = [&](int rank) {
    std::string error;
    try {
      Context context = make_context(rank);
      ThreadCommunicator communicator(context, world, group, rank);
      body(communicator);
      world->end_time(world->lock(), rank, context.tally());
    } catch (const std::exception& thrown) {
      first.keep(std::current_exception());
      error = thrown.what();
    } catch (...) {
      first.keep(std::current_exception());
      error = "an unknown error";
    }
    const World::Lock lock = world->lock();
    if (!error.empty()) world->fail(lock, concat("rank ", rank, " failed: ", error));
    world->end(lock, rank);
  };
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(run_rank, rank);
  }
  first.rethrow();
}

}  // namespace

void run_ranks(int ranks, const ThreadOptions& options, const std::function<Context(int rank)>& make_context,
               const std::function<void(Communicator&)>& body) {
  run(ranks, options, nullptr, make_context, body);
}

void run_ranks(int ranks, const ThreadOptions& options, VirtualClock& clock,
               const std::function<Context(int rank)>& make_context,
               const std::function<void(Communicator&)>& body) {
  run(ranks, options, &clock, make_context, body);
}

void run_ranks(int ranks, const std::function<void(Communicator&)>& body) {
  run_ranks(
      ranks, {}, [](int) { return Context::make_host(Backend::kReference, 1); }, body);
}

}  // namespace jigsaw::inline comm
