// GRIB files of both editions as ecCodes writes them, against what was given to it to write.
#include "files/grib_file.h"

#include <array>
#include <cmath>
#include <numbers>
#include <random>

#include "fields/file_set.h"
#include "files/probe.h"
#include "io/files/grib_fixture.h"

namespace jigsaw {
namespace grib_file_test {

/// Another rank described it: its messages need not be looked for again.
TEST_P(Grib, IsTheSameWhereItWasDescribed) {
  put_text(in("a.grib"), analyses());
  const auto file = open_variables(in("a.grib"), Dimensions::kByName);
  const auto described =
      open_described(FileDescription::from_bytes(file->describe().to_bytes()), External::kRefused);
  EXPECT_EQ(described->format(), "GRIB");
  described->forget_described();
  for (const char* name : {"t", "2t", "time", "level", "latitude", "longitude"}) {
    SCOPED_TRACE(name);
    const std::vector<double> found = read(*described, name), wanted = read(*file, name);
    ASSERT_FALSE(wanted.empty());
    EXPECT_EQ(join(found, " "), join(wanted, " "));
  }
}

TEST_P(Grib, HoldsWhatWasWritten) {
  put_text(in("a.grib"), analyses());
  const auto file = open_variables(in("a.grib"), Dimensions::kByName);
  const FileVariable &t = *file->find("t"), &t2m = *file->find("2t");
  EXPECT_EQ(t.dimensions, (std::vector<std::string>{"time", "level", "latitude", "longitude"}));
  EXPECT_EQ(t.shape, (Shape{3, 3, kRows, kColumns}));
  EXPECT_EQ(t2m.dimensions, (std::vector<std::string>{"time", "latitude", "longitude"}));
  EXPECT_EQ(t.text("units"), "K");
  EXPECT_EQ(t.text("standard_name"), "air_temperature");
  EXPECT_EQ(read(*file, "time"), (std::vector<double>{1577836800, 1577858400, 1577880000}));
  EXPECT_EQ(read(*file, "level"), (std::vector<double>{500, 850, 1000}));
  EXPECT_EQ(file->find("level")->text("units"), "hPa");
  EXPECT_EQ(read(*file, "latitude"), (std::vector<double>{60, 55, 50, 45}));
  EXPECT_EQ(read(*file, "longitude"), (std::vector<double>{350, 355, 360, 365, 370, 375}));
  std::vector<double> wanted;
  for (const long time : {0, 600, 1200}) {
    for (const long level : {500, 850, 1000}) {
      Spec each = spec();
      each.time = time;
      each.level = level;
      const std::vector<double> values = field(each, level == 850 ? 7 : -1);
      wanted.insert(wanted.end(), values.begin(), values.end());
    }
  }
  expect_near(read(*file, "t"), wanted);
  // Of a part only its own messages are decoded, and a plane that is kept is not read again.
  const auto again = open_variables(in("a.grib"), Dimensions::kByName);
  Spec each = spec();
  each.time = 600;
  const auto bytes = std::ssize(message(each, field(each, 7)));
  const Box box{{1, 1, 1, 0}, {1, 1, 2, 3}};
  std::vector<double> part;
  for (const int i : {6, 7, 8, 12, 13, 14}) part.push_back(i == 7 ? kNaN : value(each, i));
  const std::int64_t before = again->bytes_fetched();
  expect_near(read(*again, "t", box), part);
  EXPECT_EQ(again->bytes_fetched() - before, bytes);
  expect_near(read(*again, "t", box), part);
  EXPECT_EQ(again->bytes_fetched() - before, bytes);
  EXPECT_TRUE(again->undeclared().empty()) << "what the bitmap leaves out is declared";
}

TEST_P(Grib, IsADataSetOfFields) {
  put_text(in("a.grib"), analyses());
  FileSet files({in("a.grib")});
  const Field t{"t", 850.0}, t2m{"t2m", {}};
  files.select(t, true);
  files.select(t2m, true);
  EXPECT_EQ(files.times(t2m),
            (std::vector<Time>{at("2020-01-01"), at("2020-01-01T06:00"), at("2020-01-01T12:00")}));
  EXPECT_EQ(files.units(t2m), "K");
  EXPECT_FALSE(files.grid().periodic);
  std::vector<double> found(6);
  files.read(t2m, at("2020-01-01T12:00"), {{2, 1}, {2, 3}}, found);
  Spec each = surface();
  each.time = 1200;
  expect_near(found, {value(each, 13), value(each, 14), value(each, 15), value(each, 19), value(each, 20),
                      value(each, 21)});
}

TEST_P(Grib, HasStepsAndMembers) {
  std::string bytes, ensemble;
  for (const long date : {20200101, 20200102})
    for (const long step : {0, 24, 36})
      for (const long number : {3, 1}) {
        Spec each = spec();
        each.date = date;
        each.step = step;
        each.number = number;
        bytes += message(each, field(each));
        if (step == 36) ensemble += message(each, field(each));
      }
  put_text(in("a.grib"), bytes);
  GribFile file(in("a.grib"));
  EXPECT_EQ(file.find("t")->dimensions,
            (std::vector<std::string>{"time", "step", "number", "level", "latitude", "longitude"}));
  EXPECT_EQ(read(file, "step"), (std::vector<double>{0, 24, 36}));
  EXPECT_EQ(read(file, "number"), (std::vector<double>{1, 3}));
  EXPECT_EQ(read(file, "time"), (std::vector<double>{1577836800, 1577923200}));
  Spec each = spec();
  each.date = 20200102;
  each.step = 24;
  each.number = 3;
  expect_near(read(file, "t", Box{{1, 1, 1, 0, 0, 0}, {1, 1, 1, 1, kRows, kColumns}}), field(each));
  // Of one step the time is the valid time.
  put_text(in("b.grib"), ensemble);
  GribFile valid(in("b.grib"));
  EXPECT_EQ(read(valid, "time"), (std::vector<double>{1577836800 + 36 * 3600, 1577923200 + 36 * 3600}));
  FileSelection selection;
  selection.member.number = 3;
  FileSet files({in("b.grib")}, selection);
  files.select({"t", 850.0}, true);
  std::vector<double> found(kRows * kColumns);
  files.read({"t", 850.0}, at("2020-01-03T12:00"), {{0, 0}, {kRows, kColumns}}, found);
  each.step = 36;
  expect_near(found, field(each));
}

/// Beside files of members its control run is member 0, in one file with them or of its own.
TEST_P(Grib, HasAControlRun) {
  std::string members, control, single;
  for (const long time : {0, 600}) {
    Spec each = surface();
    each.time = time;
    single += message(each, field(each));
    each.number = 0;
    each.type = GetParam() == 1 ? "cf" : "";
    control += message(each, field(each));
    for (const long number : {1, 2}) {
      each.number = number;
      each.type = GetParam() == 1 ? "pf" : "";
      members += message(each, field(each));
    }
  }
  put_text(in("cf.grib"), control);
  put_text(in("pf.grib"), members);
  put_text(in("both.grib"), single + members);
  put_text(in("single.grib"), single);
  FileSelection all;
  all.member.all = true;
  for (const std::vector<std::string>& paths :
       {std::vector{in("pf.grib"), in("cf.grib")}, {in("both.grib")}}) {
    FileSet files(paths, all);
    files.select({"2t", {}}, true);
    EXPECT_EQ(files.member_numbers(), (std::vector<double>{0, 1, 2}));
    for (const std::int32_t number : {0, 1, 2}) {
      std::vector<double> found(kRows * kColumns);
      files.read({"2t", {}}, {at("2020-01-01T06:00"), number}, {{0, 0}, {kRows, kColumns}}, found);
      Spec each = surface();
      each.time = 600;
      each.number = number;
      expect_near(found, field(each));
    }
  }
  FileSelection first;
  first.member.number = 0;
  FileSet files({in("cf.grib"), in("pf.grib")}, first);
  files.select({"2t", {}}, true);
  EXPECT_EQ(files.times({"2t", {}}).size(), 2U);
  ASSERT_TRUE(files.member().has_value());
  EXPECT_EQ(files.member()->values, std::vector<double>{0});
  EXPECT_EQ(GribFile(in("cf.grib")).find("number")->shape, Shape{});
  EXPECT_EQ(GribFile(in("single.grib")).find("number"), nullptr);
}

TEST_P(Grib, RunsAsItSays) {
  Spec south = spec();
  std::swap(south.north, south.south);
  south.more = {{"jScansPositively", 1}};
  put_text(in("south.grib"), message(south, field(south)));
  GribFile from_south(in("south.grib"));
  EXPECT_EQ(read(from_south, "latitude"), (std::vector<double>{45, 50, 55, 60}));
  expect_near(read(from_south, "t"), field(south));

  Spec west = spec();
  std::swap(west.west, west.east);
  west.more = {{"iScansNegatively", 1}};
  put_text(in("west.grib"), message(west, field(west)));
  GribFile to_west(in("west.grib"));
  EXPECT_EQ(read(to_west, "longitude"), (std::vector<double>{15, 10, 5, 0, -5, -10}));

  Spec columns = spec();
  columns.more = {{"jPointsAreConsecutive", 1}};
  put_text(in("columns.grib"), message(columns, field(columns)));
  GribFile by_columns(in("columns.grib"));
  EXPECT_EQ(by_columns.find("t")->dimensions,
            (std::vector<std::string>{"time", "level", "longitude", "latitude"}));
  EXPECT_EQ(by_columns.find("t")->shape, (Shape{1, 1, kColumns, kRows}));
  expect_near(read(by_columns, "t"), field(columns));
}

/// As the National Digital Forecast Database has them.
TEST_P(Grib, WhoseRowsRunToAndFroIsTurned) {
  if (GetParam() == 1) GTEST_SKIP() << "edition 1 has no such rows";
  for (const bool columns : {false, true}) {
    Spec each = spec();
    each.more = {{"jPointsAreConsecutive", columns ? 1 : 0}, {"alternativeRowScanning", 1}};
    std::vector<double> stored = field(each, 8), wanted = stored;
    const int run = columns ? kRows : kColumns;
    for (int begin = run; begin < kRows * kColumns; begin += 2 * run)
      std::reverse(wanted.begin() + begin, wanted.begin() + begin + run);
    put_text(in("a.grib"), message(each, stored));
    const auto file = open_variables(in("a.grib"), Dimensions::kByName);
    expect_near(read(*file, "t"), wanted);
    expect_near(read(*open_described(file->describe(), External::kRefused), "t"), wanted);
  }
}

TEST_P(Grib, OfOneNameOnSeveralKindsOfLevelIsSeveralVariables) {
  Spec ground = spec();
  ground.level_type = "surface";
  ground.level = 0;
  const Spec above = spec();
  put_text(in("a.grib"), message(above, field(above)) + message(ground, field(ground)));
  GribFile file(in("a.grib"));
  expect_near(read(file, "surface/t"), field(ground));
  expect_near(read(file, "isobaricInhPa/t"), field(above));
}

/// What else is in a file decides of its name, not of whether it is found.
TEST_P(Grib, OfSeveralKindsOfLevelIsFoundByTheLevelThatIsAskedFor) {
  Spec ground = spec(), above = spec(), later = spec();
  ground.level_type = "surface";
  ground.level = 0;
  later.time = 600;
  put_text(in("a.grib"), message(above, field(above)) + message(ground, field(ground)));
  put_text(in("b.grib"), message(later, field(later)));
  FileSet files({in("a.grib"), in("b.grib")});
  for (const char* name : {"t", "isobaricInhPa/t", "isobaricInhPa_instant/t", "temperature"}) {
    SCOPED_TRACE(name);
    const Field found{name, 850.0};
    files.select(found, true);
    EXPECT_EQ(files.times(found), (std::vector<Time>{at("2020-01-01"), at("2020-01-01T06:00")}));
    std::vector<double> values(kRows * kColumns);
    files.read(found, at("2020-01-01"), {{0, 0}, {kRows, kColumns}}, values);
    expect_near(values, field(above));
  }
  const std::vector<VariableSummary> catalogue = FileSet({in("a.grib"), in("b.grib")}).catalogue();
  ASSERT_EQ(catalogue.size(), 2U);
  EXPECT_EQ(catalogue[0].name, "isobaricInhPa/t");
  EXPECT_EQ(catalogue[0].times.size(), 2U);
  EXPECT_EQ(catalogue[1].name, "surface/t");
  const Field surface{"surface/t", {}};
  files.select(surface, true);
  EXPECT_EQ(files.times(surface), std::vector<Time>{at("2020-01-01")});
  FileSet first({in("a.grib")});
  first.select({"t", {}}, true);
  std::vector<double> values(kRows * kColumns);
  first.read({"t", {}}, at("2020-01-01"), {{0, 0}, {kRows, kColumns}}, values);
  expect_near(values, field(ground));
  EXPECT_NE(refusal([&] {
              files.select({"t", {}}, true);
            }).find("has levels; name those that you want"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              files.select({"t", 500.0}, true);
            }).find("has no level 500; levels there: 850"),
            std::string::npos);
}

/// Its rows are where Legendre's polynomial is 0; parts of it and those from south to north, too.
TEST_P(Grib, OnARegularGaussianGridIsRead) {
  constexpr int kCircles = 64;
  Spec gaussian = spec();
  gaussian.sample = concat("regular_gg_pl_grib", GetParam());
  std::vector<double> degrees;
  const auto write = [&](bool to_south, double first, double last, int rows) {
    gaussian.more = {{"Nj", rows}, {"jScansPositively", to_south ? 0 : 1}};
    gaussian.degrees = {{"latitudeOfFirstGridPointInDegrees", first},
                        {"latitudeOfLastGridPointInDegrees", last}};
    std::vector<double> values;
    for (int i = 0; i < rows * 2 * kCircles; ++i) values.push_back(value(gaussian, i));
    put_text(in("a.grib"), message(gaussian, values));
    const auto file = open_variables(in("a.grib"), Dimensions::kByName);
    expect_near(read(*file, "t"), values);
    ASSERT_EQ(file->find("t")->shape, (Shape{1, 1, rows, 2 * kCircles}));
    degrees = read(*file, "latitude");
  };
  write(true, 87.864, -87.864, kCircles);
  EXPECT_NEAR(degrees[0], 87.86379884, 1e-8);
  for (const double latitude : degrees) {
    const double x = std::sin(latitude * std::numbers::pi / 180), slope = kCircles / (1 - x * x);
    EXPECT_LT(std::abs(std::legendre(kCircles, x)), 1e-12 * slope) << latitude;
  }
  const std::vector<double> all = degrees;
  write(true, 85.097, -87.864, kCircles - 1);
  EXPECT_EQ(degrees, std::vector<double>(all.begin() + 1, all.end()));
  write(false, -87.864, -85.097, 2);
  EXPECT_EQ(degrees, (std::vector<double>{all[kCircles - 1], all[kCircles - 2]}));
  const std::string said = refusal([&] { write(true, 80, -87.864, kCircles); });
  EXPECT_NE(said.find("it is on 64 rows from 80 to -87.864 degrees, which a Gaussian grid of 64 circles"),
            std::string::npos)
      << said;
}

constexpr std::size_t kReduced = 6114;  // points of the grid N32

TEST_P(Grib, OnAReducedGaussianGridIsAListOfPoints) {
  Spec reduced = spec();
  reduced.sample = concat("reduced_gg_pl_32_grib", GetParam());
  reduced.name = "u";
  const std::string even = message(reduced, std::vector<double>(kReduced, 1.0));
  const std::vector<double> latitudes = degrees_of(even, "latitudes"),
                            longitudes = degrees_of(even, "longitudes");
  ASSERT_EQ(latitudes.size(), kReduced);
  std::vector<double> values;
  for (int i = 0; i < std::ssize(latitudes); ++i) values.push_back(value(reduced, i));
  values[100] = kNaN;
  const Spec regular = spec();
  put_text(in("a.grib"), message(reduced, values) + message(regular, field(regular)));
  const auto opened = open_variables(in("a.grib"), Dimensions::kByName);
  const auto described = open_described(opened->describe(), External::kRefused);
  for (VariableFile* const file : {opened.get(), described.get()}) {
    expect_near(read(*file, "t"), field(regular));
    ASSERT_NE(file->find("u"), nullptr);
    EXPECT_EQ(file->find("u")->dimensions.back(), "values");
    expect_near(read(*file, "u"), values);
    // A grid's own coordinates have the names first.
    const std::string which = file->find("latitude")->dimensions[0] == "values" ? "" : "_2";
    EXPECT_EQ(file->find("latitude" + which)->dimensions, std::vector<std::string>{"values" + which});
    const std::vector<double> rows = read(*file, "latitude" + which),
                              along = read(*file, "longitude" + which);
    ASSERT_EQ(rows.size(), latitudes.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      EXPECT_NEAR(rows[i], latitudes[i], 1e-9) << i;
      EXPECT_NEAR(along[i], longitudes[i], 1e-9) << i;
    }
    EXPECT_EQ(read(*file, "longitude" + which, Box{{1000}, {70}}),
              std::vector<double>(along.begin() + 1000, along.begin() + 1070));
  }
  FileSet files({in("a.grib")}, {.regrid = {Regrid::kNearest, {}, {85, -85, 10}, {0, 350, 10}}});
  const Field wind{"u_component_of_wind", {}};
  files.select(wind, true);
  std::vector<double> found(18 * 36);
  files.read(wind, files.times(wind)[0], {{0, 0}, {18, 36}}, found);
  // The row at the nearest latitude, and its nearest point.
  std::size_t best = 0;
  const auto off = [&](std::size_t i) {
    return std::pair{std::abs(latitudes[i] - 35), std::abs(longitudes[i] - 110)};
  };
  for (std::size_t i = 0; i < latitudes.size(); ++i)
    if (off(i) < off(best)) best = i;
  EXPECT_NEAR(found[5 * 36 + 11], values[best], kNear);
}

TEST_P(Grib, OnAPartOfAReducedGaussianGridIsRefusedWithTheCommandThatConvertsIt) {
  Spec reduced = spec();
  reduced.sample = concat("reduced_gg_pl_32_grib", GetParam());
  reduced.name = "u";
  put_text(in("a.grib"), with(message(reduced, std::vector<double>(kReduced, 1.0)),
                              "longitudeOfLastGridPointInDegrees", 180));
  FileSet files({in("a.grib")});
  const std::string said = refusal([&] { files.select({"u_component_of_wind", {}}, true); });
  EXPECT_NE(said.find("u in " + in("a.grib") + " cannot be used: it is on a part of a reduced Gaussian grid"),
            std::string::npos)
      << said;
  EXPECT_NE(said.find("cdo -f nc4 -setgridtype,regular " + in("a.grib") + " " + in("a.nc")),
            std::string::npos)
      << said;
}

TEST_P(Grib, WhoseMessagesDoNotFillItsDimensionsIsRefused) {
  const std::string whole = analyses();
  Spec more = spec();
  more.level = 300;
  put_text(in("a.grib"), whole + message(more, field(more)));
  EXPECT_NE(refusal([&] {
              GribFile file(in("a.grib"));
              read(file, "t");
            })
                .find("its 10 messages do not fill its dimensions, 3 of time x 4 of level: there is none of "
                      "2020-01-01T06:00, "
                      "level 300; add what lacks, or choose messages"),
            std::string::npos);
  more.level = 500;
  put_text(in("b.grib"), whole + message(more, field(more)));
  EXPECT_NE(refusal([&] {
              GribFile file(in("b.grib"));
              read(file, "t");
            }).find("it has two messages of 2020-01-01T00:00, level 500"),
            std::string::npos);
}

TEST_P(Grib, CutOffOrDamagedIsOneSentence) {
  const std::string whole = analyses();
  // Other things may stand between messages, and behind the last one.
  const std::size_t second = whole.find("GRIB", 4);
  put_text(in("a.grib"), whole.substr(0, second) + "\r\r\nHEADER\n" + whole.substr(second) + "\n\n");
  EXPECT_EQ(GribFile(in("a.grib")).find("t")->shape, (Shape{3, 3, kRows, kColumns}));
  for (const std::size_t bytes : {whole.size() - 1, whole.size() - 60, second + 5, second + 40, second - 3}) {
    put_text(in("cut.grib"), whole.substr(0, bytes));
    const std::string said = refusal([&] { open_variables(in("cut.grib"), Dimensions::kByName); });
    EXPECT_NE(said.find("cut off"), std::string::npos) << bytes << said;
  }
  std::string damaged = whole;
  damaged[second - 1] = '8';
  put_text(in("damaged.grib"), damaged);
  EXPECT_NE(refusal([&] { GribFile file(in("damaged.grib")); }).find("does not end"), std::string::npos);
  damaged = whole;
  damaged[second + 3] = '\0';
  put_text(in("damaged.grib"), damaged);
  EXPECT_NE(refusal([&] { GribFile file(in("damaged.grib")); }).find("that does not begin there"),
            std::string::npos);
  damaged = whole;
  damaged[7] = '\3';
  put_text(in("damaged.grib"), damaged);
  EXPECT_NE(refusal([&] { GribFile file(in("damaged.grib")); }).find("is of edition 3"), std::string::npos);
  put_text(in("noise.grib"), whole + std::string(1 << 17, 'x') + whole);
  EXPECT_NE(refusal([&] { GribFile file(in("noise.grib")); }).find("no GRIB message follows"),
            std::string::npos);
}

/// Headers are read by a process of its own first, as of every format; what it took apart is read here.
TEST_P(Grib, ChangedAtRandomEndsWithValuesOrWithADataError) {
  const char* count = std::getenv("JIGSAW_MUTATIONS");
  const int copies = count == nullptr ? 100 : std::atoi(count);
  const std::string whole = analyses();
  std::mt19937 random(5);
  std::vector<std::string> paths;
  for (int i = 0; i < copies; ++i) {
    std::string bytes = whole;
    for (unsigned changes = 1 + random() % 3; changes > 0; --changes)
      bytes[random() % std::min<std::size_t>(bytes.size(), 600)] = static_cast<char>(random());
    paths.push_back(in(concat(i, ".grib")));
    put_text(paths.back(), bytes);
  }
  const std::vector<std::string> ends =
      Probe{PROBE_PROGRAM, Dimensions::kByName, External::kRefused}.outcomes(paths);
  int read_whole = 0, refused = 0, died = 0;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    died += ends[i].empty() ? 0 : 1;
    if (!ends[i].empty()) continue;
    try {
      const auto file = open_variables(paths[i], Dimensions::kByName);
      for (const FileVariable& variable : file->variables())
        if (variable.numeric() && variable.shape.count() < 1 << 16) read(*file, variable.name);
      ++read_whole;
    } catch (const DataError& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
      ++refused;
    }
  }
  std::cout << "of " << copies << " copies " << read_whole << " read, " << refused << " refused, " << died
            << " ended the process that reads headers\n";
  EXPECT_GT(read_whole, 0);
  EXPECT_GT(refused, 0);
}

