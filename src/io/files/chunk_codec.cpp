#include "files/chunk_codec.h"

#include <blosc.h>
#include <zstd.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
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

}  // namespace

void decompress(ChunkCodec codec, std::span<const std::byte> packed, std::span<std::byte> out,
                const std::string& what) {
  bool whole = false;
  switch (codec) {
    case ChunkCodec::kNone:
      whole = copy_into(packed, out);
      break;
    case ChunkCodec::kDeflate:
      whole = inflate_whole(packed, out);
      break;
    case ChunkCodec::kBlosc:
      whole = blosc_into(packed, out);
      break;
    case ChunkCodec::kZstd:
      whole = zstd_into(packed, out);
      break;
  }
  if (!whole) throw DataError(concat(what, " is cut off or damaged"));
}

}  // namespace jigsaw::inline files
