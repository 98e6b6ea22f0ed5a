#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "files/byte_buffer.h"

namespace jigsaw::inline files {

/// What HDF5's filters make of a chunk. Source: "HDF5 File Format Specification", filter pipeline message,
/// and the filters' own sources (the checksum).
enum class ChunkFilter : std::uint8_t { kShuffle, kDeflate, kFletcher32 };

/// Undoes filters that were applied in this order. For any thread; its memory is used again. At most one of
/// the filters is kDeflate.
class ChunkDecoder {
 public:
  /// @param skipped  bit i: filter i was not applied to this chunk.
  /// @param element  bytes of a number. @param packed  the chunk as it stands in the file.
  /// @param out      the chunk; exactly what must come out.
  /// @throws DataError  that begins with `what` when it is damaged.
  void decode(std::span<const ChunkFilter> filters, std::uint32_t skipped, std::size_t element,
              std::span<const std::byte> packed, std::span<std::byte> out, const std::string& what);

 private:
  ByteBuffer buffers_[2];
};

/// Inflates zlib's or gzip's framing; whether exactly `out` came out.
bool inflate_whole(std::span<const std::byte> packed, std::span<std::byte> out);

}  // namespace jigsaw::inline files
