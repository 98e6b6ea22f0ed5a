#include "predict/packed_piece.h"

#include <type_traits>

#include "array/transfer.h"

namespace jigsaw::inline predict {

template <typename T>
PackedPiece<T> piece_of(const Rank& rank, const Layout& layout, const std::vector<int>& channels, int of) {
  const MeshShape& mesh = rank.mesh.shape();
  PackedPiece<T> piece{layout.box(mesh, mesh.coordinates(of)), {}, {}};
  if (piece.box.empty()) return piece;
  for (std::size_t i = 0; i < channels.size(); ++i) {
    if (channels[i] >= piece.box.begin[piece.last()] && channels[i] < piece.box.end(piece.last()))
      piece.numbers.push_back(static_cast<int>(i));
  }
  return piece;
}

template <typename T>
void pack(std::span<const T> all, const std::vector<int>& channels, PackedPiece<T>& piece) {
  const std::int64_t each = piece.box.extent[piece.last()], points = piece.box.extent[0] * piece.plane();
  piece.values.reserve(static_cast<std::size_t>(piece.count()));
  for (const int number : piece.numbers) {
    const std::int64_t channel = channels[static_cast<std::size_t>(number)] - piece.box.begin[piece.last()];
    for (std::int64_t i = 0; i < points; ++i)
      piece.values.push_back(all[static_cast<std::size_t>(i * each + channel)]);
  }
}

template <typename T>
PackedPiece<T> bring(const Rank& rank, Communicator& world, const Layout& layout,
                     const std::vector<int>& channels, const PackedPiece<T>& own, int of) {
  constexpr DType kType = std::is_same_v<T, float> ? DType::kFloat32 : DType::kFloat64;
  PackedPiece<T> piece = piece_of<T>(rank, layout, channels, of);
  const std::int64_t count = piece.count();
  if (count == 0) return piece;
  std::vector<Message> sends, receives;
  std::vector<double> sent;
  if (world.rank() == of) {
    sends = {{0, 0, count}};
    sent.assign(own.values.begin(), own.values.end());
  } else if (world.rank() == 0) {
    receives = {{of, 0, count}};
  }
  const std::int64_t received = receives.empty() ? 0 : count;
  const Array array =
      world.exchange(constant(rank.context, {std::ssize(sent)}, kType, sent), sends, receives, received);
  if (received == 0) return piece;
  const std::vector<double> values = download_values(rank.context, array);
  piece.values.assign(values.begin(), values.end());
  return piece;
}

template PackedPiece<float> piece_of(const Rank&, const Layout&, const std::vector<int>&, int);
template PackedPiece<double> piece_of(const Rank&, const Layout&, const std::vector<int>&, int);
template void pack(std::span<const float>, const std::vector<int>&, PackedPiece<float>&);
template void pack(std::span<const double>, const std::vector<int>&, PackedPiece<double>&);
template PackedPiece<float> bring(const Rank&, Communicator&, const Layout&, const std::vector<int>&,
                                  const PackedPiece<float>&, int);
template PackedPiece<double> bring(const Rank&, Communicator&, const Layout&, const std::vector<int>&,
                                   const PackedPiece<double>&, int);

}  // namespace jigsaw::inline predict
