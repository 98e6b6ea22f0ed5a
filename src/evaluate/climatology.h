#pragma once
#include <compare>
#include <map>
#include <vector>

#include "array/array.h"
#include "array/box.h"
#include "fields/file_set.h"
#include "samples/channels.h"
#include "samples/dataset.h"

namespace jigsaw::inline evaluate {

/// A place in the climatological year.
struct DayAndHour {
  int day = 1;      ///< of the year, 1 to 366
  Time second = 0;  ///< of the day
  auto operator<=>(const DayAndHour&) const = default;
};
DayAndHour day_and_hour(Time time, Calendar calendar = Calendar::kStandard);

/// A sentence where the climatology of data.train knows nothing of some of the times that forecasts are
/// verified at, for no state of the training period lies within Climatology::kReach days of that day of the
/// year at that time of the day; "" where it knows all, or nothing at all. By times alone: equal on all
/// ranks.
std::string climatology_remark(Dataset& data, const std::vector<Time>& starts, int leads);

/// Means by day of the year and time of the day, as WeatherBench 2's compute_climatology.py forms them:
/// over all years of states at that time of the day, weighted by days' distance within 30 days from 1 to 0
/// (around the turn of the year); in years without a day 366 the day before stands for it. Missing values do
/// not count.
///
/// Each rank holds its own piece of what is asked for, and reads just that.
class Climatology {
 public:
  /// Distance in days at which a state has no weight any more.
  static constexpr int kReach = 30;

  /// @param channels  the targets. @param piece  this rank's of [B, H, W, C], of which rows, columns and
  /// channels count.
  /// @param periods   of the states that are averaged. @param wanted  where it will be asked for.
  /// @throws DataError
  Climatology(FileSet& files, const std::vector<Channel>& channels, const Box& piece,
              const std::vector<Period>& periods, const std::vector<DayAndHour>& wanted);

  /// Of files that hold it, as WeatherBench 2's do: each variable on `hour` and `dayofyear`, in any order.
  /// @param files   have the grid of the data, and the fields of the channels selected as constant ones.
  /// @throws DataError  when they lack a wanted day or hour.
  Climatology(FileSet& files, const std::vector<Channel>& channels, const Box& piece,
              const std::vector<DayAndHour>& wanted);
  /// Files for the constructor above, with what the data says of names and grids.
  static FileSelection file_selection(const DataOptions& options);

  /// f32 [rows, columns, channels] of the piece, on the host; NaN where nothing is known.
  const Array& at(const DayAndHour& when) const;

 private:
  struct Sum;
  static std::map<DayAndHour, Sum> sums_of(FileSet& files, const Field& field, const Box& plane,
                                           const std::vector<Period>& periods,
                                           const std::vector<DayAndHour>& wanted);

  /// Room for what is wanted of a piece.
  void allocate(const Box& piece, const std::vector<DayAndHour>& wanted);
  /// A channel's plane, row-major, by its number in the piece.
  template <typename T>
  void put(const DayAndHour& when, std::int64_t channel, const std::vector<T>& plane);

  std::map<DayAndHour, Array> means_;
};

}  // namespace jigsaw::inline evaluate
