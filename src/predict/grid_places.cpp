#include "predict/grid_places.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "array/transfer.h"
#include "base/error.h"
#include "base/printable.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "config/json.h"
#include "grids/axis_map.h"
#include "grids/source_points.h"
#include "kernels/copy.h"
#include "task/loss.h"

namespace jigsaw::inline predict {

namespace {

/// Where the points of an axis of the grid stand that a SourceAxis counts in its own order and by turns.
std::vector<std::int64_t> positions(const SourceAxis& axis, const std::vector<double>& coordinates) {
  const std::vector<double> points = axis.points();
  std::vector<std::int64_t> positions;
  const std::optional<AxisMap> map = AxisMap::make(points, coordinates, !axis.is_latitude());
  require(map.has_value(), "an axis has its own points");
  for (const AxisRun& run : map->runs(0, std::ssize(points)))
    for (std::int64_t i = 0; i < run.count; ++i) positions.push_back(run.first + i * run.step);
  return positions;
}

std::vector<PointWeights::Term> terms_between(FileSet& files, const TargetPoints& targets, PlaceValue how) {
  const Grid& grid = files.grid();
  const bool nearest = how == PlaceValue::kNearest;
  if (!grid.geographic) {
    PointPlaces points = files.read_degrees(Box::whole(grid.shape()));
    const ScatteredPoints source(std::move(points.latitude), std::move(points.longitude), grid.shape()[1]);
    return source.weights(targets, nearest ? Regrid::kNearest : Regrid::kInverseDistance).terms();
  }
  const SourceAxis rows = SourceAxis::latitude(grid.axes[0].coordinates),
                   columns = SourceAxis::longitude(grid.axes[1].coordinates);
  std::vector<PointWeights::Term> terms =
      GridPoints(rows, columns).weights(targets, nearest ? Regrid::kNearest : Regrid::kLinear).terms();
  const std::vector<std::int64_t> row_at = positions(rows, grid.axes[0].coordinates),
                                  column_at = positions(columns, grid.axes[1].coordinates);
  for (PointWeights::Term& term : terms) {
    term.row = row_at[static_cast<std::size_t>(term.row)];
    term.column = column_at[static_cast<std::size_t>(term.column)];
  }
  return terms;
}

}  // namespace

PlaceValue parse_place_value(const std::string& text) {
  if (text == "linear") return PlaceValue::kLinear;
  if (text == "nearest") return PlaceValue::kNearest;
  throw ConfigError(concat("command line: --interpolation must be linear or nearest, not ", text));
}

GridPlaces::GridPlaces(FileSet& files, const NamedPlaces& places, PlaceValue how, const std::string& source,
                       Communicator& world) {
  Json told;
  together(world, [&] {
    if (world.rank() != 0) return;
    find(files, places, how, source);
    told = {{"names", Json::array()},
            {"latitudes", places_.latitudes},
            {"longitudes", places_.longitudes},
            {"numbers", numbers_},
            {"terms", Json::array()}};
    for (const PointWeights::Term& term : terms_)
      told["terms"].push_back({term.target, term.row, term.column, term.weight});
  });
  told = Json::parse(world.broadcast_text(told.dump()));
  if (world.rank() == 0) return;
  places_.latitudes = told["latitudes"].get<std::vector<double>>();
  places_.longitudes = told["longitudes"].get<std::vector<double>>();
  places_.names.resize(places_.latitudes.size());  // which only files need
  numbers_ = told["numbers"].get<std::vector<std::size_t>>();
  for (const Json& term : told["terms"])
    terms_.push_back({term[0].get<std::int64_t>(), term[1].get<std::int64_t>(), term[2].get<std::int64_t>(),
                      term[3].get<double>()});
}

void GridPlaces::find(FileSet& files, const NamedPlaces& all, PlaceValue how, const std::string& source) {
  TargetPoints targets;
  targets.latitude = all.latitudes;
  targets.longitude = all.longitudes;
  const std::vector<PointWeights::Term> terms = terms_between(files, targets, how);
  std::vector<std::int64_t> kept(all.size(), -1);
  for (const PointWeights::Term& term : terms) kept[static_cast<std::size_t>(term.target)] = 0;
  std::optional<std::size_t> beyond;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (kept[i] < 0) {
      if (!beyond) beyond = i;
      continue;
    }
    kept[i] = size();
    numbers_.push_back(i);
    places_.names.push_back(all.names[i]);
    places_.latitudes.push_back(all.latitudes[i]);
    places_.longitudes.push_back(all.longitudes[i]);
  }
  if (beyond) {
    const std::string first = concat(printable(all.names[*beyond]), " (", all.latitudes[*beyond], ", ",
                                     all.longitudes[*beyond], ")");
    if (places_.size() == 0) {
      throw DataError(concat(source, ": none of the ", counted(std::ssize(all.names), "place"),
                             " lies on the grid of the data; the first is ", first));
    }
    const std::size_t out = all.size() - places_.size();
    remark_ = concat(out, " of the ", counted(std::ssize(all.names), "place"), " of ", source,
                     out == 1 ? " lies" : " lie", " beyond the grid of the data, ",
                     out == 1 ? "" : "the first of them ", first,
                     out == 1 ? ", and is left out" : ", and are left out");
  }
  for (PointWeights::Term term : terms) {
    term.target = kept[static_cast<std::size_t>(term.target)];
    terms_.push_back(term);
  }
}

