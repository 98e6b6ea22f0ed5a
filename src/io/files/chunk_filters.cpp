#include "files/chunk_filters.h"

#include <libdeflate.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline files {

namespace {

constexpr std::size_t kFletcher32Bytes = 4;

/// HDF5's variant of the checksum of Fletcher over big-endian words.
std::uint32_t fletcher32(std::span<const std::byte> bytes) {
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  std::uint32_t first = 0, second = 0;
  const auto fold = [](std::uint32_t sum) { return (sum & 0xffffU) + (sum >> 16U); };
  for (std::size_t words = bytes.size() / 2; words > 0;) {
    const std::size_t part = std::min<std::size_t>(words, 360);
    words -= part;
    for (std::size_t i = 0; i < part; ++i, data += 2) {
      first += static_cast<std::uint32_t>(data[0]) << 8U | data[1];
      second += first;
    }
    first = fold(first);
    second = fold(second);
  }
  if (bytes.size() % 2 == 1) {
    first = fold(first + (static_cast<std::uint32_t>(*data) << 8U));
    second = fold(second + first);
  }
  return fold(second) << 16U | fold(first);
}

/// HDF5 before 1.6.3 wrote each half of the sum the other way on little-endian machines.
bool checksum_holds(std::span<const std::byte> bytes) {
  if (bytes.size() < kFletcher32Bytes) return false;
  const std::size_t length = bytes.size() - kFletcher32Bytes;
  std::uint32_t stored = 0;
  for (std::size_t i = 0; i < kFletcher32Bytes; ++i)
    stored |= std::to_integer<std::uint32_t>(bytes[length + i]) << (8 * i);
  const std::uint32_t sum = fletcher32(bytes.first(length));
  const std::uint32_t turned = (sum & 0x00ff00ffU) << 8U | (sum & 0xff00ff00U) >> 8U;
  return stored == sum || stored == turned;
}

/// Byte b of number i stands at b · n + i.
template <typename T>
void unshuffle_numbers(const std::byte* from, std::size_t count, std::byte* to) {
  for (std::size_t i = 0; i < count; ++i) {
    T value = 0;
    for (std::size_t b = 0; b < sizeof(T); ++b)
      value = static_cast<T>(value | static_cast<T>(static_cast<T>(from[b * count + i]) << (8 * b)));
    std::memcpy(to + i * sizeof(T), &value, sizeof(T));
  }
}

/// What is left behind the last whole number stands as it is.
void unshuffle(std::span<const std::byte> from, std::size_t element, std::span<std::byte> to) {
  const std::size_t count = from.size() / element;
  constexpr bool kLittle = std::endian::native == std::endian::little;
  if (kLittle && element == 2) {
    unshuffle_numbers<std::uint16_t>(from.data(), count, to.data());
  } else if (kLittle && element == 4) {
    unshuffle_numbers<std::uint32_t>(from.data(), count, to.data());
  } else if (kLittle && element == 8) {
    unshuffle_numbers<std::uint64_t>(from.data(), count, to.data());
  } else {
    for (std::size_t b = 0; b < element; ++b) {
      for (std::size_t i = 0; i < count; ++i) to[i * element + b] = from[b * count + i];
    }
  }
  const auto rest = static_cast<std::ptrdiff_t>(count * element);
  std::copy(from.begin() + rest, from.end(), to.begin() + rest);
}

libdeflate_decompressor* decompressor() {
  struct Free {
    void operator()(libdeflate_decompressor* d) const { libdeflate_free_decompressor(d); }
  };
  static thread_local const std::unique_ptr<libdeflate_decompressor, Free> own(
      libdeflate_alloc_decompressor());
  return own.get();
}

}  // namespace

bool inflate_whole(std::span<const std::byte> packed, std::span<std::byte> out) {
  libdeflate_decompressor* const inflate = decompressor();
  if (inflate == nullptr || packed.size() < 2) return false;
  std::size_t bytes = 0;
  const bool gzip = packed[0] == std::byte{0x1f} && packed[1] == std::byte{0x8b};
  const libdeflate_result status =
      gzip
          ? libdeflate_gzip_decompress(inflate, packed.data(), packed.size(), out.data(), out.size(), &bytes)
          : libdeflate_zlib_decompress(inflate, packed.data(), packed.size(), out.data(), out.size(), &bytes);
  return status == LIBDEFLATE_SUCCESS && bytes == out.size();
}

void ChunkDecoder::decode(std::span<const ChunkFilter> filters, std::uint32_t skipped, std::size_t element,
                          std::span<const std::byte> packed, std::span<std::byte> out,
                          const std::string& what) {
  const auto applied = [&](std::size_t i) { return (skipped >> i & 1U) == 0; };
  const auto check = [&](bool good) {
    if (!good) throw DataError(concat(what, " is cut off or damaged"));
  };
  // How long the chunk was before deflate, and how many filters are still to be undone.
  std::size_t inflated = out.size(), left = 0;
  bool deflated = false;
  for (std::size_t i = 0; i < filters.size(); ++i) {
    if (!applied(i)) continue;
    ++left;
    deflated = deflated || filters[i] == ChunkFilter::kDeflate;
    if (!deflated && filters[i] == ChunkFilter::kFletcher32) inflated += kFletcher32Bytes;
  }
  std::span<const std::byte> now = packed;
  std::size_t turn = 0;
  for (std::size_t i = filters.size(); i-- > 0;) {
    if (!applied(i)) continue;
    --left;
    if (filters[i] == ChunkFilter::kFletcher32) {
      check(checksum_holds(now));
      now = now.first(now.size() - kFletcher32Bytes);
      continue;
    }
    const std::size_t bytes = filters[i] == ChunkFilter::kDeflate ? inflated : now.size();
    // The last one writes where the chunk is wanted.
    const std::span<std::byte> to = left == 0 && bytes == out.size() ? out : buffers_[turn].take(bytes);
    turn = 1 - turn;
    if (filters[i] == ChunkFilter::kDeflate) {
      check(inflate_whole(now, to));
    } else {
      unshuffle(now, element, to);
    }
    now = to;
  }
  check(now.size() == out.size());
  if (now.data() != out.data()) std::copy(now.begin(), now.end(), out.begin());
}

}  // namespace jigsaw::inline files
