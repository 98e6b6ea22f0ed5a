// TensorBoard's files, read by a decoder of its own: records and protocol buffers by their published formats,
// the CRC bit by bit.
#include "report/event_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <map>

#include "support/temporary_folder.h"

namespace jigsaw {
namespace {

/// CRC-32C by long division, without a table.
std::uint32_t slow_crc32c(const std::string& bytes) {
  std::uint32_t crc = 0xFFFFFFFFU;
  for (const char byte : bytes) {
    for (int bit = 0; bit < 8; ++bit) {
      const std::uint32_t in = static_cast<unsigned char>(byte) >> bit & 1U;
      const bool carry = ((crc ^ in) & 1U) != 0;
      crc = crc >> 1U ^ (carry ? 0x82F63B78U : 0U);
    }
  }
  return crc ^ 0xFFFFFFFFU;
}

template <typename T>
T number_at(const std::string& bytes, std::size_t at) {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof value);  // as all machines that this is built for are
  return value;
}

std::uint32_t unmasked(std::uint32_t masked) {
  const std::uint32_t rotated = masked - 0xA282EAD8U;
  return rotated >> 17U | rotated << 15U;
}

std::vector<std::string> records_of(const std::string& file) {
  std::vector<std::string> records;
  for (std::size_t at = 0; at < file.size();) {
    const auto length = number_at<std::uint64_t>(file, at);
    EXPECT_EQ(unmasked(number_at<std::uint32_t>(file, at + 8)), slow_crc32c(file.substr(at, 8)));
    records.push_back(file.substr(at + 12, length));
    EXPECT_EQ(records.back().size(), length);
    EXPECT_EQ(unmasked(number_at<std::uint32_t>(file, at + 12 + length)), slow_crc32c(records.back()));
    at += 16 + length;
  }
  return records;
}

/// The fields of a message by number: varints and fixed numbers as their bytes.
struct Message {
  std::multimap<int, std::string> fields;

  explicit Message(const std::string& bytes) {
    for (std::size_t at = 0; at < bytes.size();) {
      const std::uint64_t key = varint(bytes, at);
      const int field = static_cast<int>(key >> 3U);
      std::size_t size = 0;
      switch (key & 7U) {
        case 0: {
          const std::uint64_t value = varint(bytes, at);
          fields.emplace(field, std::string(reinterpret_cast<const char*>(&value), 8));
          continue;
        }
        case 1:
          size = 8;
          break;
        case 2:
          size = varint(bytes, at);
          break;
        case 5:
          size = 4;
          break;
        default:
          ADD_FAILURE() << "wire type " << (key & 7U);
          return;
      }
      fields.emplace(field, bytes.substr(at, size));
      at += size;
    }
  }
  static std::uint64_t varint(const std::string& bytes, std::size_t& at) {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes.at(at++));
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
  }
  std::string text(int field) const { return fields.count(field) == 1 ? fields.find(field)->second : "?"; }
  template <typename T>
  T number(int field) const {
    return number_at<T>(text(field) + std::string(8, '\0'), 0);
  }
  Message message(int field) const { return Message(text(field)); }
};

TEST(EventFile, CrcIsCastagnolis) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);              // RFC 3720, B.4
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);    // RFC 3720, B.4
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43U);  // RFC 3720, B.4
  EXPECT_EQ(slow_crc32c("123456789"), 0xE3069283U);
}

TEST(EventFile, HoldsWhatAnIndependentDecoderFinds) {
  const testing::TemporaryFolder folder;
  std::string path;
  {
    EventFile file(folder.path(), 1.7e9);
    path = file.path();
    file.begin_session(301, 1.7e9);
    file.add_scalar("train/loss", 300, 0.1, 1.7e9 + 0.5);
    file.add_image("maps/t2m", 7, 300, 150, std::string("\x89PNG\0x", 6), 1);
    file.add_text("configuration", 0, "    {}", 2);
  }
  EXPECT_EQ(std::filesystem::path(path).filename(), "events.out.tfevents.1700000000.jigsaw");
  const std::vector<std::string> records = records_of(testing::text_of(path));
  ASSERT_EQ(records.size(), 5U);
  EXPECT_EQ(Message(records[0]).text(3), "brain.Event:2");
  EXPECT_EQ(Message(records[0]).number<double>(1), 1.7e9);
  EXPECT_EQ(Message(records[1]).number<std::int64_t>(2), 301);
  EXPECT_EQ(Message(records[1]).message(7).number<std::int64_t>(1), 1);

  const Message scalar = Message(records[2]);
  EXPECT_EQ(scalar.number<double>(1), 1.7e9 + 0.5);
  EXPECT_EQ(scalar.number<std::int64_t>(2), 300);
  const Message value = scalar.message(5).message(1);
  EXPECT_EQ(value.text(1), "train/loss");
  EXPECT_EQ(value.number<float>(2), 0.1F);

  const Message image = Message(records[3]).message(5).message(1).message(4);
  EXPECT_EQ(image.number<std::int64_t>(1), 150);
  EXPECT_EQ(image.number<std::int64_t>(2), 300);
  EXPECT_EQ(image.number<std::int64_t>(3), 3);
  EXPECT_EQ(image.text(4), std::string("\x89PNG\0x", 6));

  const Message text = Message(records[4]).message(5).message(1);
  EXPECT_EQ(text.message(8).number<std::int64_t>(1), 7);
  EXPECT_EQ(text.message(8).text(8), "    {}");
  EXPECT_EQ(text.message(9).message(1).text(1), "text");
}

}  // namespace
}  // namespace jigsaw
