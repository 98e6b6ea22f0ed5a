#include "task/ensemble.h"

#include "kernels/copy.h"
#include "kernels/pointwise.h"

namespace jigsaw::inline task {

Layout members_together(const Mesh& mesh, const Layout& prediction, const Members& members) {
  const int ranks = mesh.size(Mesh::kData);
  if (members.count == 1 || ranks == 1) return prediction;
  const bool between_samples = members.samples % ranks == 0;
  if (between_samples && prediction.global[0] / members.count % ranks == 0) return prediction;
  Layout together = prediction;
  // Of space in units of what the domain cuts, so that it goes on from whole patches.
  together.placements[Mesh::kData] =
      between_samples ? Placement::shard(0, members.count) : prediction.placements[mesh.domain(0)];
  return together;
}

Layout of_samples(const Layout& together, std::int64_t members) {
  Layout layout = together;
  layout.global[0] /= members;
  if (const Placement cut = layout.placements[Mesh::kData]; cut.is_shard() && cut.dim == 0)
    layout.placements[Mesh::kData] = Placement::shard(0);
  return layout;
}

Array member_of(Context& context, const Array& piece, std::int64_t members, std::int64_t number) {
  if (members == 1) return piece;
  Shape shape = piece.shape();
  shape[0] /= members;
  const std::int64_t size = shape.count(1, shape.rank());
  if (shape.count() == 0) return {context, shape, piece.dtype(), Purpose::kWorkspace};
  const Array all = piece.reshaped({shape[0], members, size});
  return extract_box(context, all, {{0, number, 0}, {shape[0], 1, size}}, Purpose::kWorkspace)
      .reshaped(shape);
}

Array member_mean(Context& context, const Array& piece, std::int64_t members) {
  if (members == 1) return piece;
  const DType dtype = piece.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  const auto member = [&](std::int64_t number) {
    return cast(context, member_of(context, piece, members, number), dtype, Purpose::kWorkspace);
  };
  Array mean = member(0);
  for (std::int64_t j = 1; j < members; ++j) accumulate(context, mean, member(j));
  scale(context, mean, 1.0 / static_cast<double>(members));
  return mean;
}

Array join_members(Context& context, const std::vector<Array>& members) {
  const auto count = std::ssize(members);
  if (count == 1) return members.front();
  Shape shape = members.front().shape();
  const std::int64_t samples = shape[0], size = shape.count(1, shape.rank());
  shape[0] *= count;
  Array all(context, shape, members.front().dtype(), Purpose::kWorkspace);
  if (shape.count() == 0) return all;
  Array by_member = all.reshaped({samples, count, size});
  for (std::int64_t j = 0; j < count; ++j) {
    copy_box(context, members[static_cast<std::size_t>(j)].reshaped({samples, 1, size}),
             Box::whole({samples, 1, size}), by_member, {{0, j, 0}, {samples, 1, size}});
  }
  return all;
}

/// Times zero keeps NaN.
Array where_both(Context& context, const Array& values, const Array& others) {
  Array nothing = cast(context, add(context, others, others), values.dtype(), Purpose::kWorkspace);
  scale(context, nothing, 0.0);
  return add(context, values, nothing);
}

}  // namespace jigsaw::inline task
