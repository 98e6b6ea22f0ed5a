#include "report/event_file.h"

#include <array>
#include <bit>

#include "base/text.h"

namespace jigsaw::inline report {

namespace {

constexpr std::array<std::uint32_t, 256> kCrcTable = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1U) != 0 ? crc >> 1U ^ 0x82F63B78U : crc >> 1U;
    table[byte] = crc;
  }
  return table;
}();

template <typename T>
std::string little_endian(T value) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof value; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xFFU);
  return bytes;
}

std::uint32_t masked(std::uint32_t crc) {
  return (crc >> 15U | crc << 17U) + 0xA282EAD8U;
}

// Protocol buffers, wire format: a key (number of the field, kind), then the value.
enum Wire : std::uint8_t { kVarint = 0, kEightBytes = 1, kLengthDelimited = 2, kFourBytes = 5 };

std::string varint(std::uint64_t value) {
  std::string bytes;
  do {
    const auto low = static_cast<unsigned char>(value & 0x7FU);
    value >>= 7U;
    bytes += static_cast<char>(value != 0 ? low | 0x80U : low);
  } while (value != 0);
  return bytes;
}

std::string key(std::uint32_t field, Wire wire) {
  return varint(field << 3U | wire);
}

std::string number_field(std::uint32_t field, std::int64_t value) {
  return key(field, kVarint) + varint(static_cast<std::uint64_t>(value));
}

std::string text_field(std::uint32_t field, std::string_view bytes) {
  return key(field, kLengthDelimited) + varint(bytes.size()) + std::string(bytes);
}

/// Event: 1 wall_time, 2 step, 3 file_version, 5 summary.
std::string event(double seconds, std::int64_t step, const std::string& what) {
  return key(1, kEightBytes) + little_endian(std::bit_cast<std::uint64_t>(seconds)) + number_field(2, step) +
         what;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = ~0U;
  for (const char byte : bytes) crc = crc >> 8U ^ kCrcTable[(crc ^ static_cast<unsigned char>(byte)) & 0xFFU];
  return ~crc;
}

std::string tf_record(std::string_view bytes) {
  const std::string length = little_endian(static_cast<std::uint64_t>(bytes.size()));
  return length + little_endian(masked(crc32c(length))) + std::string(bytes) +
         little_endian(masked(crc32c(bytes)));
}

EventFile::EventFile(const std::string& folder, double seconds)
    : path_(concat(folder, "/events.out.tfevents.", static_cast<std::int64_t>(seconds), ".jigsaw")),
      file_(path_) {
  add_event(0, text_field(3, "brain.Event:2"), seconds);
}

/// Event: 7 session_log. SessionLog: 1 status (1 is START).
void EventFile::begin_session(std::int64_t step, double seconds) {
  add_event(step, text_field(7, number_field(1, 1)), seconds);
}

void EventFile::add_event(std::int64_t step, const std::string& what, double seconds) {
  file_.append(tf_record(event(seconds, step, what)));
}

/// Summary: 1 value. Value: 1 tag, 2 simple_value, 4 image, 8 tensor, 9 metadata.
void EventFile::add_value(std::int64_t step, const std::string& value, double seconds) {
  add_event(step, text_field(5, text_field(1, value)), seconds);
}

void EventFile::add_scalar(const std::string& tag, std::int64_t step, double value, double seconds) {
  add_value(step,
            text_field(1, tag) + key(2, kFourBytes) +
                little_endian(std::bit_cast<std::uint32_t>(static_cast<float>(value))),
            seconds);
}

/// Image: 1 height, 2 width, 3 colorspace (3 is RGB), 4 encoded_image_string.
void EventFile::add_image(const std::string& tag, std::int64_t step, std::int64_t width, std::int64_t height,
                          const std::string& png, double seconds) {
  const std::string image =
      number_field(1, height) + number_field(2, width) + number_field(3, 3) + text_field(4, png);
  add_value(step, text_field(1, tag) + text_field(4, image), seconds);
}

/// SummaryMetadata: 1 plugin_data (PluginData: 1 plugin_name). TensorProto: 1 dtype (7 is a string), 2
/// tensor_shape (TensorShapeProto: 2 dim, of it 1 size), 8 string_val.
void EventFile::add_text(const std::string& tag, std::int64_t step, const std::string& text, double seconds) {
  const std::string shape = text_field(2, number_field(1, 1));
  const std::string tensor = number_field(1, 7) + text_field(2, shape) + text_field(8, text);
  const std::string metadata = text_field(1, text_field(1, "text"));
  add_value(step, text_field(1, tag) + text_field(8, tensor) + text_field(9, metadata), seconds);
}

}  // namespace jigsaw::inline report
