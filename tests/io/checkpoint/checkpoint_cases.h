#pragma once
#include <algorithm>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "array/box_runs.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/writer.h"
#include "comm/communicator.h"
#include "support/arrays.h"

namespace jigsaw::testing {

/// Tensors of every kind that is hard: a matrix, a cube, a scalar, one of no elements, another type.
inline const std::vector<TensorRecord>& case_tensors() {
  static const std::vector<TensorRecord> tensors = {
      {"parameters/encoder.weight", DType::kFloat32, {13, 6}},
      {"parameters/blocks.0.cube", DType::kFloat32, {3, 4, 5}},
      {"parameters/scale", DType::kFloat32, {}},
      {"parameters/nothing", DType::kFloat32, {0, 4}},
      {"adamw.moment1/encoder.weight", DType::kFloat64, {13, 6}},
      {"adamw.moment1/long", DType::kFloat64, {2001}}};
  return tensors;
}

/// Element `index` of tensor `tensor` at a step.
inline double case_value(std::size_t tensor, std::int64_t index, std::int64_t step) {
  return static_cast<double>(1000 * step) + static_cast<double>(tensor) / 8 + static_cast<double>(index);
}

/// How ranks cut tensors.
enum class Cut { kRuns, kFirstDim, kLastDim };

inline std::vector<Box> case_boxes(const Shape& shape, Cut cut, int rank, int ranks) {
  const auto share = [&](std::int64_t extent) {
    const std::int64_t begin = extent * rank / ranks;
    return std::pair(begin, extent * (rank + 1) / ranks - begin);
  };
  Box box = Box::whole(shape);
  if (cut == Cut::kRuns || shape.rank() == 0) {
    const auto [first, count] = share(shape.count());
    return boxes_of_run(box, first, count);
  }
  const int dim = cut == Cut::kFirstDim ? 0 : shape.rank() - 1;
  std::tie(box.begin[dim], box.extent[dim]) = share(shape[dim]);
  return {box};
}

/// This rank's pieces of all tensors at a step.
inline std::vector<CheckpointPiece> case_pieces(Communicator& communicator, std::int64_t step, Cut cut) {
  std::vector<CheckpointPiece> pieces;
  for (std::size_t t = 0; t < case_tensors().size(); ++t) {
    const TensorRecord& tensor = case_tensors()[t];
    for (const Box& box : case_boxes(tensor.shape, cut, communicator.rank(), communicator.size())) {
      std::vector<double> values;
      for_each_common_run(box, Box::whole(tensor.shape), box,
                          [&](std::int64_t first, std::int64_t, std::int64_t count) {
                            for (std::int64_t i = 0; i < count; ++i)
                              values.push_back(case_value(t, first + i, step));
                          });
      pieces.push_back({tensor.name, tensor.shape, box,
                        array_of(communicator.context(), {box.extent.count()}, tensor.dtype, values)});
    }
  }
  return pieces;
}

inline CheckpointManifest case_manifest(std::int64_t step) {
  return {step,
          {{"data", 1}, {"domain", {2, 1}}},
          {{"seed", std::numeric_limits<std::uint64_t>::max()}, {"loss", 0.1}, {"name", "A \"b\"\n\u00e9"}},
          {}};
}

/// Loads all tensors, cut in another way, and compares.
inline void expect_case(const FoundCheckpoint& found, std::int64_t step, Communicator& communicator,
                        Cut cut) {
  EXPECT_EQ(found.stored.manifest.step, step);
  EXPECT_EQ(found.stored.manifest.mesh, case_manifest(step).mesh);
  EXPECT_EQ(found.stored.manifest.extra, case_manifest(step).extra);
  const auto expected = case_pieces(communicator, step, cut);
  auto loaded = expected;
  std::int64_t bytes = 0;
  for (CheckpointPiece& piece : loaded) {
    piece.array = Array::zeros(communicator.context(), piece.array.shape(), piece.array.dtype());
    bytes += piece.array.bytes();
  }
  EXPECT_EQ(read_pieces(found, loaded, communicator), bytes) << "bytes that were not wanted are read";
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(values_of(loaded[i].array), values_of(expected[i].array)) << expected[i].tensor;
  }
}

inline std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kCheckpoint);
    return error.what();
  }
  return "";
}

inline std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}
using Names = std::vector<std::string>;

}  // namespace jigsaw::testing