/// Edition 1 rounds the ends of grids to thousandths of a degree, edition 2 to millionths.
TEST(GribGrids, OfBothEditionsAreOneWhereRoundingAloneDiffers) {
  const TemporaryFolder folder;
  for (const auto& [north, west] : {std::pair{61.0, 10 + 1. / 3}, {60.0625, 350.0625}}) {
    const double step = north == 61 ? 1. / 3 : 0.0625;
    std::vector<std::string> paths;
    for (const int edition : {1, 2}) {
      Spec each;
      each.edition = edition;
      each.time = 600 * (edition - 1);
      each.north = north;
      each.south = north - 3 * step;
      each.west = west;
      each.east = west + 5 * step;
      paths.push_back(folder.path() + concat("/", north, "_", edition, ".grib"));
      put_text(paths.back(), message(each, field(each)));
    }
    GribFile first(paths[0]), second(paths[1]);
    const std::vector<double> rows = read(first, "latitude"), columns = read(first, "longitude");
    EXPECT_EQ(rows, read(second, "latitude"));
    EXPECT_EQ(columns, read(second, "longitude"));
    for (std::size_t i = 0; i < rows.size(); ++i)
      EXPECT_NEAR(rows[i], north - static_cast<double>(i) * step, 1e-9);
    for (std::size_t i = 0; i < columns.size(); ++i)
      EXPECT_NEAR(columns[i], west + static_cast<double>(i) * step, 1e-9);
    FileSet files(paths);
    files.select({"t", 850.0}, true);
    EXPECT_EQ(files.times({"t", 850.0}).size(), 2U);
  }
}

INSTANTIATE_TEST_SUITE_P(Editions, Grib, ::testing::Values(1, 2));

}  // namespace grib_file_test
}  // namespace jigsaw
