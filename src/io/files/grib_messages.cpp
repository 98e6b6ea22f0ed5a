#include "files/grib_messages.h"

#include <algorithm>
#include <chrono>
#include <string_view>

#include "base/error.h"
#include "base/heartbeat.h"
#include "base/text.h"

namespace jigsaw::inline files {

namespace {

constexpr std::string_view kBegin = "GRIB", kEnd = "7777";
constexpr std::int64_t kMostBetween = std::int64_t{64} << 10;
/// Bytes that are read of each message at first; of sections before the values at most.
constexpr std::int64_t kHeadBytes = 1024, kMostHeader = std::int64_t{16} << 20;

/// The bytes of a message, read as they are asked for.
class Message {
 public:
  Message(const File& file, std::int64_t offset) : file_(file), offset_(offset) {}

  std::int64_t offset() const { return offset_; }
  std::int64_t room() const { return file_.size() - offset_; }

  std::string bytes(std::int64_t at, std::int64_t count) {
    if (at < 0 || count < 0 || at > room() || count > room() - at)
      refuse(concat("is cut off: the file ends after ", room(), " bytes of it"));
    if (at + count > kHeadBytes) return read(at, count);
    if (head_.empty()) head_ = read(0, std::min(kHeadBytes, room()));
    return head_.substr(static_cast<std::size_t>(at), static_cast<std::size_t>(count));
  }
  /// Big-endian.
  std::int64_t number(std::int64_t at, int count) {
    std::int64_t value = 0;
    for (const char byte : bytes(at, count)) value = value << 8 | static_cast<unsigned char>(byte);
    return value;
  }
  [[noreturn]] void refuse(const std::string& why) const {
    throw DataError(concat("cannot read ", file_.path(), ": its message at byte ", offset_, " ", why));
  }

 private:
  std::string read(std::int64_t at, std::int64_t count) const {
    std::string bytes(static_cast<std::size_t>(count), '\0');
    file_.read(std::as_writable_bytes(std::span(bytes)), offset_ + at);
    return bytes;
  }

  const File& file_;
  std::int64_t offset_;
  std::string head_;
};

std::int64_t seconds_of(const Message& message, std::int64_t year, std::int64_t month, std::int64_t day,
                        std::int64_t of_day) {
  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(year)),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) message.refuse(concat("has the date ", year, "-", month, "-", day));
  constexpr std::int64_t kDay = 86400;
  return std::chrono::sys_days(date).time_since_epoch().count() * kDay + of_day;
}

std::int64_t number_of(const std::string& bytes, std::size_t at) {
  return static_cast<unsigned char>(bytes[at]);
}

/// A section of edition 1 with its length in its first three bytes.
std::string section1(Message& message, std::int64_t at, std::int64_t least) {
  const std::int64_t length = message.number(at, 3);
  if (length < least) message.refuse(concat("has a section of ", length, " bytes"));
  return message.bytes(at, length);
}

/// @param least  bytes of any message of that kind.
void check_length(const Message& message, std::int64_t bytes, std::int64_t least) {
  if (bytes < 0) message.refuse("is damaged: it says that it has more bytes than any file");
  if (bytes < least) message.refuse(concat("is damaged: it says that it has ", bytes, " bytes"));
  if (bytes > message.room())
    message.refuse(
        concat("is cut off: it has ", bytes, " bytes, and the file ends after ", message.room(), " of them"));
}

GribMessage edition1(Message& message) {
  GribMessage found{message.offset(), message.number(4, 3), 0, {}, {}};
  constexpr std::int64_t kHasGrid = 0x80, kHasBitmap = 0x40;
  constexpr std::size_t kFlags = 7, kDate = 12, kCentury = 24;
  std::string product = section1(message, 8, 28);
  std::int64_t at = 8 + std::ssize(product);
  const std::int64_t flags = number_of(product, kFlags);
  if ((flags & kHasGrid) != 0) {
    found.grid = section1(message, at, 6);
    at += std::ssize(found.grid);
  }
  if ((flags & kHasBitmap) != 0) at += message.number(at, 3);
  // ECMWF's way to have messages of more than 8 MiB: a length in units of 120 bytes, less that of section 4.
  constexpr std::int64_t kLarge = 0x800000, kUnit = 120;
  if ((found.bytes & kLarge) != 0) {
    if (const std::int64_t values = message.number(at, 3); values < kUnit)
      found.bytes = std::max<std::int64_t>((found.bytes & (kLarge - 1)) * kUnit - values + 4, 0);
  }
  const auto part = [&](std::size_t byte) { return number_of(product, byte); };
  found.reference = seconds_of(message, (part(kCentury) - 1) * 100 + part(kDate), part(kDate + 1),
                               part(kDate + 2), part(kDate + 3) * 3600 + part(kDate + 4) * 60);
  std::fill_n(product.begin() + kDate, 5, '\0');
  product[kCentury] = '\0';
  found.header = concat("1", product, found.grid);
  return found;
}

/// @param at  behind the values of a message of edition 2.
void check_end2(Message& message, std::int64_t at, std::int64_t bytes) {
  const std::int64_t end = at + std::ssize(kEnd);
  if (end == bytes) return;
  if (end > bytes)
    message.refuse(concat("is damaged: its sections end beyond the ", bytes, " bytes that it has"));
  if (message.bytes(at, std::ssize(kEnd)) == kEnd)
    message.refuse(concat("is damaged: it ends after ", end, " bytes, and says that it has ", bytes));
  constexpr std::int64_t kLocal = 2, kProduct = 4;
  const std::int64_t next = message.number(at + 4, 1);
  if (next < kLocal || next > kProduct)
    message.refuse(concat("is damaged: a section ", next, " follows behind its values"));
  message.refuse(
      "holds several fields, which are not told apart; write each to a message of its own with: "
      "grib_copy IN OUT");
}

