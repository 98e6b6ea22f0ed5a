#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace jigsaw::inline files {

/// How the chunks of a Zarr array are compressed.
enum class ChunkCodec : std::uint8_t { kNone, kDeflate, kBlosc, kZstd };
/// "gzip", "blosc", "zstd"; nothing for others.
std::optional<ChunkCodec> codec_of(std::string_view name);

/// What is done to the bytes of a chunk, from its numbers on: a checksum (CRC-32C, little endian, behind what
/// it is of), compression, a checksum.
struct ChunkPacking {
  bool checked_inside = false;
  ChunkCodec codec = ChunkCodec::kNone;
  bool checked_outside = false;
};

/// Fills `out` with a chunk. @throws DataError  when it is damaged or has another length; `what` names it.
void unpack_chunk(const ChunkPacking& packing, std::span<const std::byte> packed, std::span<std::byte> out,
                  const std::string& what);

/// Source: RFC 3720, appendix B.4 (the polynomial of Castagnoli).
std::uint32_t crc32c(std::span<const std::byte> bytes);

}  // namespace jigsaw::inline files
