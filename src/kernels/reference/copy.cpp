#include <algorithm>
#include <cstring>
#include <vector>

#include "array/raw_memory.h"
#include "kernels/front/copy_kernels.h"

namespace jigsaw::inline kernels::reference {

namespace {

/// Calls f(source offset, target offset) for every element of the region.
template <typename F>
void for_each_pair(const Shape& source, const Box& from, const Shape& target, const Box& to, F&& f) {
  const Shape source_strides = source.strides();
  const Shape target_strides = target.strides();
  for (std::int64_t i = 0; i < from.extent.count(); ++i) {
    std::int64_t rest = i, source_offset = 0, target_offset = 0;
    for (int dim = from.extent.rank() - 1; dim >= 0; --dim) {
      const std::int64_t index = rest % from.extent[dim];
      rest /= from.extent[dim];
      source_offset += (from.begin[dim] + index) * source_strides[dim];
      target_offset += (to.begin[dim] + index) * target_strides[dim];
    }
    f(source_offset, target_offset);
  }
}

class Copy : public CopyKernels {
 public:
  void copy_box(Context&, const Array& source, const Box& from, Array& target, const Box& to) const override {
    const std::int64_t size = size_of(source.dtype());
    for_each_pair(source.shape(), from, target.shape(), to, [&](std::int64_t read, std::int64_t write) {
      std::memcpy(target.raw() + write * size, source.raw() + read * size, static_cast<std::size_t>(size));
    });
  }

  void add_box(Context&, const Array& source, const Box& from, Array& target, const Box& to) const override {
    visit(source.dtype(), [&](auto zero) {
      using T = decltype(zero);
      using R = Accumulator<T>;
      for_each_pair(source.shape(), from, target.shape(), to, [&](std::int64_t read, std::int64_t write) {
        T& element = target.data<T>()[write];
        element = static_cast<T>(static_cast<R>(element) + static_cast<R>(source.data<T>()[read]));
      });
    });
  }

  /// Copy by copy, as the table was made.
  void copy_boxes(Context&, const BoxTable& table, std::span<const Array> sources, Array& target,
                  const ChannelChange& change) const override {
    visit(target.dtype(), [&](auto zero) {
      using T = decltype(zero);
      using R = Accumulator<T>;
      std::vector<R> sums(static_cast<std::size_t>(target.count()));
      std::vector<bool> written(sums.size());
      for (const BoxTable::Cleared& one : table.cleared()) {
        const auto begin = written.begin() + one.first;
        std::fill(begin, begin + one.shape.count(), true);
      }
      std::vector<bool> begun(sums.size());
      for (const BoxTable::Copy& copy : table.copies()) {
        const Box &from = copy.from.box, &to = copy.to.box;
        const T* const source = sources[static_cast<std::size_t>(copy.source)].data<T>() + copy.from.first;
        for_each_pair(copy.from.shape, from, copy.to.shape, to, [&](std::int64_t read, std::int64_t write) {
          auto value = static_cast<R>(source[read]);
          if (copy.channel != BoxTable::kAsItIs) {
            const std::int64_t c = copy.channel + read % copy.from.shape.back() - from.begin.back();
            value *= static_cast<R>(change.factor.data<double>()[c]);
            if (change.offset.defined()) value += static_cast<R>(change.offset.data<double>()[c]);
          }
          const auto at = static_cast<std::size_t>(copy.to.first + write);
          sums[at] = begun[at] ? sums[at] + value : value;
          begun[at] = written[at] = true;
        });
      }
      for (std::size_t i = 0; i < sums.size(); ++i) {
        if (written[i]) target.data<T>()[i] = static_cast<T>(sums[i]);
      }
    });
  }

  void permute(Context&, const Array& x, std::span<const int> order, Array& y) const override {
    const std::int64_t size = size_of(x.dtype());
    const Shape strides = x.shape().strides();
    for (std::int64_t i = 0; i < y.count(); ++i) {
      std::int64_t rest = i, read = 0;
      for (int dim = y.rank() - 1; dim >= 0; --dim) {
        read += rest % y.shape()[dim] * strides[order[static_cast<std::size_t>(dim)]];
        rest /= y.shape()[dim];
      }
      std::memcpy(y.raw() + i * size, x.raw() + read * size, static_cast<std::size_t>(size));
    }
  }
};

}  // namespace

template <>
const CopyKernels& kernels() {
  static const Copy instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::reference
