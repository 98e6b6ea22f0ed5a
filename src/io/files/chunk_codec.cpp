#include "files/chunk_codec.h"

#include <blosc.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline files {

namespace {

/// Both zlib's and gzip's framing; whether exactly `out` came out.
bool inflate_into(std::span<const char> packed, std::span<char> out) {
  constexpr int kEitherHeader = 32 + MAX_WBITS;
  z_stream stream{};
  if (inflateInit2(&stream, kEitherHeader) != Z_OK) return false;
  // zlib does not write to its input.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int status = inflate(&stream, Z_FINISH);
  const bool whole = status == Z_STREAM_END && stream.avail_out == 0;
  inflateEnd(&stream);
  return whole;
}

bool blosc_into(std::span<const char> packed, std::span<char> out) {
  std::size_t bytes = 0;
  if (packed.size() < BLOSC_MIN_HEADER_LENGTH ||
      blosc_cbuffer_validate(packed.data(), packed.size(), &bytes) != 0 || bytes != out.size()) {
    return false;
  }
  constexpr int kThreads = 1;
  return blosc_decompress_ctx(packed.data(), out.data(), out.size(), kThreads) ==
         static_cast<int>(out.size());
}

bool zstd_into(std::span<const char> packed, std::span<char> out) {
  const std::size_t bytes = ZSTD_decompress(out.data(), out.size(), packed.data(), packed.size());
  return ZSTD_isError(bytes) == 0 && bytes == out.size();
}

bool copy_into(std::span<const char> packed, std::span<char> out) {
  if (packed.size() != out.size()) return false;
  std::copy(packed.begin(), packed.end(), out.begin());
  return true;
}

}  // namespace

std::vector<char> decompressed(ChunkCodec codec, std::span<const char> packed, std::size_t bytes,
                               const std::string& what) {
  std::vector<char> out(bytes);
  bool whole = false;
  switch (codec) {
    case ChunkCodec::kNone:
      whole = copy_into(packed, out);
      break;
    case ChunkCodec::kDeflate:
      whole = inflate_into(packed, out);
      break;
    case ChunkCodec::kBlosc:
      whole = blosc_into(packed, out);
      break;
    case ChunkCodec::kZstd:
      whole = zstd_into(packed, out);
      break;
  }
  if (!whole) throw DataError(concat(what, " is cut off or damaged"));
  return out;
}

}  // namespace jigsaw::inline files
