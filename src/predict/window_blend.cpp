#include "predict/window_blend.h"

#include <algorithm>
#include <utility>

#include "array/transfer.h"
#include "base/error.h"
#include "kernels/blending.h"
#include "kernels/pointwise.h"

namespace jigsaw::inline predict {

namespace {

/// Calls f(index in a, index in b) for every point of `box`, row-major in both boxes that hold it.
template <typename F>
void for_each_common(const Box& box, const Box& a, const Box& b, const F& f) {
  if (box.empty()) return;
  const Shape in_a = a.extent.strides(), in_b = b.extent.strides();
  const int last = box.begin.rank() - 1;
  Shape at = box.begin;
  while (true) {
    std::int64_t from_a = 0, from_b = 0;
    for (int d = 0; d <= last; ++d) {
      from_a += (at[d] - a.begin[d]) * in_a[d];
      from_b += (at[d] - b.begin[d]) * in_b[d];
    }
    for (std::int64_t i = 0; i < box.extent[last]; ++i)
      f(static_cast<std::size_t>(from_a + i), static_cast<std::size_t>(from_b + i));
    int d = last - 1;
    for (; d >= 0; --d) {
      if (++at[d] < box.end(d)) break;
      at[d] = box.begin[d];
    }
    if (d < 0) return;
  }
}

bool is_mirrored(const ImageWindow& window, int dim) {
  return (window.mirrored >> dim & 1) != 0;
}

}  // namespace

Box columns_of(const Box& region, int ranks, int rank, std::int64_t halo) {
  const Range own = cut_range(region.extent[1], ranks, rank);
  Box box = region;
  const std::int64_t begin = own.size() == 0 ? 0 : std::max<std::int64_t>(own.begin - halo, 0);
  box.begin[1] += begin;
  box.extent[1] = own.size() == 0 ? 0 : std::min(own.end + halo, region.extent[1]) - begin;
  return box;
}

WindowBlend::WindowBlend(const Rank& rank, std::vector<ImageRegion> regions, std::vector<ImageWindow> windows,
                         const Shape& extent, std::int64_t channels, std::int64_t halo, Use use,
                         const ModelSum& sum)
    : rank_(rank),
      regions_(std::move(regions)),
      windows_(std::move(windows)),
      extent_(extent),
      channels_(channels),
      halo_(halo),
      use_(std::move(use)),
      importance_(gaussian_importance(extent)),
      importance_array_(constant(rank.context, extent, DType::kFloat64, importance_)) {
  if (!sum.factor.empty()) {
    const Shape shape{std::ssize(sum.factor)};
    sum_ = {constant(rank.context, shape, DType::kFloat64, sum.factor),
            constant(rank.context, shape, DType::kFloat64, sum.offset)};
  }
  if (!regions_.empty()) {
    held_ = held_by(0, rank_.mesh.world().rank());
    held_.extent[0] = 0;
  }
}

Box WindowBlend::held_by(std::size_t region, int rank) const {
  return columns_of(regions_[region].box, rank_.mesh.world().size(), rank, halo_);
}

/// In the order of the windows; offsets count from 0.
std::vector<WindowBlend::Part> WindowBlend::parts(const Layout& layout, int from, int to) const {
  const MeshShape& mesh = rank_.mesh.shape();
  const Box piece = layout.box(mesh, mesh.coordinates(from));
  std::vector<Part> result;
  if (piece.empty()) return result;
  const int last = piece.begin.rank() - 1;
  std::int64_t offset = 0;
  for (std::int64_t b = piece.begin[0]; b < piece.end(0); ++b) {
    const std::size_t number = next_ + static_cast<std::size_t>(b);
    const ImageWindow& window = windows_[number];
    Box box;
    for (int d = 1; d < last; ++d) {
      const std::int64_t begin = is_mirrored(window, d - 1) ? extent_[d - 1] - piece.end(d) : piece.begin[d];
      append_dim(box, window.box.begin[d - 1] + begin, piece.extent[d]);
    }
    const Box points = intersect(box, held_by(window.region, to));
    if (points.empty()) continue;
    result.push_back({number, points, piece.begin[last], piece.extent[last], offset});
    offset += result.back().count();
  }
  return result;
}

/// This rank's predictions, those of all models as one, for every rank, one after the other.
Array WindowBlend::pack(std::span<const ShardedTensor> predictions, std::vector<Message>& sends) const {
  const Communicator& world = rank_.mesh.world();
  const Layout& layout = predictions[0].layout;
  const Box piece = rank_.box(layout);
  const int last = piece.begin.rank() - 1;
  BoxTable table;
  std::int64_t count = 0;
  for (int to = 0; to < world.size(); ++to) {
    const std::int64_t before = count;
    for (const Part& part : parts(layout, world.rank(), to)) {
      const ImageWindow& window = windows_[part.window];
      Box from = Box::whole(piece.extent);
      from.begin[0] = static_cast<std::int64_t>(part.window - next_) - piece.begin[0];
      from.extent[0] = 1;
      for (int d = 1; d < last; ++d) {
        const std::int64_t before_it = part.points.begin[d - 1] - window.box.begin[d - 1],
                           behind_it = window.box.end(d - 1) - part.points.end(d - 1);
        from.begin[d] = (is_mirrored(window, d - 1) ? behind_it : before_it) - piece.begin[d];
        from.extent[d] = part.points.extent[d - 1];
      }
      for (int model = 0; model < static_cast<int>(predictions.size()); ++model) {
        table.copy(model, {0, piece.extent, from}, {count, from.extent, Box::whole(from.extent)},
                   sum_.factor.defined() ? model * channels_ + part.first_channel : BoxTable::kAsItIs);
      }
      count += part.count();
    }
    if (count > before) sends.push_back({to, before, count - before});
  }
  const DType dtype = predictions[0].dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  Array packed(rank_.context, {count}, dtype, Purpose::kWorkspace);
  if (count == 0) return packed;
  std::vector<Array> values;
  for (const ShardedTensor& prediction : predictions)
    values.push_back(cast(rank_.context, prediction.piece, dtype, Purpose::kWorkspace));
  copy_boxes(rank_.context, table, values, packed, sum_);
  return packed;
}

void WindowBlend::add(std::span<const ShardedTensor> predictions) {
  const Layout& layout = predictions[0].layout;
  for (const ShardedTensor& prediction : predictions)
    require(prediction.layout == layout, "predictions of several models are laid out alike");
  Communicator& world = rank_.mesh.world();
  std::vector<Message> sends, receives;
  const Array sent = pack(predictions, sends);
  std::vector<Part> incoming;
  std::int64_t count = 0;
  for (int from = 0; from < world.size(); ++from) {
    const std::int64_t before = count;
    for (Part part : parts(layout, from, world.rank())) {
      part.offset += before;
      count += part.count();
      incoming.push_back(part);
    }
    if (count > before) receives.push_back({from, before, count - before});
  }
  const Array received = world.exchange(sent, sends, receives, count);
  std::stable_sort(incoming.begin(), incoming.end(),
                   [](const Part& a, const Part& b) { return a.window < b.window; });
  auto part = incoming.begin();
  for (std::int64_t b = 0; b < layout.global[0]; ++b, ++next_) {
    move_to(windows_[next_]);
    add_weights(windows_[next_]);
    for (; part != incoming.end() && part->window == next_; ++part) add_part(*part, received);
  }
}

/// Gives away the rows before a window, and makes room for its own.
void WindowBlend::move_to(const ImageWindow& window) {
  while (region_ != window.region) {
    give_rows(regions_[region_].box.end(0));
    held_ = held_by(++region_, rank_.mesh.world().rank());
    held_.extent[0] = 0;
  }
  const Box& whole = regions_[region_].box;
  give_rows(std::clamp(window.box.begin[0], whole.begin[0], whole.end(0)));
  const std::int64_t rows =
      std::max(held_.end(0), std::min(window.box.end(0), whole.end(0))) - held_.begin[0];
  if (rows == held_.extent[0]) return;
  keep_rows(0, rows);
  held_.extent[0] = rows;
  weights_.resize(static_cast<std::size_t>(held_.extent.count()));
}

/// Of the points that are held, and so many rows.
Shape WindowBlend::sums_shape(std::int64_t rows) const {
  Shape shape = held_.extent;
  shape[0] = rows;
  shape.append(channels_);
  return shape;
}

/// Sums of so many rows: those from `first` on that are there, then zeros.
void WindowBlend::keep_rows(std::int64_t first, std::int64_t rows) {
  Array kept = filled(rank_.context, sums_shape(rows), DType::kFloat64, 0.0, Purpose::kWorkspace);
  const std::int64_t there = std::min(held_.extent[0] - first, rows);
  if (const std::int64_t count = sums_shape(there).count(); count > 0)
    copy_elements(rank_.context, sums_, sums_shape(first).count(), kept, 0, count);
  sums_ = kept;
}

/// All rows of the region before `end`, unless there are none.
void WindowBlend::give_rows(std::int64_t end) {
  if (end <= held_.begin[0]) return;
  Rows rows{region_, end == regions_[region_].box.end(0), held_, {}};
  rows.box.extent[0] = end - held_.begin[0];
  const auto points = static_cast<std::ptrdiff_t>(rows.box.extent.count());
  rows.values = download_values(rank_.context, sums_.slice(0, sums_shape(rows.box.extent[0])));
  for (std::size_t i = 0; i < rows.values.size(); ++i)
    rows.values[i] /= weights_[i / static_cast<std::size_t>(channels_)];
  keep_rows(rows.box.extent[0], held_.extent[0] - rows.box.extent[0]);
  weights_.erase(weights_.begin(), weights_.begin() + points);
  held_.begin[0] = end;
  held_.extent[0] -= rows.box.extent[0];
  use_(rows);
}

void WindowBlend::add_weights(const ImageWindow& window) {
  const Box common = intersect(window.box, held_);
  for_each_common(common, held_, window.box,
                  [&](std::size_t at, std::size_t from) { weights_[at] += importance_[from]; });
}

void WindowBlend::add_part(const Part& part, const Array& values) {
  Shape extent = part.points.extent;
  extent.append(part.channels);
  Box to{relative_to(part.points, held_).begin, extent};
  to.begin.append(part.first_channel);
  add_weighted(rank_.context, values.slice(part.offset, extent), importance_array_,
               relative_to(part.points, windows_[part.window].box), sums_, to,
               windows_[part.window].mirrored);
}

void WindowBlend::finish() {
  if (regions_.empty()) return;
  require(next_ == windows_.size(), "not all windows were blended");
  give_rows(regions_[region_].box.end(0));
}

}  // namespace jigsaw::inline predict
