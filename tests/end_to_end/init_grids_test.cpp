// jigsaw-train init: grids that cannot be read as they stand, of which it says what helps.
#include <netcdf.h>

#include "end_to_end/init_test.h"
#include "io/netcdf_writer.h"

namespace jigsaw::e2e {
namespace {

constexpr std::size_t kStates = 20;

/// tas in time on dimensions of its own.
class GridFile {
 public:
  using Dimensions = std::vector<std::pair<std::string, std::size_t>>;

  GridFile(const std::string& path, const Dimensions& dimensions) : file_(path) {
    std::vector<int> all = {time_ = file_.dimension("time", kStates)};
    std::size_t count = kStates;
    for (const auto& [name, extent] : dimensions) {
      all.push_back(dimensions_[name] = file_.dimension(name, extent));
      count *= extent;
    }
    const int times = file_.variable("time", NC_DOUBLE, {time_});
    file_.text(times, "units", "hours since 2020-01-01");
    file_.text(times, "bounds", "time_bnds");
    file_.put(times, FieldFile::steps(kStates, 0, 6));
    const int limits = file_.variable("time_bnds", NC_DOUBLE, {time_, file_.dimension("bnds", 2)});
    file_.put(limits, FieldFile::steps(2 * kStates, 0, 3));
    tas_ = file_.variable("tas", NC_FLOAT, all);
    std::vector<double> values;
    for (std::size_t i = 0; i < count; ++i) values.push_back(wave(i, i % 7, i % 5));
    file_.put(tas_, values);
  }
  testing::NetcdfWriter& file() { return file_; }
  int tas() const { return tas_; }
  int coordinate(const std::string& name, const std::vector<double>& values, const std::string& attribute,
                 const std::string& text) {
    const int id = file_.variable(name, NC_DOUBLE, {dimensions_.at(name)});
    file_.text(id, attribute.c_str(), text);
    file_.put(id, values);
    return id;
  }

 private:
  testing::NetcdfWriter file_;
  std::map<std::string, int> dimensions_;
  int time_ = -1, tas_ = -1;
};

/// The limits of times are no states of a sequence.
TEST_F(InitTest, TakesNoLimitsOfCellsForSequences) {
  {
    GridFile grid(folder_ / "rotated.nc", {{"rlat", 8}, {"rlon", 12}});
    grid.coordinate("rlat", FieldFile::steps(8, 0, 0.5), "standard_name", "grid_latitude");
    grid.coordinate("rlon", FieldFile::steps(12, 0, 0.5), "standard_name", "grid_longitude");
  }
  const std::string data = "--data " + quoted(folder_ / "rotated.nc"),
                    reason = "no latitude and longitude are known among its dimensions (time, rlat, rlon)";
  expect_error(init(data + " --task forecast"), 3, reason);
  expect_ok(init(data));
  expect_text({R"("task": "denoise")"});
  expect_warnings({reason, "; so the files are taken as images"});
}

TEST_F(InitTest, SaysWhatHelpsWhereAGridIsKnownAndCannotBeRead) {
  {
    GridFile icon(folder_ / "icon.nc", {{"ncells", 60}});
    icon.file().text(icon.tas(), "CDI_grid_type", "unstructured");
  }
  { GridFile cube(folder_ / "cube.nc", {{"tile", 6}, {"grid_yt", 8}, {"grid_xt", 8}}); }
  {
    GridFile tile(folder_ / "tile1.nc", {{"grid_yt", 8}, {"grid_xt", 9}});
    tile.coordinate("grid_yt", FieldFile::steps(8, 1, 1), "units", "degrees_N");
    tile.coordinate("grid_xt", FieldFile::steps(9, 1, 1), "units", "degrees_E");
  }
  {
    GridFile pixels(folder_ / "pixels.nc", {{"cell", 50}});
    const int crs = pixels.file().variable("crs", NC_INT, {});
    pixels.file().text(crs, "grid_mapping_name", "healpix");
    pixels.file().number(crs, "healpix_nside", NC_INT, 2);
    pixels.file().text(pixels.tas(), "grid_mapping", "crs");
  }
  for (const auto& [name, says] :
       {std::pair{"icon.nc",
                  "put them into it from the file of the grid (cdo -f nc4 -setgrid,GRIDFILE IN OUT)"},
        std::pair{"cube.nc", "(in xarray ds.stack(cell=(\"tile\", \"grid_yt\", \"grid_xt\"))"},
        std::pair{"tile1.nc", "lies on rows 1 to 8 and columns 1 to 9 of a tile (grid_yt, grid_xt)"},
        std::pair{"pixels.nc", "is HEALPix of 2 sides, which has 48 pixels, and none of its dimensions"}}) {
    for (const char* const task : {"", " --task forecast"}) {
      SCOPED_TRACE(name);
      expect_error(init("--data " + quoted(folder_ / name) + task), 3, says);
    }
  }
}

}  // namespace
}  // namespace jigsaw::e2e
