#pragma once
#include <limits>
#include <string>
#include <vector>

namespace jigsaw::inline report {

/// Round values in a range, about `count` of them.
/// @param whole  only whole numbers.
std::vector<double> ticks(double low, double high, int count, bool whole = false);

/// Marks of an axis for people, with as many digits as their distance needs.
std::vector<std::string> mark_labels(const std::vector<double>& marks);

/// The range in which most values lie.
struct Limits {
  double low = -std::numeric_limits<double>::infinity(), high = -low;

  bool hold(double value) const { return value >= low && value <= high; }
};
/// Limits that leave out only what lies very far from the rest: of each line values that are huge beside the
/// others of it (such as steps that were skipped have), and of all lines those that go more than `far` times
/// as far (on a logarithmic axis its cube) from the middle of most values as the half of the lines that go
/// least far. What diverges grows, and one line that does so is not to hide the others; what most of them do
/// is seen.
Limits limits_of_most(const std::vector<std::vector<double>>& lines, bool logarithmic, double far);

/// An axis of numbers: which it shows, and where they stand on the paper.
class Axis {
 public:
  explicit Axis(bool logarithmic) : log_(logarithmic) {}

  /// A number that is to lie on the axis; passed over where that is not possible.
  void include(double value);
  /// Where the axis begins or ends at the latest, with nothing shown there.
  void reach_to(double value);
  /// After the last number. @param below,above  shares of the range that are left free on a linear axis,
  /// where a number comes near that end. @param whole  marks are whole numbers.
  void close(double below, double above, bool whole);
  /// Where its ends lie on the paper.
  void place(double first, double last);

  bool shows(double value) const;
  double at(double value) const;
  std::vector<double> marks(int count) const;

 private:
  bool log_, whole_ = false;
  double first_ = 0, last_ = 1;
  double low_ = std::numeric_limits<double>::infinity(), high_ = -low_;  ///< of the axis
  double least_ = low_, largest_ = high_;                                ///< of the numbers
};

}  // namespace jigsaw::inline report
