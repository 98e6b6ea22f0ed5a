#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace jigsaw::inline files {

/// How the chunks of a Zarr array are compressed.
enum class ChunkCodec : std::uint8_t { kNone, kDeflate, kBlosc, kZstd };

/// The bytes of a chunk. @param bytes  how many it has.
/// @throws DataError  when it is damaged or has another length; `what` names it.
std::vector<char> decompressed(ChunkCodec codec, std::span<const char> packed, std::size_t bytes,
                               const std::string& what);

}  // namespace jigsaw::inline files
