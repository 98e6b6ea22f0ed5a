#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace jigsaw::inline report {

/// A picture of 8-bit red, green, blue as PNG (ISO/IEC 15948), rows from the top.
///
/// @param rgb  3 · width · height bytes. @throws Error  when it is of another size.
std::string png_of(std::int64_t width, std::int64_t height, std::span<const std::uint8_t> rgb);

/// RFC 4648, padded.
std::string base64_of(std::string_view bytes);

/// "data:image/png;base64,…" for an href.
std::string data_url_of_png(std::string_view png);

}  // namespace jigsaw::inline report
