#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "comm/call.h"

namespace jigsaw::inline comm {

/// One of the steps in which n ranks reduce or gather: a range of ranks is parted into at most four parts of
/// consecutive ranks, sizes first-remainder. Each rank has a counterpart in every other part: the rank at the
/// same place in it, or the last where the part is shorter. So a level takes three messages of most ranks,
/// and all levels 3·log₄ n.
struct Level {
  static constexpr int kParts = 4;

  std::vector<int> begin;  ///< where the parts begin, and where the last ends
  int own = 0;             ///< the part of this rank
  /// This rank's counterpart in each part; itself in its own.
  std::vector<int> counterparts;
  /// Ranks of other parts whose counterpart this rank is, ascending.
  std::vector<int> sources;

  int parts() const { return static_cast<int>(begin.size()) - 1; }
};

/// The levels of one rank, outermost first: the parts of all ranks, those of its own part, and so on until a
/// part is one rank. What they are depends on the two numbers alone.
///
/// Reduce, outermost first: send each counterpart what its part wants, add what the sources send, in the
/// order of ranks. Each rank sends the whole less its own piece in all, as if it sent to every owner
/// directly. Gather, innermost first: send the sources what the own part holds, get from each counterpart
/// what its part holds. Both are trees when only one rank wants or has something.
std::vector<Level> levels(int ranks, int rank);

/// The ranks that sum in `rank` at the outermost of `levels(end − begin, …)` of the range, ascending, itself
/// among them.
std::vector<int> summands(const Level& level, int rank);

/// An all_to_all that forwards: at each level, outermost first, every rank sends each counterpart what it
/// holds for the counterpart's part, its own and what sources sent it before. For each level but the first,
/// and for the end, where all ranks' numbers for this one are: whose numbers this rank holds, by the rank
/// (itself or a source of the level before) that brought them, in the order of those ranks.
std::vector<std::vector<std::vector<int>>> forwarded_from(const std::vector<Level>& levels, int ranks,
                                                          int rank);

/// The tree of a gather to one rank or a broadcast from it, over the same parts: the first rank of each part
/// relays the part's data. Ranks are counted from the root on, modulo their number.
struct Tree {
  int parent = -1;                            ///< −1 at the root
  int end = 0;                                ///< this rank relays for [rank, end)
  std::vector<std::pair<int, int>> branches;  ///< [child, end) of its children, ascending
};
Tree tree(int ranks, int rank);
/// A rank's place counted from the root on, and back.
inline int place_from(int root, int rank, int ranks) {
  return (rank - root + ranks) % ranks;
}
inline int rank_at(int root, int place, int ranks) {
  return (place + root) % ranks;
}

/// Elements of all_reduce, and control values, up to this many bytes are exchanged whole at each level: half
/// as many steps as reducing pieces and gathering them.
inline constexpr std::int64_t kSmallReduceBytes = 4096;

/// What goes out to other ranks.
struct Sent {
  std::int64_t messages = 0;
  double bytes = 0;
  Sent& operator+=(const Sent& other);
};

/// What `rank` of `ranks` sends in one call that takes more than itself, by the algorithms that all
/// communicators share; what a transport counts is this. Of texts to and from one rank, which only some ranks
/// know the lengths of, `text_bytes` is what each has.
Sent sent_by(const Call& call, int rank, int ranks);
Sent sent_by_texts(Control control, int root, int rank, int ranks,
                   const std::vector<std::int64_t>& text_bytes);

/// The same of an all_to_all that forwards blocks of one byte: of larger ones as many messages, and so many
/// times the bytes. Takes time that grows with the ranks.
Sent sent_to_forward(int rank, int ranks);

/// Messages that the busiest rank sends in a call: `bytes` is the whole array of an all_reduce.
/// all_to_all sends to everyone unless it forwards; of an exchange the map decides, and this is 0.
int most_messages(Collective kind, int ranks, double bytes);

/// Whether an all_to_all in which each rank sends to at most `peers` others goes by levels: fewer and larger
/// messages, whose receivers forward what is not for them.
struct Forwarding {
  bool worth_it = false;
  int messages = 0;  ///< of a rank
  double bytes = 0;  ///< that a rank sends
};
/// A message takes as long as this many bytes: forwarding is worth it where the messages that it saves weigh
/// more than what it sends again.
inline constexpr double kBytesOfAMessage = 32768;
/// @param block_bytes  the most that any rank sends any other.
Forwarding forwarding(int ranks, double peers, double block_bytes);

}  // namespace jigsaw::inline comm
