#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "array/box.h"
#include "kernels/divisor.h"

namespace jigsaw::inline kernels {

/// A region of the target of a BoxTable that does not overlap the others, and how many terms make it. All in
/// elements, dims outermost first; the innermost is consecutive in the target and in all terms. Of equal
/// words, so that tables are the same bytes where they say the same.
struct BoxCell {
  std::int64_t before = 0, count = 0;  ///< elements of the cells before it, and its own
  std::int64_t first = 0;              ///< in the target
  std::int64_t first_term = 0, terms = 0;
  std::int64_t rank = 0;
  std::int64_t extent[Shape::kMaxRank] = {}, stride[Shape::kMaxRank] = {};
  Divisor divisor[Shape::kMaxRank];  ///< of the extents
};
/// One of the terms whose sum a cell is.
struct BoxTerm {
  std::int64_t source = 0, first = 0;
  std::int64_t channel = 0;  ///< of the first element along the innermost dim; −1: it is taken as it is
  std::int64_t stride[Shape::kMaxRank] = {};
};
/// Merges neighbouring dims, outermost first, that are one in the target and in all terms, and leaves out
/// those of one element but the last. The last may stay alone.
void merge_dims(BoxCell& cell, std::span<BoxTerm> terms, bool last_alone);
/// How many elements, a power of two up to `most`, can be taken as one wherever all arrays begin at multiples
/// of them.
std::int64_t elements_together(const BoxCell& cell, std::span<const BoxTerm> terms, std::int64_t most);

/// A BoxTable as kernels read it: each element of the target is written once.
struct BoxCells {
  std::vector<BoxCell> cells;  ///< none is empty
  std::vector<BoxTerm> terms;
  std::int64_t count = 0;  ///< elements of all cells
  bool moves = true;       ///< no cell has more than one term, and all are taken as they are
  static constexpr std::int64_t kMostTogether = 8;
  std::int64_t together = kMostTogether;  ///< elements_together() of all cells
};

/// A list of copies of boxes from several arrays into one, for copy_boxes() (copy.h): made once, used often.
/// Elements that several copies bring to one place are added up, in the order of the copies.
class BoxTable {
 public:
  /// Arrays that are read in one call.
  static constexpr int kMostSources = 64;
  static constexpr std::int64_t kAsItIs = -1;

  /// A box of an array of this shape, whose elements are those of the array at hand from `first` on.
  struct Place {
    std::int64_t first = 0;
    Shape shape;
    Box box;
  };
  struct Copy {
    int source = 0;
    Place from, to;
    std::int64_t channel = kAsItIs;
  };
  /// Consecutive elements of the target that become zero where nothing is copied to.
  struct Cleared {
    std::int64_t first = 0;
    Shape shape;
  };

  /// Boxes have equal extents. Places of the target of the same first element have the same shape; others do
  /// not overlap.
  /// @param channel  which of the factors (ChannelChange) is that of the box's first element along the last
  /// dim.
  void copy(int source, const Place& from, const Place& to, std::int64_t channel = kAsItIs);
  void clear(std::int64_t first, const Shape& shape);

  bool empty() const { return copies_.empty() && cleared_.empty(); }
  std::span<const Copy> copies() const { return copies_; }
  std::span<const Cleared> cleared() const { return cleared_; }
  /// Elements that source number `source` must have at least; the target; and the channels.
  std::int64_t reach(std::size_t source) const { return source < reach_.size() ? reach_[source] : 0; }
  std::size_t sources() const { return reach_.size(); }
  std::int64_t target_reach() const { return target_reach_; }
  std::int64_t channels() const { return channels_; }
  /// Elements that copies read, and those of them that change on the way; elements that are written.
  std::int64_t read() const { return read_; }
  std::int64_t changed() const { return changed_; }
  std::int64_t written() const;
  /// Found at the first call.
  const BoxCells& cells() const;

 private:
  std::vector<Copy> copies_;
  std::vector<Cleared> cleared_;
  std::vector<std::int64_t> reach_;
  std::int64_t target_reach_ = 0, channels_ = 0, read_ = 0, changed_ = 0;
  mutable std::shared_ptr<const BoxCells> cells_;
};

}  // namespace jigsaw::inline kernels
