#include "files/hyperslab_stream.h"

#include <algorithm>

#include "base/error.h"
#include "files/byte_buffer.h"
#include "files/variable_file.h"

namespace jigsaw::inline files {

namespace {

/// Bytes of values that the system is told of at a time: it does not see that each of several streams of one
/// file is read in order.
constexpr std::int64_t kPrefetched = std::int64_t{1} << 20;

}  // namespace

HyperslabStream::HyperslabStream(VariableFile& file, const FileVariable& variable, const Box& box,
                                 PlainNumbers plain)
    : file_(&file), variable_(&variable), box_(box), plain_(std::move(plain)), unpacking_(variable) {}

template <typename T>
void HyperslabStream::read(std::span<T> out) {
  const std::int64_t points = box_.extent.count(), end = next_ + std::ssize(out);
  require(end <= points, "more of a hyperslab is wanted than it has");
  if (out.empty()) return;
  if (end > prefetched_) {
    prefetched_ = std::min(points, std::max(end, next_ + kPrefetched / plain_.array.size));
    prefetch_points(*plain_.file, plain_.array, box_, next_, prefetched_ - next_);
  }
  static thread_local ByteBuffer buffer;
  const std::span<std::byte> stored = buffer.take(out.size() * static_cast<std::size_t>(plain_.array.size));
  try {
    fetched_ += read_points(*plain_.file, plain_.array, box_, next_, stored);
  } catch (const DataError&) {
    file_->check_unchanged();
    throw;
  }
  const std::int64_t undeclared = unpacking_.unpack(plain_.numbers, stored, out);
  undeclared_ += undeclared;
  if (undeclared > 0) infinite_ += unpacking_.infinite(plain_.numbers, stored);
  next_ = end;
  if (next_ == points) file_->end_stream(*variable_, fetched_, {undeclared_, points, infinite_});
}

template void HyperslabStream::read<float>(std::span<float>);
template void HyperslabStream::read<double>(std::span<double>);

}  // namespace jigsaw::inline files
