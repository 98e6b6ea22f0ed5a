// Data sets of anemoi-datasets, whose points are a list: by zarr-python in format 2 on latitudes and
// longitudes, and in format 3 on points of their own (make_zarr_fixtures.py).
#include <filesystem>

#include "array/host_view.h"
#include "base/error.h"
#include "base/text.h"
#include "comm/thread/run_ranks.h"
#include "fields/file_set.h"
#include "files/zarr_store.h"
#include "io/fixtures.h"
#include "samples/dataset.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace anemoi_test {

constexpr std::int64_t kRows = 3, kColumns = 5;

double value(std::int64_t t, std::int64_t variable, std::int64_t row, std::int64_t column) {
  return static_cast<double>(1000 * t + 100 * variable + 10 * row + column);
}

void expect_fields(FileSet& files) {
  const Field fields[] = {{"t2m", {}}, {"t", 850}, {"lsm", {}}};
  for (std::int64_t v = 0; v < std::ssize(fields); ++v) {
    const Field& field = fields[v];
    files.select(field, true);
    ASSERT_EQ(files.times(field).size(), 4U);
    EXPECT_EQ(files.times(field)[1], at("2020-01-01T06:00"));
    for (std::int64_t t = 0; t < 4; ++t) {
      for (const Box& box : {Box{{0, 0}, {kRows, kColumns}}, Box{{1, 2}, {2, 3}}, Box{{2, 0}, {1, 2}},
                             Box{{0, 4}, {3, 1}}, Box{{1, 0}, {2, kColumns}}}) {
        std::vector<double> found(static_cast<std::size_t>(box.extent.count()));
        files.read(field, files.times(field)[static_cast<std::size_t>(t)], box, found);
        std::size_t i = 0;
        for (std::int64_t row = box.begin[0]; row < box.end(0); ++row) {
          for (std::int64_t column = box.begin[1]; column < box.end(1); ++column)
            ASSERT_EQ(found[i++], value(t, v, row, column)) << field.name() << " " << t << " " << box;
        }
      }
    }
  }
}

TEST(Anemoi, PointsOfRowsAndColumnsAreAGrid) {
  FileSet files({fixture("anemoi2.zarr")}, {});
  expect_fields(files);
  EXPECT_TRUE(files.grid().geographic);
  EXPECT_EQ(files.grid().axes[0].coordinates, (std::vector<double>{60, 40, 20}));
  EXPECT_EQ(files.grid().axes[1].coordinates, (std::vector<double>{0, 10, 20, 30, 40}));
}

TEST(Anemoi, PointsWithPlacesOfTheirOwnAreAProjectedGrid) {
  FileSet files({fixture("anemoi3.zarr")}, {});
  expect_fields(files);
  EXPECT_FALSE(files.grid().geographic);
  const PointPlaces places = files.read_degrees({{1, 2}, {2, 2}});
  EXPECT_EQ(places.latitude, (std::vector<double>{40.2, 40.3, 20.2, 20.3}));
  EXPECT_EQ(places.longitude, (std::vector<double>{20, 30, 20, 30}));
}

TEST(Anemoi, IsTrainedOn) {
  DataOptions options;
  options.files = {"anemoi2.zarr"};
  options.variables = {{"2t", {}}, {"t", {850}}};
  options.train = {period("2020-01-01", "2020-01-01T18:00")};
  options.predict = Predict::kState;  // it changes by the same everywhere
  run_ranks(2, [&](Communicator& world) {
    ASSERT_EQ(world.size(), 2);
    const Dataset data(options, fixture(""), 1, world);
    EXPECT_EQ(data.count(Split::kTrain), 3);
    EXPECT_NEAR(data.statistics().fields.at("2t").mean, 1500 + 10 + 2, 1e-9);
    EXPECT_NEAR(data.statistics().fields.at("t_850").mean, 1600 + 10 + 2, 1e-9);
  });
}

/// A chunk holds all variables at one time: it is not fetched once for each of them.
TEST(Anemoi, ChunksAreReadOnceForAllVariables) {
  const auto fetched = [](const std::vector<VariableOptions>& variables) {
    DataOptions options;
    options.files = {"anemoi2.zarr"};
    options.variables = variables;
    options.train = {period("2020-01-01", "2020-01-01T18:00")};
    options.predict = Predict::kState;
    std::int64_t bytes = 0;
    run_ranks(1, [&](Communicator& world) {
      const Dataset data(options, fixture(""), 1, world);
      EXPECT_EQ(data.statistics().fields.size(), variables.size());
      bytes = data.bytes_fetched();
    });
    return bytes;
  };
  const std::int64_t of_one = fetched({{"2t", {}}});
  EXPECT_GT(of_one, 0);
  EXPECT_EQ(fetched({{"2t", {}}, {"t", {850}}, {"lsm", {}}}), of_one);
}

/// Points that are no rows and columns are a list, which data.regrid brings to some.
TEST(Anemoi, OtherPointsAreAList) {
  const testing::TemporaryFolder folder;
  const std::string store = folder.path() + "/reduced.zarr";
  std::filesystem::copy(fixture("anemoi2.zarr"), store, std::filesystem::copy_options::recursive);
  for (const char* shape : {"[15]", "[4, 5]", "[-3, -5]", "null", "[[3, 5]]", "[3.0, 5.0]"}) {
    testing::put_text(store + "/.zattrs",
                      concat(R"({"variables": ["2t", "t_850", "lsm"], "field_shape": )", shape, "}"));
    const std::string refused = message_of<DataError>([&] {
      FileSet files({store}, {});
      files.select({"t2m", {}}, true);
    });
    EXPECT_NE(refused.find("data in " + store + " lies on a list of 15 points"), std::string::npos)
        << shape << ": " << refused;
    FileSet files({store}, {.regrid = {Regrid::kNearest, {}, {60, 20, 20}, {0, 40, 10}}});
    expect_fields(files);
    FileSet between({store}, {.regrid = {Regrid::kLinear, {}, {50, 30, 20}, {5, 35, 10}}});
    between.select({"t", 850}, true);
    std::vector<double> found(8);
    between.read({"t", 850}, between.times({"t", 850})[1], {{0, 0}, {2, 4}}, found);
    for (std::int64_t i = 0; i < 8; ++i)
      EXPECT_NEAR(found[static_cast<std::size_t>(i)], value(1, 1, i / 4, i % 4) + 5.5, 1e-9);
  }
}

}  // namespace anemoi_test
}  // namespace jigsaw
