#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace jigsaw::inline files {

/// How the chunks of a Zarr array are compressed.
enum class ChunkCodec : std::uint8_t { kNone, kDeflate, kBlosc, kZstd };

/// Fills `out` with a chunk. @throws DataError  when it is damaged or has another length; `what` names it.
void decompress(ChunkCodec codec, std::span<const std::byte> packed, std::span<std::byte> out,
                const std::string& what);

}  // namespace jigsaw::inline files
