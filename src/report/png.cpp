#include "report/png.h"

#include <zlib.h>

#include "base/error.h"

namespace jigsaw::inline report {

namespace {

void append_big_endian(std::string& bytes, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xFFU);
}

const Bytef* bytes_of(const std::string& text) {
  return reinterpret_cast<const Bytef*>(text.data());
}

void append_chunk(std::string& png, const std::string& type, const std::string& data) {
  append_big_endian(png, static_cast<std::uint32_t>(data.size()));
  const std::string checked = type + data;
  png += checked;
  append_big_endian(png, static_cast<std::uint32_t>(::crc32(::crc32(0, nullptr, 0), bytes_of(checked),
                                                            static_cast<uInt>(checked.size()))));
}

std::string compressed(const std::string& raw) {
  uLongf size = ::compressBound(raw.size());
  std::string result(size, '\0');
  const int status =
      ::compress2(reinterpret_cast<Bytef*>(result.data()), &size, bytes_of(raw), raw.size(), 9);
  require(status == Z_OK, "zlib cannot compress a picture");
  result.resize(size);
  return result;
}

}  // namespace

std::string png_of(std::int64_t width, std::int64_t height, std::span<const std::uint8_t> rgb) {
  require(width > 0 && height > 0 && std::ssize(rgb) == 3 * width * height,
          "a picture's pixels are not those of its size");
  std::string header;
  append_big_endian(header, static_cast<std::uint32_t>(width));
  append_big_endian(header, static_cast<std::uint32_t>(height));
  header += std::string("\x08\x02\x00\x00\x00", 5);  // eight bits, RGB, deflate, five filters, not interlaced
  std::string raw;
  raw.reserve(static_cast<std::size_t>(height * (3 * width + 1)));
  for (std::int64_t row = 0; row < height; ++row) {
    raw += '\0';  // the filter of the row: none
    const auto line =
        rgb.subspan(static_cast<std::size_t>(3 * width * row), static_cast<std::size_t>(3 * width));
    raw.append(reinterpret_cast<const char*>(line.data()), line.size());
  }
  std::string png = "\x89PNG\r\n\x1a\n";
  append_chunk(png, "IHDR", header);
  append_chunk(png, "IDAT", compressed(raw));
  append_chunk(png, "IEND", "");
  return png;
}

std::string base64_of(std::string_view bytes) {
  static constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8U | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k)
      text += i + k <= bytes.size() ? kDigits[group >> (18 - 6 * k) & 63U] : '=';
  }
  return text;
}

std::string data_url_of_png(std::string_view png) {
  return "data:image/png;base64," + base64_of(png);
}

}  // namespace jigsaw::inline report