void GridPlaces::look_at(const Box& box) {
  if (box_ && *box_ == box) return;
  box_ = box;
  own_.clear();
  table_ = {};
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> points;
  for (const PointWeights::Term& term : terms_) {
    const bool here = term.row >= box.begin[1] && term.row < box.end(1) && term.column >= box.begin[2] &&
                      term.column < box.end(2) && !box.empty();
    if (!here) continue;
    const auto number = static_cast<std::int64_t>(points.size());
    const auto [point, added] = points.insert({{term.row, term.column}, number});
    own_.push_back({term.target, 0, point->second, term.weight});
  }
  gathered_ = static_cast<std::int64_t>(points.size());
  const Shape to = {box.extent[0], gathered_, 1, box.extent[3]};
  const Shape one = {box.extent[0], 1, 1, box.extent[3]};
  for (const auto& [place, number] : points) {
    table_.copy(0, {0, box.extent, {{0, place.first - box.begin[1], place.second - box.begin[2], 0}, one}},
                {0, to, {{0, number, 0, 0}, one}});
  }
}

std::vector<double> GridPlaces::values(const Rank& rank, const Layout& layout, const Array& states,
                                       std::span<const int> channels) {
  const Box box = rank.box(layout);
  look_at(box);
  const auto count = static_cast<std::size_t>(layout.global[0]) * channels.size() * places_.size();
  std::vector<double> sums(2 * count);  // of what is there, then the weight of what is missing
  if (gathered_ > 0) {
    Array gathered(rank.context, {box.extent[0], gathered_, 1, box.extent[3]}, DType::kFloat64,
                   Purpose::kWorkspace);
    copy_boxes(rank.context, table_, std::span(&states, 1), gathered);
    const std::vector<double> values = download_values(rank.context, gathered);
    for (std::int64_t b = 0; b < box.extent[0]; ++b) {
      for (std::size_t c = 0; c < channels.size(); ++c) {
        const std::int64_t channel = channels[c] - box.begin[3];
        if (channel < 0 || channel >= box.extent[3]) continue;
        const std::size_t row =
            (static_cast<std::size_t>(box.begin[0] + b) * channels.size() + c) * places_.size();
        for (const PointWeights::Term& term : own_) {
          const double value =
              values[static_cast<std::size_t>((b * gathered_ + term.column) * box.extent[3] + channel)];
          const std::size_t at = row + static_cast<std::size_t>(term.target);
          if (std::isnan(value)) {
            sums[count + at] += term.weight;
          } else {
            sums[at] += term.weight * value;
          }
        }
      }
    }
  }
  sum_over(rank, rank.mesh.all_axes(), sums);
  std::vector<double> result(count);
  for (std::size_t i = 0; i < count; ++i) result[i] = mean_of(sums[i], sums[count + i]);
  return result;
}

}  // namespace jigsaw::inline predict
