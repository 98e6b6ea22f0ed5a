#pragma once
#include <condition_variable>
#include <optional>
#include <string>
#include <vector>

#include "comm/call.h"
#include "comm/levels.h"

namespace jigsaw::inline comm {

/// One collective call of a group of threads: what each rank brought, and the work of moving it, cut into
/// one task per rank. Once all have arrived any rank may run any task, once: whoever waits helps, so nobody
/// depends on another's next call, and no sent array is read after its owner's wait() has returned.
/// Everything but run() is guarded by the world's mutex.
class Round {
 public:
  /// `names` are the ranks' numbers in the whole job, for messages.
  explicit Round(std::vector<int> names)
      : names_(std::move(names)), calls_(names_.size()), results_(names_.size()), sent_(names_.size()) {}

  /// A rank's part; returns what is wrong with it beside those who came before, or "".
  ///
  /// @param sent  when what the rank sends and receives has passed its link.
  std::string arrive(int rank, Call call, Array result, double sent);
  bool complete() const { return arrived_ == calls_.size(); }
  bool has(int rank) const { return calls_[static_cast<std::size_t>(rank)].has_value(); }
  const Call& call(int rank) const { return *calls_[static_cast<std::size_t>(rank)]; }
  /// When all that a rank receives has passed its own link and those of its senders. Complete rounds only.
  double arrival(int rank) const;

  /// A task nobody has, or none.
  std::optional<int> claim();
  void finish_one() { ++finished_; }
  bool finished() const { return finished_ == calls_.size(); }

  /// Task `index`: fills the result of rank `index`; of an all_reduce, the index-th part of all results. The
  /// first sums control values.
  void run(int index);
  /// Once finished: hands out a rank's result and lets go of what it sent.
  Array take(int rank);
  /// The same of a control call.
  Call take_control(int rank) const;
  /// What a rank sends in it, once complete.
  Sent sent_by_control(int rank) const;

  /// Tells those who wait that it is complete, or finished.
  std::condition_variable changed;

 private:
  std::string cross_check() const;
  std::string check_messages(std::size_t from, std::size_t to) const;
  void gather(std::size_t to) const;
  void reduce_piece(std::size_t to) const;
  void reduce_part(std::size_t part) const;
  void reduce_small(std::size_t to) const;
  void reduce_values();
  void collect(std::size_t to) const;
  void receive_messages(std::size_t to) const;

  std::vector<int> names_;
  std::vector<std::optional<Call>> calls_;
  std::vector<Array> results_;
  std::vector<double> values_;  ///< the result of a control all_reduce
  std::optional<int> first_;    ///< the rank that came first
  std::size_t arrived_ = 0;
  std::size_t claimed_ = 0;
  std::size_t finished_ = 0;
  std::vector<double> sent_;
};

}  // namespace jigsaw::inline comm