GribMessage edition2(Message& message) {
  GribMessage found{message.offset(), message.number(8, 8), 0, {}, {}};
  constexpr int kIdentification = 1, kGrid = 3, kProduct = 4, kValues = 7;
  constexpr std::size_t kDate = 12;
  constexpr std::int64_t kFrame = 16;
  check_length(message, found.bytes, kFrame);
  found.header = concat("2", message.bytes(6, 1));
  std::int64_t at = kFrame;
  for (int last = 0; last != kValues;) {
    const std::int64_t length = message.number(at, 4), number = message.number(at + 4, 1);
    if (length < 5 || length > found.bytes - at || number <= last || number > kValues)
      message.refuse(concat("has a section ", number, " of ", length, " bytes behind section ", last));
    last = static_cast<int>(number);
    if (number <= kProduct) {
      if (std::ssize(found.header) + length > kMostHeader)
        message.refuse(concat("has a section ", number, " of ", length, " bytes"));
      std::string section = message.bytes(at, length);
      if (number == kIdentification) {
        if (length < 21) message.refuse(concat("has a section 1 of ", length, " bytes"));
        const auto part = [&](std::size_t byte) { return number_of(section, byte); };
        found.reference =
            seconds_of(message, part(kDate) << 8 | part(kDate + 1), part(kDate + 2), part(kDate + 3),
                       part(kDate + 4) * 3600 + part(kDate + 5) * 60 + part(kDate + 6));
        std::fill_n(section.begin() + kDate, 7, '\0');
      }
      if (number == kGrid) found.grid = section;
      found.header += section;
    }
    at += length;
  }
  check_end2(message, at, found.bytes);
  return found;
}

constexpr std::size_t kEditionAt = 7;  ///< in a message

/// Where a message begins in bytes: at its mark with an edition that is read, else at the first mark; npos
/// where there is none.
std::size_t find_message(const std::string& bytes) {
  for (std::size_t at = bytes.find(kBegin); at != std::string::npos; at = bytes.find(kBegin, at + 1)) {
    const std::size_t edition = at + kEditionAt;
    if (edition >= bytes.size() || bytes[edition] == 1 || bytes[edition] == 2) return at;
  }
  return bytes.find(kBegin);
}

std::string bytes_at(const File& file, std::int64_t offset, std::int64_t count) {
  std::string bytes(static_cast<std::size_t>(count), '\0');
  file.read(std::as_writable_bytes(std::span(bytes)), offset);
  return bytes;
}

/// Where the next message begins, or the end of the file.
std::int64_t next_begin(const File& file, std::int64_t from) {
  const std::int64_t count = std::min(file.size() - from, kMostBetween);
  if (count < std::ssize(kBegin)) return file.size();
  if (bytes_at(file, from, std::ssize(kBegin)) == kBegin) return from;
  const std::string bytes = bytes_at(file, from, count);
  const std::size_t found = find_message(bytes);
  // Of a message whose beginning is damaged the end stands right before what follows.
  const std::string between = bytes.substr(0, found);
  const std::size_t last = between.find_last_not_of(std::string_view("\0\r\n", 3));
  if (last != std::string::npos && between.substr(0, last + 1).ends_with(kEnd)) {
    throw DataError(concat("cannot read ", file.path(), ": a message ends behind byte ", from,
                           " that does not begin there; the file is damaged"));
  }
  if (found != std::string::npos) return from + static_cast<std::int64_t>(found);
  if (count == file.size() - from) return file.size();
  throw DataError(concat("cannot read ", file.path(), ": no GRIB message follows at byte ", from));
}

}  // namespace

bool holds_grib(const File& file) {
  const std::string bytes = bytes_at(file, 0, std::min(file.size(), kMostBetween));
  if (bytes.starts_with(kBegin)) return true;
  const std::size_t found = find_message(bytes);
  if (found == std::string::npos) return false;
  try {
    Message message(file, static_cast<std::int64_t>(found));
    const std::int64_t edition = message.number(kEditionAt, 1);
    if (edition != 1 && edition != 2) return false;
    const std::int64_t length = edition == 1 ? edition1(message).bytes : message.number(8, 8);
    if (length < 16) return false;
    return message.bytes(length - std::ssize(kEnd), std::ssize(kEnd)) == kEnd;
  } catch (const DataError&) {
    return false;
  }
}

void for_each_grib_message(const File& file, const std::function<void(const GribMessage&)>& use) {
  const std::int64_t size = file.size();
  for (std::int64_t at = next_begin(file, 0); at < size; at = next_begin(file, at)) {
    Message message(file, at);
    const std::int64_t edition = message.number(kEditionAt, 1);
    if (edition != 1 && edition != 2)
      message.refuse(concat("is of edition ", edition, "; editions 1 and 2 are read"));
    const GribMessage found = edition == 1 ? edition1(message) : edition2(message);
    check_length(message, found.bytes, std::ssize(found.header));
    if (message.bytes(found.bytes - std::ssize(kEnd), std::ssize(kEnd)) != kEnd)
      message.refuse(concat("is damaged: it does not end after ", found.bytes, " bytes as it says"));
    use(found);
    at += found.bytes;
    beat();
  }
}

}  // namespace jigsaw::inline files
