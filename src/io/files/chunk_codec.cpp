#include "files/chunk_codec.h"

#include <blosc.h>
#include <zstd.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"
#include "files/byte_buffer.h"
#include "files/chunk_filters.h"

namespace jigsaw::inline files {

namespace {

bool blosc_into(std::span<const std::byte> packed, std::span<std::byte> out) {
  std::size_t bytes = 0;
  if (packed.size() < BLOSC_MIN_HEADER_LENGTH ||
      blosc_cbuffer_validate(packed.data(), packed.size(), &bytes) != 0 || bytes != out.size()) {
    return false;
  }
  constexpr int kThreads = 1;
  return blosc_decompress_ctx(packed.data(), out.data(), out.size(), kThreads) ==
         static_cast<int>(out.size());
}

bool zstd_into(std::span<const std::byte> packed, std::span<std::byte> out) {
  const std::size_t bytes = ZSTD_decompress(out.data(), out.size(), packed.data(), packed.size());
  return ZSTD_isError(bytes) == 0 && bytes == out.size();
}

bool copy_into(std::span<const std::byte> packed, std::span<std::byte> out) {
  if (packed.size() != out.size()) return false;
  std::copy(packed.begin(), packed.end(), out.begin());
  return true;
}

bool decompress_into(ChunkCodec codec, std::span<const std::byte> packed, std::span<std::byte> out) {
  switch (codec) {
    case ChunkCodec::kNone:
      return copy_into(packed, out);
    case ChunkCodec::kDeflate:
      return inflate_whole(packed, out);
    case ChunkCodec::kBlosc:
      return blosc_into(packed, out);
    case ChunkCodec::kZstd:
      return zstd_into(packed, out);
  }
  return false;
}

constexpr std::size_t kCrc32cBytes = 4;

/// What stands before the checksum of it; nothing when that does not hold.
std::optional<std::span<const std::byte>> checked(std::span<const std::byte> bytes) {
  if (bytes.size() < kCrc32cBytes) return std::nullopt;
  const std::span<const std::byte> held = bytes.first(bytes.size() - kCrc32cBytes);
  std::uint32_t stored = 0;
  for (std::size_t i = 0; i < kCrc32cBytes; ++i)
    stored |= std::to_integer<std::uint32_t>(bytes[held.size() + i]) << (8 * i);
  return stored == crc32c(held) ? std::optional(held) : std::nullopt;
}

bool unpack_into(const ChunkPacking& packing, std::span<const std::byte> packed, std::span<std::byte> out) {
  if (packing.checked_outside) {
    const auto held = checked(packed);
    if (!held) return false;
    packed = *held;
  }
  if (!packing.checked_inside) return decompress_into(packing.codec, packed, out);
  static thread_local ByteBuffer buffer;
  const std::span<std::byte> whole = buffer.take(out.size() + kCrc32cBytes);
  if (!decompress_into(packing.codec, packed, whole)) return false;
  const auto held = checked(whole);
  return held && copy_into(*held, out);
}

}  // namespace

std::optional<ChunkCodec> codec_of(std::string_view name) {
  if (name == "gzip") return ChunkCodec::kDeflate;
  if (name == "blosc") return ChunkCodec::kBlosc;
  if (name == "zstd") return ChunkCodec::kZstd;
  return std::nullopt;
}

std::uint32_t crc32c(std::span<const std::byte> bytes) {
  static const std::array<std::uint32_t, 256> table = [] {
    constexpr std::uint32_t kReflectedPolynomial = 0x82f63b78;
    std::array<std::uint32_t, 256> values{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ ((value & 1) != 0 ? kReflectedPolynomial : 0);
      values[i] = value;
    }
    return values;
  }();
  std::uint32_t sum = 0xffffffff;
  for (const std::byte byte : bytes)
    sum = sum >> 8 ^ table[(sum ^ std::to_integer<std::uint32_t>(byte)) & 255];
  return ~sum;
}

void unpack_chunk(const ChunkPacking& packing, std::span<const std::byte> packed, std::span<std::byte> out,
                  const std::string& what) {
  if (!unpack_into(packing, packed, out)) throw DataError(concat(what, " is cut off or damaged"));
}

}  // namespace jigsaw::inline files
