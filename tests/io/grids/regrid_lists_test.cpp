// Fields of files on lists of points and on projections, brought to rows and columns and to projections.
#include "base/error.h"
#include "grids/listed_grids.h"
#include "io/fixtures.h"
#include "io/grids/source_points_fixtures.h"

namespace jigsaw {
namespace source_points_test {

/// A list of points with t2m at one time on it, called sst.
std::string write_list(const testing::TemporaryFolder& folder, const std::string& name,
                       const Numbers& latitudes, const Numbers& longitudes, const Numbers& values,
                       bool radians = false) {
  const std::string path = concat(folder.path(), "/", name);
  testing::NetcdfWriter file(path, NC_NETCDF4);
  const int time = add_axis(file, "time", {0}, "hours since 2020-01-01"),
            cell = file.dimension("ncells", latitudes.size());
  const int north = file.variable("clat", NC_DOUBLE, {cell}), east = file.variable("clon", NC_DOUBLE, {cell});
  file.text(north, "standard_name", "latitude");
  file.text(east, "standard_name", "longitude");
  file.text(north, "units", radians ? "radian" : "degrees_north");
  file.text(east, "units", radians ? "radian" : "degrees_east");
  const int field = file.variable("sst", NC_DOUBLE, {time, cell});
  file.text(field, "units", "K");
  file.text(field, "coordinates", "clat clon");
  file.end();
  const double unit = radians ? std::numbers::pi / 180 : 1;
  Numbers down = latitudes, along = longitudes;
  for (double& degrees : down) degrees *= unit;
  for (double& degrees : along) degrees *= unit;
  file.put(north, down);
  file.put(east, along);
  file.put(field, values);
  return path;
}

TEST(Regrid, ListsOfPointsAreBroughtToRowsAndColumns) {
  const Rows grid = octahedral(8, false);
  const Numbers values = random_values(grid.latitudes().size(), 0.2, 9);
  const TargetPoints wanted = targets(range(90, -10, 19), range(-180, 10, 36));
  for (const Regrid method : {Regrid::kNearest, Regrid::kLinear, Regrid::kConservative}) {
    const testing::TemporaryFolder folder;
    const std::string path = write_list(folder, "list.nc", grid.latitudes(), grid.longitudes(), values);
    FileSet files({path}, {.regrid = {method, {}, {90, -90, 10}, {-180, 170, 10}}});
    files.select(kSst, true);
    EXPECT_EQ(files.grid().shape(), Shape({19, 36}));
    const Numbers found = read_all(files, kSst);
    expect_near(found, expected(grid, values, wanted, method), concat("method ", static_cast<int>(method)));
    expect_pieces(files, kSst, found);
    const FieldDescription described = files.describe(kSst);
    EXPECT_EQ(described.rows.name, "latitude");
    EXPECT_EQ(described.rows.texts.at("units"), "degrees_north");
    EXPECT_EQ(described.columns.values, range(-180, 10, 36));
    EXPECT_EQ(described.texts.at("units"), "K");
    EXPECT_EQ(files.catalogue().size(), 1U);
    EXPECT_FALSE(files.exact_in_float(kSst));
  }
}

TEST(Regrid, PointsInNoOrderAreBroughtToRowsAndColumns) {
  std::mt19937 generator(3);
  std::uniform_real_distribution<double> uniform(-1, 1);
  Numbers latitudes, longitudes;
  for (int i = 0; i < 2000; ++i) {
    latitudes.push_back(std::asin(uniform(generator)) * 180 / std::numbers::pi);
    longitudes.push_back(180 * uniform(generator));
  }
  const Numbers values = random_values(latitudes.size(), 0.1, 4);
  for (const Regrid method : {Regrid::kNearest, Regrid::kInverseDistance}) {
    const testing::TemporaryFolder folder;
    const std::string path = write_list(folder, "icon.nc", latitudes, longitudes, values, true);
    FileSet files({path}, {.regrid = {method, {}, {90, -90, 10}, {0, 350, 10}}});
    files.select(kSst, true);
    const Numbers found = read_all(files, kSst);
    expect_near(found,
                expected_of_scattered(latitudes, longitudes, values,
                                      targets(range(90, -10, 19), range(0, 10, 36)), method),
                concat("method ", static_cast<int>(method)));
    expect_pieces(files, kSst, found);
  }
}

/// The field of a projection, t2m, at a grid.
TEST(Regrid, ProjectionsAreBroughtToRowsAndColumnsAndToOthers) {
  const Projection lambert = projection(50, 3, 2), other = projection(52, 5, 1);
  const testing::TemporaryFolder folder, elsewhere;
  const std::string path = write(folder, lambert);
  {
    FileSet files({path}, {.regrid = {Regrid::kInverseDistance, {}, {58, 42, 2}, {-5, 11, 2}}});
    files.select(kT2m, true);
    EXPECT_TRUE(files.grid().geographic);
    const Numbers found = read_all(files, kT2m);
    expect_near(
        found,
        expected_of_scattered(lambert.latitudes, lambert.longitudes, Numbers(99, 1.0),
                              targets(range(58, -2, 9), range(-5, 2, 9)), Regrid::kInverseDistance, 11),
        "a projection");
    expect_pieces(files, kT2m, found);
    EXPECT_EQ(files.describe(kT2m).columns.name, "longitude");
  }
  // A second projection to the points of the first one.
  const std::string second = write(elsewhere, other, "sst", random_values(99, 0.1, 8));
  FileSet files({path, second}, {.regrid = {.method = Regrid::kInverseDistance}});
  files.select(kT2m, true);
  EXPECT_EQ(read_all(files, kT2m), Numbers(99, 1.0)) << "the grid's own fields stay as they are";
  files.select(kSst, true);
  const Numbers found = read_all(files, kSst);
  expect_near(
      found,
      expected_of_scattered(other.latitudes, other.longitudes, random_values(99, 0.1, 8),
                            {lambert.latitudes, lambert.longitudes, {}}, Regrid::kInverseDistance, 11),
      "to a projection");
  expect_pieces(files, kSst, found);
  EXPECT_TRUE(std::ranges::any_of(found, [](double value) { return std::isnan(value); }));
  // A list in rows to the points of a projection.
  const Rows grid = octahedral(8, false);
  const Numbers values = random_values(grid.latitudes().size(), 0, 9);
  const std::string list = write_list(elsewhere, "list.nc", grid.latitudes(), grid.longitudes(), values);
  FileSet with_list({path, list}, {.regrid = {.method = Regrid::kLinear}});
  with_list.select(kT2m, true);
  with_list.select(kSst, true);
  expect_near(read_all(with_list, kSst),
              expected(grid, values, {lambert.latitudes, lambert.longitudes, {}}, Regrid::kLinear), "a list");
}

TEST(Regrid, RowsAndColumnsAreBroughtByInverseDistance) {
  const testing::TemporaryFolder folder;
  Numbers latitudes, longitudes;
  for (const double latitude : range(88, -4, 45)) {
    for (const double longitude : range(2, 4, 90)) {
      latitudes.push_back(latitude);
      longitudes.push_back(longitude);
    }
  }
  const Numbers values = random_values(latitudes.size(), 0.1, 4);
  const std::string path = concat(folder.path(), "/a.nc");
  {
    testing::NetcdfWriter file(path, NC_NETCDF4);
    const std::vector<int> dimensions = {add_axis(file, "time", {0}, "hours since 2020-01-01"),
                                         add_axis(file, "latitude", range(88, -4, 45), "degrees_north"),
                                         add_axis(file, "longitude", range(2, 4, 90), "degrees_east")};
    const int field = file.variable("sst", NC_DOUBLE, dimensions);
    file.end();
    file.put(field, values);
  }
  FileSet files({path}, {.regrid = {Regrid::kInverseDistance, {}, {80.5, -81.5, 9}, {0.7, 351.7, 9}}});
  files.select(kSst, true);
  const Numbers found = read_all(files, kSst);
  expect_near(
      found,
      expected_of_scattered(latitudes, longitudes, values, targets(range(80.5, -9, 19), range(0.7, 9, 40)),
                            Regrid::kInverseDistance, 90),
      "a grid");
  expect_pieces(files, kSst, found);
  // No holes at the poles, where the points of a row are much nearer to each other than rows are.
  FileSet at_poles({path}, {.regrid = {Regrid::kInverseDistance, {}, {89.6, -87.4, 3}, {0.7, 351.7, 9}}});
  at_poles.select(kSst, true);
  Numbers there(60 * 40);
  at_poles.read(kSst, {at_poles.times(kSst).front(), 0}, {{0, 0}, {60, 40}}, there);
  expect_near(
      there,
      expected_of_scattered(latitudes, longitudes, values, targets(range(89.6, -3, 60), range(0.7, 9, 40)),
                            Regrid::kInverseDistance, 90),
      "to the poles");
}

/// The grid mapping alone says where points are.
TEST(Regrid, HealpixIsKnownByItsMapping) {
  const Rows grid = healpix(8);
  const Numbers values = random_values(grid.latitudes().size(), 0.1, 9);
  const auto write_pixels = [&](const std::string& path, const std::string& order, const Numbers& pixels,
                                double sides) {
    testing::NetcdfWriter file(path);
    const int time = add_axis(file, "time", {0}, "hours since 2020-01-01"),
              cell = file.dimension("cell", pixels.size());
    const int crs = file.variable("crs", NC_INT, {}), field = file.variable("sst", NC_DOUBLE, {time, cell});
    file.text(crs, "grid_mapping_name", "healpix");
    file.text(crs, "healpix_order", order);
    file.number(crs, "healpix_nside", NC_INT, sides);
    file.text(field, "grid_mapping", "crs");
    file.end();
    file.put(field, pixels);
  };
  const testing::TemporaryFolder folder;
  const std::string ring = folder.path() + "/ring.nc", nested = folder.path() + "/nested.nc";
  write_pixels(ring, "ring", values, 8);
  FileSet files({ring}, {.regrid = {Regrid::kLinear, {}, {90, -90, 5}, {0, 355, 5}}});
  files.select(kSst, true);
  expect_near(read_all(files, kSst),
              expected(grid, values, targets(range(90, -5, 37), range(0, 5, 72)), Regrid::kLinear), "ring");
  expect_pieces(files, kSst, read_all(files, kSst));
  write_pixels(nested, "nested", values, 8);
  FileSet in_faces({nested}, {.regrid = {Regrid::kInverseDistance, {}, {82.7, -81.3, 4}, {1.3, 351.3, 5}}});
  in_faces.select(kSst, true);
  const ListedPlaces places = healpix_places(8, true);
  expect_near(
      read_all(in_faces, kSst),
      expected_of_scattered(places.latitudes, places.longitudes, values,
                            targets(range(82.7, -4, 42), range(1.3, 5, 71)), Regrid::kInverseDistance),
      "nested");
  const std::string unknown = folder.path() + "/unknown.nc";
  write_pixels(unknown, "peano", values, 8);
  FileSet other({unknown}, {.regrid = {Regrid::kNearest, {}, {83, -81, 4}, {1, 351, 5}}});
  const std::string refused = message_of<DataError>([&] { other.select(kSst, true); });
  EXPECT_NE(refused.find("healpix_order must be \"ring\" or \"nested\""), std::string::npos) << refused;
}

/// As CDO writes them: `reduced_points` beside `lat`.
TEST(Regrid, ReducedRowsOfCdoAreAList) {
  const Rows grid = octahedral(8, false);
  const Numbers values = random_values(grid.latitudes().size(), 0.1, 9);
  const testing::TemporaryFolder folder;
  const auto write_rows = [&](double first_row) {
    const std::string path = concat(folder.path(), "/rgrid", first_row, ".nc");
    testing::NetcdfWriter file(path);
    const int time = add_axis(file, "time", {0}, "hours since 2020-01-01");
    Numbers latitudes, counts;
    for (const Rows::Row& row : grid.rows) {
      latitudes.push_back(row.latitude);
      counts.push_back(static_cast<double>(row.longitudes.size()));
    }
    counts[0] = first_row;
    add_axis(file, "lat", latitudes, "degrees_north");
    const int rows = file.dimension("reduced_points", counts.size()),
              cell = file.dimension("rgrid", values.size());
    const int points = file.variable("reduced_points", NC_INT, {rows}),
              field = file.variable("sst", NC_DOUBLE, {time, cell});
    file.end();
    file.put(points, counts);
    file.put(field, values);
    return path;
  };
  FileSet files({write_rows(20)}, {.regrid = {Regrid::kConservative, {}, {90, -90, 10}, {0, 350, 10}}});
  files.select(kSst, true);
  expect_near(read_all(files, kSst),
              expected(grid, values, targets(range(90, -10, 19), range(0, 10, 36)), Regrid::kConservative),
              "reduced");
  FileSet wrong({write_rows(21)}, {.regrid = {Regrid::kConservative, {}, {90, -90, 10}, {0, 350, 10}}});
  const std::string refused = message_of<DataError>([&] { wrong.select(kSst, true); });
  EXPECT_NE(refused.find("the rows of reduced_points of "), std::string::npos) << refused;
}

TEST(Regrid, ListsAndProjectionsThatCannotBeBroughtSayWhatCan) {
  const testing::TemporaryFolder folder;
  const Rows grid = octahedral(4, false), part = area();
  Numbers southward = random_values(400, 0, 1);
  for (double& latitude : southward) latitude -= 330;
  const auto list = [&](const std::string& name, const Numbers& latitudes, const Numbers& longitudes) {
    return write_list(folder, name, latitudes, longitudes, Numbers(latitudes.size(), 1.0));
  };
  const std::string rows = list("rows.nc", grid.latitudes(), grid.longitudes()),
                    of_area = list("area.nc", part.latitudes(), part.longitudes()),
                    scattered = list("scattered.nc", southward, random_values(400, 0, 2)),
                    projected = write(folder, projection(50, 3, 2));
  const auto why = [&](const std::vector<std::string>& paths, const RegridOptions& options,
                       const std::vector<Field>& fields) {
    FileSet files(paths, {.regrid = options});
    return message_of<DataError>([&] {
      for (const Field& field : fields) files.select(field, true);
    });
  };
  const auto contains = [](const std::string& message, const std::string& text) {
    EXPECT_NE(message.find(text), std::string::npos) << message;
  };
  contains(why({rows}, {}, {kSst}),
           "lies on a list of 208 points, which are no rows and columns; data.regrid");
  contains(
      why({rows}, {.method = Regrid::kLinear}, {kSst}),
      "data.regrid says to which it brings them by its latitude and longitude, as {\"method\": \"linear\"");
  contains(why({scattered}, {}, {kSst}),
           "{\"method\": \"inverse_distance\", \"latitude\": [-31, -49, 1], \"longitude\": [281, 299, 1]}");
  const std::string degrees_as_radians =
      write_list(folder, "wrong.nc", grid.longitudes(), grid.longitudes(), Numbers(208, 1.0), true);
  contains(why({degrees_as_radians}, {Regrid::kNearest, {}, {90, -90, 10}, {0, 350, 10}}, {kSst}),
           "clat in " + degrees_as_radians + " holds the latitude ");
  contains(why({scattered}, {Regrid::kLinear, {}, {90, -90, 10}, {0, 350, 10}}, {kSst}),
           "lies on 400 points that are in no rows of one latitude and equal steps; data.regrid brings it to "
           "the grid by \"inverse_distance\" or \"nearest\"");
  contains(why({of_area}, {Regrid::kLinear, {}, {90, -90, 10}, {0, 350, 10}}, {kSst}),
           "does not reach 90° N");
  contains(why({projected, rows}, {.method = Regrid::kConservative}, {kT2m, kSst}),
           "is brought to a projection, to which data.regrid has \"linear\", \"nearest\"");
  contains(why({projected}, {Regrid::kLinear, {}, {58, 42, 2}, {-5, 11, 2}}, {kT2m}),
           "from a projection data.regrid brings fields by \"nearest\" or \"inverse_distance\"");
  const testing::TemporaryFolder elsewhere;
  const std::string other = write(elsewhere, projection(52, 5, 1), "sst", Numbers(99, 1.0));
  contains(why({projected, other}, {}, {kT2m, kSst}),
           "data.regrid with \"nearest\" or \"inverse_distance\" brings it to theirs");
}

// Places are read once for all files that have them.
TEST(Regrid, FilesOfTheSamePointsAreReadForThemOnce) {
  const testing::TemporaryFolder folder;
  const Rows grid = octahedral(32, false);
  const Numbers values = random_values(grid.latitudes().size(), 0, 9);
  std::vector<std::string> paths;
  for (int f = 0; f < 3; ++f) {
    paths.push_back(
        write_list(folder, concat("list", f, ".nc"), grid.latitudes(), grid.longitudes(), values));
  }
  const auto bytes = [&](std::size_t count) {
    FileSet files({paths.begin(), paths.begin() + static_cast<std::ptrdiff_t>(count)},
                  {.regrid = {Regrid::kLinear, {}, {90, -90, 10}, {0, 350, 10}}});
    files.select(kSst, true);
    return files.bytes_read();
  };
  const auto places = static_cast<std::int64_t>(2 * 8 * values.size());
  EXPECT_GE(bytes(1), places);
  EXPECT_LT(bytes(3), places + 3 * 20000);
}

}  // namespace source_points_test
}  // namespace jigsaw
