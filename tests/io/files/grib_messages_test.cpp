// Where messages stand in GRIB files, and what is said of those that are damaged.
#include <cstdint>

#include "files/grib_file.h"
#include "io/files/grib_fixture.h"

namespace jigsaw {
namespace grib_file_test {

class GribMessages : public Grib {
 protected:
  std::string refusal_of(const std::string& bytes) const {
    put_text(in("refused.grib"), bytes);
    return refusal([&] { open_variables(in("refused.grib"), Dimensions::kByName); });
  }
};

/// Big-endian.
std::uint64_t number_at(const std::string& bytes, std::size_t at, std::size_t count) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < count; ++i) number = number << 8 | static_cast<unsigned char>(bytes[at + i]);
  return number;
}

void put_number(std::string& bytes, std::size_t at, std::size_t count, std::uint64_t number) {
  for (std::size_t i = count; i-- > 0; number >>= 8) bytes[at + i] = static_cast<char>(number & 0xff);
}

TEST_P(GribMessages, BehindOtherBytesAreRead) {
  const std::string whole = analyses();
  for (const std::string& before : {std::string("\x01\r\r\n001\r\r\nGRIB01 ECMF 010000\r\r\n"),
                                    std::string("\n"), std::string(512, '\0')}) {
    put_text(in("a"), before + whole);
    const auto file = open_variables(in("a"), Dimensions::kByName);
    EXPECT_EQ(file->format(), "GRIB");
    EXPECT_EQ(file->find("t")->shape, (Shape{3, 3, kRows, kColumns}));
  }
  EXPECT_NE(refusal_of("About GRIB\x02 and GRIB files\n").find("it is no NetCDF or GRIB file"),
            std::string::npos);
  EXPECT_NE(refusal_of(std::string(1 << 17, '\n') + whole).find("it is no NetCDF or GRIB file"),
            std::string::npos);
}

TEST_P(GribMessages, WithLengthsThatAreDamagedAreRefusedWithWhatTheySay) {
  const Spec each = spec();
  const std::string one = message(each, field(each));
  const std::size_t at = GetParam() == 1 ? 4 : 8, count = GetParam() == 1 ? 3 : 8;
  std::string damaged = one + one;
  put_number(damaged, at, count, 10);
  EXPECT_NE(refusal_of(damaged).find("its message at byte 0 is damaged"), std::string::npos);
  if (GetParam() == 1) return;
  put_number(damaged, at, count, ~std::uint64_t{0} - 5);
  EXPECT_NE(refusal_of(damaged).find("is damaged: it says that it has more bytes than any file"),
            std::string::npos);
  put_number(damaged, at, count, one.size() + 10);
  EXPECT_NE(refusal_of(damaged).find(concat("is damaged: it ends after ", one.size(),
                                            " bytes, and says that it has ", one.size() + 10)),
            std::string::npos);
}

TEST_P(GribMessages, OfSeveralFieldsAreRefusedWithTheCommandThatPartsThem) {
  if (GetParam() == 1) GTEST_SKIP() << "edition 1 has one field in a message";
  const Spec each = spec();
  std::string bytes = message(each, field(each));
  std::size_t at = 16;
  while (number_at(bytes, at + 4, 1) != 4) at += number_at(bytes, at, 4);
  const std::string field_again = bytes.substr(at, bytes.size() - 4 - at);
  bytes.insert(bytes.size() - 4, field_again);
  put_number(bytes, 8, 8, bytes.size());
  const std::string said = refusal_of(bytes);
  EXPECT_NE(said.find("holds several fields"), std::string::npos) << said;
  EXPECT_NE(said.find("grib_copy IN OUT"), std::string::npos) << said;
}

INSTANTIATE_TEST_SUITE_P(Editions, GribMessages, ::testing::Values(1, 2));

}  // namespace grib_file_test
}  // namespace jigsaw
