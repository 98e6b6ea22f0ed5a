// Grids whose files say less of their points than they seem to: units that lack, places that are none.
#include "base/error.h"
#include "fields/named_places.h"
#include "grids/listed_grids.h"
#include "io/fixtures.h"
#include "io/grids/source_points_fixtures.h"

namespace jigsaw {
namespace unusual_grids_test {

using namespace source_points_test;

void expect_says(const std::string& message, const std::string& text) {
  EXPECT_NE(message.find(text), std::string::npos) << message;
}

/// The message of the error; "" where there is none.
template <typename F>
std::string refusal_of(F&& action) {
  try {
    action();
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

/// sst on a list of points, with clat and clon as they are given.
std::string write_cells(const testing::TemporaryFolder& folder, const Numbers& latitudes,
                        const Numbers& longitudes, const std::string& units_north,
                        const std::string& units_east) {
  const std::string path = concat(folder.path(), "/cells.nc");
  testing::NetcdfWriter file(path, NC_NETCDF4);
  const int time = add_axis(file, "time", {0}, "hours since 2020-01-01"),
            cell = file.dimension("ncells", latitudes.size());
  const int north = file.variable("clat", NC_DOUBLE, {cell}), east = file.variable("clon", NC_DOUBLE, {cell});
  file.text(north, "standard_name", "latitude");
  file.text(east, "standard_name", "longitude");
  file.text(north, "units", units_north);
  file.text(east, "units", units_east);
  const int field = file.variable("sst", NC_DOUBLE, {time, cell});
  file.end();
  file.put(north, latitudes);
  file.put(east, longitudes);
  file.put(field, random_values(latitudes.size(), 0, 3));
  return path;
}

Numbers in_radians(Numbers degrees) {
  for (double& value : degrees) value *= std::numbers::pi / 180;
  return degrees;
}

TEST(UnusualGrids, ListsOfPointsSayWhetherTheyAreInRadians) {
  const testing::TemporaryFolder folder;
  const Rows globe = octahedral(24, false);
  Numbers around = globe.longitudes();
  for (double& longitude : around) longitude -= longitude > 180 ? 360 : 0;
  const Numbers north = in_radians(globe.latitudes()), east = in_radians(around);
  const auto refusal = [&](const Numbers& latitudes, const Numbers& longitudes,
                           const std::string& units_north, const std::string& units_east) {
    const std::string path = write_cells(folder, latitudes, longitudes, units_north, units_east);
    const std::string named = refusal_of([&] {
      DataFile file(opener(Dimensions::kByName)(path));
      places_of(file, *file.file().find("sst"));
    });
    const RegridOptions regrid{Regrid::kNearest, {}, {90, -90, 10}, {0, 350, 10}};
    FileSet files({path}, {.regrid = regrid});
    const std::string found = refusal_of([&] { files.select(kSst, true); });
    EXPECT_EQ(found, named) << "lists of places are read alike";
    return found;
  };
  EXPECT_EQ(refusal(north, east, "radian", "radian"), "");
  EXPECT_EQ(refusal(globe.latitudes(), around, "degrees", "degrees"), "");
  EXPECT_EQ(refusal(globe.latitudes(), around, "", ""), "") << "too large for radians";
  expect_says(
      refusal(north, east, "", ""),
      "clat in " + folder.path() + "/cells.nc has no units, and its values may be degrees or radians");
  expect_says(refusal(north, east, "radian", ""),
              "as \"radian\", or as \"degrees_east\" (ncatted -a units,clon");
  expect_says(refusal(north, east, "degrees", "degrees"), "these are radians around the globe");
  expect_says(refusal(north, in_radians(globe.longitudes()), "degrees_north", "degrees_east"),
              "with the units \"degrees_north\" and \"degrees_east\"");
  // Areas may be as small: they are not refused for it, but for a unit that lacks.
  EXPECT_EQ(refusal({0.1, 0.5, 1.2}, {1, 2, 5.5}, "degrees_north", "degrees_east"), "");
  expect_says(refusal({0.1, 0.5, 1.2}, {1, 2, 5.5}, "", ""), "has no units");
}

/// As of NEMO, which computes no parts of its grid that are all land.
TEST(UnusualGrids, PointsThatShareLatitudeAndLongitude0HaveNoPlace) {
  const testing::TemporaryFolder folder;
  Projection ocean = projection(5, 3, 1);
  const Numbers values = random_values(99, 0, 8);
  const std::vector<std::size_t> land = {12, 13, 23, 24, 60};
  const auto set = [&](double place) {
    for (const std::size_t point : land) ocean.latitudes[point] = ocean.longitudes[point] = place;
  };
  const Box whole = Box::whole({9, 11});
  set(0);
  const std::string path = write(folder, ocean, "t2m", values);
  FileSet files({path});
  files.select(kT2m, true);
  const PointPlaces places = files.read_degrees(whole);
  for (std::size_t i = 0; i < 99; ++i) {
    const bool is_land = std::ranges::find(land, i) != land.end();
    EXPECT_EQ(std::isnan(places.latitude[i]), is_land) << i;
    EXPECT_EQ(std::isnan(places.longitude[i]), is_land) << i;
  }
  expect_near(read_all(files, kT2m), values, "fields are read as they are");
  EXPECT_EQ(files.read_degrees({{5, 5}, {1, 1}}).latitude.size(), 1U);
  EXPECT_TRUE(std::isnan(files.read_degrees({{5, 5}, {1, 1}}).latitude[0])) << "point 60, alone";
  const std::string refused = message_of<DataError>([&] { files.read_forcing_degrees(whole); });
  expect_says(refused, "lat in " + path + " is missing at row 1, column 1 (latitude and longitude 0, which");
  // In regridding they are no points.
  FileSet regridded({path}, {.regrid = {Regrid::kInverseDistance, {}, {8, 2, 1}, {0, 6, 1}}});
  regridded.select(kT2m, true);
  const Numbers found = read_all(regridded, kT2m);
  set(std::nan(""));
  expect_near(found,
              expected_of_scattered(ocean.latitudes, ocean.longitudes, values,
                                    targets(range(8, -1, 7), range(0, 1, 7)), Regrid::kInverseDistance, 11),
              "regridded");
}

TEST(UnusualGrids, OnePointMayLieAtLatitudeAndLongitude0) {
  const testing::TemporaryFolder folder;
  Projection area = projection(5, 3, 1);
  area.latitudes[98] = area.longitudes[98] = 0;
  FileSet files({write(folder, area)});
  files.select(kT2m, true);
  const PointPlaces places = files.read_forcing_degrees(Box::whole({9, 11}));
  EXPECT_EQ(places.latitude[98], 0);
  EXPECT_EQ(places.longitude[98], 0);
}

/// Rows of 5° on columns of 10° round the globe, of which `repeated` stand once more at the end.
Projection halo(std::size_t repeated) {
  Projection grid{9, 36 + repeated, {}, {}};
  for (std::size_t i = 0; i < grid.rows; ++i) {
    for (std::size_t j = 0; j < grid.columns; ++j) {
      const auto column = static_cast<double>(j % 36);
      grid.latitudes.push_back(-20 + 5 * static_cast<double>(i) + std::sin(column));
      grid.longitudes.push_back(73 + 10 * column > 180 ? 73 + 10 * column - 360 : 73 + 10 * column);
    }
  }
  return grid;
}

/// As in the halo of ORCA's grids.
TEST(UnusualGrids, ColumnsThatStandTwiceAreOneNeighbour) {
  const testing::TemporaryFolder folder;
  for (const std::size_t repeated : {0U, 1U, 2U, 3U}) {
    const Projection whole = halo(repeated), once = halo(0);
    const Numbers values = random_values(9 * 36, 0.1, 5);
    Numbers in_file;
    for (std::size_t i = 0; i < whole.latitudes.size(); ++i)
      in_file.push_back(values[i / whole.columns * 36 + i % whole.columns % 36]);
    const std::string path = write(folder, whole, "t2m", in_file);
    FileSet own({path});
    own.select(kT2m, true);
    EXPECT_EQ(own.goes_round().repeated, static_cast<std::int64_t>(repeated));
    EXPECT_EQ(own.goes_round().columns, repeated == 0) << repeated;
    for (const Regrid method : {Regrid::kNearest, Regrid::kInverseDistance}) {
      FileSet files({path}, {.regrid = {method, {}, {16.3, -16.7, 3}, {1.7, 355.7, 6}}});
      files.select(kT2m, true);
      const Numbers found = read_all(files, kT2m);
      expect_near(found,
                  expected_of_scattered(once.latitudes, once.longitudes, values,
                                        targets(range(16.3, -3, 12), range(1.7, 6, 60)), method, 36),
                  concat(repeated, " columns, method ", static_cast<int>(method)));
      expect_pieces(files, kT2m, found);
    }
  }
}

/// As FMS writes the tiles of a cubed sphere: numbers of rows and columns that are called degrees.
TEST(UnusualGrids, NumbersOfATileAreNoDegrees) {
  const testing::TemporaryFolder folder;
  const auto write_tile = [&](const std::string& name, const Numbers& rows, const Numbers& columns,
                              const char* row_name = "grid_yt", const char* column_name = "grid_xt") {
    const std::string path = concat(folder.path(), "/", name);
    testing::NetcdfWriter file(path);
    const std::vector<int> dimensions = {add_axis(file, "time", {0}, "hours since 2020-01-01"),
                                         add_axis(file, row_name, rows, "degrees_N"),
                                         add_axis(file, column_name, columns, "degrees_E")};
    const int field = file.variable("sst", NC_DOUBLE, dimensions);
    file.end();
    file.put(field, random_values(rows.size() * columns.size(), 0, 2));
    return path;
  };
  const auto refusal = [](const std::vector<std::string>& paths, Overlap overlap = Overlap::kEqual) {
    FileSet files(paths, {.overlap = overlap});
    return refusal_of([&] { files.select(kSst, true); });
  };
  const Numbers twelve = range(1, 1, 12);
  const std::string one = write_tile("tile1.nc", twelve, twelve),
                    two = write_tile("tile2.nc", twelve, twelve);
  expect_says(refusal({one}), "sst in " + one + " lies on rows 1 to 12 and columns 1 to 12 of a tile");
  expect_says(refusal({one, two}, Overlap::kFirst), "which are numbers and no degrees");
  EXPECT_EQ(refusal({write_tile("axes.nc", range(0.5, 1, 12), range(0.5, 1, 12))}), "") << "degrees";
  EXPECT_EQ(refusal({write_tile("area.nc", twelve, twelve, "lat", "lon")}), "") << "of an area";
}

TEST(UnusualGrids, FacesOfACubeAreToBeStacked) {
  const testing::TemporaryFolder folder;
  const auto refusal = [&](const char* name, int faces, bool with_places) {
    const std::string path = folder.path() + "/cube.nc";
    {
      testing::NetcdfWriter file(path);
      const int time = add_axis(file, "time", {0}, "hours since 2020-01-01"),
                face = file.dimension(name, static_cast<std::size_t>(faces)), y = file.dimension("y", 2),
                x = file.dimension("x", 3);
      const int field = file.variable("sst", NC_DOUBLE, {time, face, y, x});
      for (const auto& [degrees, units] :
           {std::pair{"lats", "degrees_north"}, std::pair{"lons", "degrees_east"}}) {
        if (with_places) file.text(file.variable(degrees, NC_DOUBLE, {face, y, x}), "units", units);
      }
      file.end();
      file.put(field, Numbers(static_cast<std::size_t>(6 * faces), 1.0));
    }
    FileSet files({path});
    return refusal_of([&] { files.select(kSst, true); });
  };
  for (const bool with_places : {false, true}) {
    expect_says(refusal("tile", 6, with_places),
                "(in xarray ds.stack(cell=(\"tile\", \"y\", \"x\")).reset_index(\"cell\", drop=True))");
    expect_says(refusal("nf", 6, with_places), "its dimension nf counts the faces of a cubed sphere");
    expect_says(refusal("face", 13, with_places), "ds.stack(cell=(\"face\", \"y\", \"x\")");
  }
  expect_says(refusal("tile", 2, true), "its dimension tile has 2 entries");
}

/// As newer conventions of CF have its mapping, and with pixels that a coordinate numbers.
TEST(UnusualGrids, PixelsOfHealpixAreThoseOfTheirNumbers) {
  const Rows rings = healpix(8);
  const Numbers north = rings.latitudes(), east = rings.longitudes();
  const testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/pixels.nc";
  const auto write_pixels = [&](const std::string& scheme, double level, const Numbers& pixels,
                                const Numbers& values, const std::string& standard_name = "") {
    testing::NetcdfWriter file(path);
    const int time = add_axis(file, "time", {0}, "hours since 2020-01-01"),
              cell = file.dimension("cell", values.size());
    const int crs = file.variable("crs", NC_INT, {}), field = file.variable("sst", NC_DOUBLE, {time, cell});
    file.text(crs, "grid_mapping_name", "healpix");
    file.text(crs, "indexing_scheme", scheme);
    file.number(crs, "refinement_level", NC_INT, level);
    file.text(field, "grid_mapping", "crs");
    const int numbers =
        pixels.empty() ? -1 : file.variable(standard_name.empty() ? "cell" : "number", NC_DOUBLE, {cell});
    if (numbers >= 0) file.text(numbers, "standard_name", standard_name);
    file.end();
    file.put(field, values);
    if (numbers >= 0) file.put(numbers, pixels);
  };
  const auto read = [&] {
    FileSet files({path}, {.regrid = {Regrid::kInverseDistance, {}, {82.7, -81.3, 4}, {1.3, 351.3, 5}}});
    files.select(kSst, true);
    const Numbers found = read_all(files, kSst);
    expect_pieces(files, kSst, found);
    return found;
  };
  const TargetPoints wanted = targets(range(82.7, -4, 42), range(1.3, 5, 71));
  const auto expect_at = [&](const Numbers& pixels, const Numbers& latitudes, const Numbers& longitudes,
                             const Numbers& values, const std::string& what) {
    Numbers there_north, there_east;
    for (const double pixel : pixels) {
      there_north.push_back(latitudes[static_cast<std::size_t>(pixel)]);
      there_east.push_back(longitudes[static_cast<std::size_t>(pixel)]);
    }
    expect_near(read(),
                expected_of_scattered(there_north, there_east, values, wanted, Regrid::kInverseDistance),
                what);
  };
  Numbers all = range(0, 1, 768), backward = range(767, -1, 768), some;
  for (int pixel = 5; pixel < 768; pixel += 1 + pixel % 3) some.push_back(pixel);
  std::ranges::shuffle(some, std::mt19937(3));
  const Numbers values = random_values(768, 0.1, 9),
                of_some(values.begin(), values.begin() + std::ssize(some));
  write_pixels("ring", 3, {}, values);
  expect_at(all, north, east, values, "by level, without numbers");
  write_pixels("ring", 3, backward, values);
  expect_at(backward, north, east, values, "backward");
  for (const char* const standard_name : {"", "healpix_index"}) {
    write_pixels("ring", 3, some, of_some, standard_name);
    expect_at(some, north, east, of_some, "some of them");
  }
  const ListedPlaces nested = healpix_places(8, true);
  write_pixels("nested", 3, some, of_some);
  expect_at(some, nested.latitudes, nested.longitudes, of_some, "some of them, nested");
  some.back() = 768;
  write_pixels("ring", 3, some, of_some);
  expect_says(refusal_of(read),
              "cell in " + path + " holds 768, and HEALPix of 8 sides has pixels from 0 to 767");
  write_pixels("nested_unique", 3, {}, values);
  expect_says(refusal_of(read), "names the order \"nested_unique\" of HEALPix");
}

}  // namespace unusual_grids_test
}  // namespace jigsaw
