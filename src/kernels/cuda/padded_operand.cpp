#include "kernels/cuda/padded_operand.h"

#include "array/raw_memory.h"
#include "kernels/cuda/region.h"

namespace jigsaw::inline kernels::cuda {

namespace {

constexpr std::int64_t kLine = 8;  // bf16 elements of 16 bytes

/// At an H100's rates, copying an element takes as long as some hundred operations (an estimate).
constexpr std::int64_t kLeastReuse = 256;

/// A matrix as lines.
struct Lines {
  std::int64_t count, length, apart;
  bool by_rows;
};
Lines lines_of(std::int64_t rows, std::int64_t columns, const MatrixProduct::Strides& strides) {
  if (strides.column == 1) return {rows, columns, strides.row, true};
  return {columns, rows, strides.column, false};
}

bool lies_well(const std::byte* matrix, std::int64_t batch, const Lines& lines,
               const MatrixProduct::Strides& strides) {
  constexpr std::uintptr_t kBytes = 16;
  return reinterpret_cast<std::uintptr_t>(matrix) % kBytes == 0 &&
         (lines.apart % kLine == 0 || lines.count == 1) && (batch == 1 || strides.batch % kLine == 0);
}

/// Copies matrices from lines with one spacing to lines with another.
void move_lines(Context& context, std::int64_t batch, const Lines& from, std::int64_t from_batch,
                const std::byte* source, const Lines& to, std::int64_t to_batch, std::byte* target) {
  Region region;
  region.add_dim(batch, from_batch, to_batch);
  region.add_dim(from.count, from.apart, to.apart);
  region.add_dim(from.length, 1, 1);
  move_region(context, region, size_of(DType::kBfloat16), source, target);
}

}  // namespace

PaddedOperand PaddedOperand::room(Context& context, const std::byte* matrix, std::int64_t batch,
                                  std::int64_t rows, std::int64_t columns,
                                  const MatrixProduct::Strides& strides, std::int64_t reuse) {
  const Lines lines = lines_of(rows, columns, strides);
  if (reuse < kLeastReuse || lies_well(matrix, batch, lines, strides)) return {{}, strides};
  const std::int64_t apart = (lines.length + kLine - 1) / kLine * kLine;
  const std::int64_t copies = strides.batch == 0 ? 1 : batch;
  PaddedOperand padded{Array(context, {copies, lines.count, apart}, DType::kBfloat16, Purpose::kWorkspace),
                       strides};
  (lines.by_rows ? padded.strides.row : padded.strides.column) = apart;
  padded.strides.batch = strides.batch == 0 ? 0 : lines.count * apart;
  return padded;
}

PaddedOperand PaddedOperand::of(Context& context, const std::byte* matrix, std::int64_t batch,
                                std::int64_t rows, std::int64_t columns,
                                const MatrixProduct::Strides& strides, std::int64_t reuse) {
  PaddedOperand padded = room(context, matrix, batch, rows, columns, strides, reuse);
  if (!padded.copy.defined()) return padded;
  const Lines from = lines_of(rows, columns, strides), to = lines_of(rows, columns, padded.strides);
  move_lines(context, padded.copy.shape()[0], from, strides.batch, matrix, to, padded.strides.batch,
             padded.copy.raw());
  return padded;
}

void PaddedOperand::copy_back(Context& context, std::int64_t batch, std::int64_t rows, std::int64_t columns,
                              std::byte* matrix, const MatrixProduct::Strides& strides_to) const {
  const Lines from = lines_of(rows, columns, strides), to = lines_of(rows, columns, strides_to);
  move_lines(context, batch, from, strides.batch, copy.raw(), to, strides_to.batch, matrix);
}

}  // namespace jigsaw::inline kernels::cuda
