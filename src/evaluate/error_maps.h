#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "evaluate/map_file.h"
#include "evaluate/point_moments.h"
#include "times/time_axis.h"

namespace jigsaw::inline evaluate {

/// The maps of errors, in their order; the last of several members alone.
enum class ErrorMap : std::uint8_t { kBias, kRmse, kCount, kSpread };

/// Errors at each point and lead, over forecasts: bias, the mean of f − o, RMSE, √(mean of (f − o)²), and
/// over how many forecasts they are. Points without a truth do not count. Of several members f is their mean,
/// and the spread is √(mean of their variance, by M − 1), which is as large as the RMSE, but for a factor
/// √(M/(M + 1)), where it says how large errors are (Fortin et al. 2014, doi:10.1175/JHM-D-14-0008.1).
///
/// A rank holds PointMoments of its piece: those of the errors of all members together, and in place of the
/// truth of the error of their mean. The members' variance is the difference of both.
class ErrorMaps {
 public:
  /// Takes the memory. @param leads  of which there are maps, from 1 on, ascending.
  ErrorMaps(Context& context, std::vector<int> leads, const Box& piece, std::int64_t members);

  /// A batch at one lead, from 0 on.
  /// @param layout   [B, H, W, C] of the truth, f64, NaN where there is none.
  /// @param members  f64 [b·members, h, w, c]: all of the first sample, then of the second. @param mean  of
  /// them.
  void add(const Rank& rank, int lead, const Layout& layout, const Array& members, const Array& mean,
           const Array& truth);
  /// All that was added, on every rank that holds these points. Collective over the mesh.
  void finish(const Rank& rank) { moments_.combine(rank); }

  const PointMoments& moments() const { return moments_; }
  int maps() const { return members_ > 1 ? 4 : 3; }
  /// As MapsOfChannel.
  std::vector<float> maps_of(const TimeMoments& moments, const Box& box, std::int64_t channel) const;

 private:
  std::vector<int> leads_;
  std::int64_t members_;
  PointMoments moments_;  // by lead
};

/// The file of these maps. @param lead_time  from lead to lead. @param attributes  of the file.
MapContents error_maps(const std::vector<int>& leads, std::int64_t members, Time lead_time, bool of_months,
                       std::map<std::string, std::string> attributes);

}  // namespace jigsaw::inline evaluate
