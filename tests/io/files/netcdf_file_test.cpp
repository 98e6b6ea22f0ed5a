#include "files/netcdf_file.h"

#include <array>
#include <fstream>
#include <random>

#include "base/error.h"
#include "base/lower_case.h"
#include "base/text.h"
#include "fields/file_set.h"
#include "files/coordinate_values.h"
#include "files/grib.h"
#include "files/hdf5_file.h"
#include "io/fixtures.h"
#include "io/netcdf_writer.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace netcdf_file_test {

std::vector<double> read(const std::string& file, const std::string& name) {
  NetcdfFile netcdf(fixture(file));
  const FileVariable& variable = *netcdf.find(name);
  std::vector<double> values(static_cast<std::size_t>(variable.shape.count()));
  netcdf.read<double>(variable, Box::whole(variable.shape), values);
  return values;
}

TEST(NetcdfFile, UnpacksEveryFormatAsTheReferenceDoes) {
  expect_close(read("packed.nc", "t2m"), expected_values("t2m"), 1e-15);
  expect_close(read("static.nc", "lsm"), expected_values("lsm"), 0);
  expect_close(read("records.nc", "tp"), expected_values("tp"), 1e-15);
}

// NetCDF User's Guide: of the type of the unpacked data where it is wider, valid_range is in its units.
TEST(NetcdfFile, LimitsOfFloatingPointAreOfUnpackedValues) {
  const testing::TemporaryFolder folder;
  struct Case {
    std::string name;
    nc_type limits;
    std::vector<double> range;
    float scale;
    std::vector<double> wanted;
  };
  const double none = NAN;
  // The third number stands at a limit, but for rounding.
  const Case cases[] = {
      {"physical", NC_FLOAT, {274, 280}, 0.01F, {none, 275.15, 280, none}},
      {"stored", NC_SHORT, {100, 700}, 0.01F, {none, 275.15, 280, none}},
      {"turned", NC_DOUBLE, {266.3, 272}, -0.01F, {none, 271.15, 266.3, none}},
      {"all", NC_DOUBLE, {-1e6, 1e6}, 0.01F, {273.15, 275.15, 280, 293.15}},
  };
  for (const Case& each : cases) {
    for (const bool as_range : {true, false}) {
      const std::string path = concat(folder.path(), "/", each.name, ".nc");
      {
        testing::NetcdfWriter file(path);
        const int variable = file.variable("t", NC_SHORT, {file.dimension("x", 4)});
        file.number(variable, "scale_factor", NC_FLOAT, each.scale);
        file.number(variable, "add_offset", NC_DOUBLE, 273.15);
        if (as_range) {
          testing::NetcdfWriter::check(
              nc_put_att_double(file.root(), variable, "valid_range", each.limits, 2, each.range.data()));
        } else {
          file.number(variable, "valid_min", each.limits, each.range[0]);
          file.number(variable, "valid_max", each.limits, each.range[1]);
        }
        file.end();
        file.put(variable, {0, 200, 685, 2000});
      }
      const auto file = opener(Dimensions::kByName)(path);
      const auto described =
          open_described(FileDescription::from_bytes(file->describe().to_bytes()), External::kRefused);
      expect_close(file->read_all(*file->find("t")), each.wanted, 1e-6);
      expect_close(described->read_all(*described->find("t")), each.wanted, 1e-6);
    }
  }
}

// As GOES-R has its bands: the same bits as unsigned, which are 0, 100, 40000, 65000 and 65535.
TEST(NetcdfFile, SignedIntegersMayStandForUnsignedOnes) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/unsigned.nc";
  {
    testing::NetcdfWriter file(path);
    const std::vector<int> dimensions = {file.dimension("x", 5)};
    for (const char* is : {"true", "True", "false"}) {
      const int variable = file.variable(concat("is_", is), NC_SHORT, dimensions);
      file.text(variable, "_Unsigned", is);
      file.number(variable, "scale_factor", NC_FLOAT, 0.5F);
      const std::array<short, 2> range = {0, -536};  // 65000
      if (to_lower(is) == "true")
        testing::NetcdfWriter::check(
            nc_put_att_short(file.root(), variable, "valid_range", NC_SHORT, 2, range.data()));
      file.number(variable, "_FillValue", NC_SHORT, -1);
    }
    const int bytes = file.variable("bytes", NC_BYTE, dimensions);
    file.text(bytes, "_Unsigned", "true");
    const int other = file.variable("other", NC_BYTE, dimensions);
    file.text(other, "_Unsigned", "perhaps");
    file.end();
    for (int variable = 0; variable < 3; ++variable) file.put(variable, {0, 100, -25536, -536, -1});
    file.put(bytes, {0, 100, 127, -128, -1});
  }
  const auto read_of = [&](const std::string& name) {
    const auto file = opener(Dimensions::kByName)(path);
    return file->read_all(*file->find(name));
  };
  expect_close(read_of("is_true"), {0, 50, 20000, 32500, NAN}, 0);
  expect_close(read_of("is_True"), {0, 50, 20000, 32500, NAN}, 0);
  expect_close(read_of("is_false"), {0, 50, -12768, -268, NAN}, 0);
  expect_close(read_of("bytes"), {0, 100, 127, 128, 255}, 0);
  EXPECT_NE(message_of<DataError>([&] {
              read_of("other");
            }).find("its attribute _Unsigned is \"perhaps\", not true or false"),
            std::string::npos);
}

/// As xarray 2026.9 decodes the same files: in single precision with factors of single precision, but 32 bits
/// with an offset.
TEST(NetcdfFile, CoordinatesAreThoseThatReadersUnpack) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/packed.nc";
  {
    testing::NetcdfWriter file(path);
    const int x = file.dimension("x", 3);
    const std::vector<int> variables = {
        file.variable("short", NC_SHORT, {x}), file.variable("int", NC_INT, {x}),
        file.variable("factor", NC_INT, {x}), file.variable("wide", NC_SHORT, {x})};
    for (const int variable : variables)
      file.number(variable, "scale_factor", variable == variables[3] ? NC_DOUBLE : NC_FLOAT, 5.6e-5);
    for (const int variable : {variables[0], variables[1], variables[3]})
      file.number(variable, "add_offset", NC_FLOAT, -0.101332);
    file.end();
    // NetCDF-C does not unpack: these are the stored numbers.
    const std::vector<double> stored = {7, 1007, 2007};
    for (const int variable : variables) file.put(variable, stored);
  }
  const auto file = open_variables(path, Dimensions::kByName);
  const auto of = [&](const char* name) { return read_coordinate(*file, *file->find(name)); };
  EXPECT_TRUE(of("short").single_precision);
  EXPECT_EQ(of("short").values,
            (std::vector{-0.10094000399112701, -0.044940002262592316, 0.011059999465942383}));
  EXPECT_FALSE(of("int").single_precision);
  EXPECT_EQ(of("int").values, file->read_all(*file->find("int")));
  EXPECT_EQ(of("int").values[0], -0.10094000138269621);
  EXPECT_TRUE(of("factor").single_precision);
  EXPECT_EQ(of("factor").values,
            (std::vector{0.0003920000162906945, 0.05639199912548065, 0.11239200085401535}));
  EXPECT_FALSE(of("wide").single_precision);
}

TEST(NetcdfFile, ReadsHyperslabsAndCountsTheirBytes) {
  NetcdfFile file(fixture("packed.nc"));
  const FileVariable& t2m = *file.find("t2m");
  std::vector<float> slab(6);
  file.read<float>(t2m, {{3, 2, 4}, {1, 3, 2}}, slab);
  const std::vector<double> whole = expected_values("t2m");
  for (std::size_t i = 0; i < 6; ++i) {
    const auto wanted = static_cast<float>(whole[3 * 56 + (2 + i / 2) * 8 + 4 + i % 2]);
    EXPECT_TRUE(slab[i] == wanted || (std::isnan(slab[i]) && std::isnan(wanted))) << i;
  }
  EXPECT_TRUE(std::isnan(slab[1]));
  EXPECT_EQ(file.bytes_read(), 6 * 2);
  file.close();
  file.read<float>(t2m, {{0, 0, 0}, {1, 1, 1}}, std::span(slab).first(1));
  EXPECT_EQ(slab[0], static_cast<float>(whole[0]));
}

TEST(NetcdfFile, ErrorsNameFileAndVariable) {
  EXPECT_THROW(NetcdfFile("/nowhere.nc"), DataError);
  NetcdfFile file(fixture("packed.nc"));
  std::vector<double> out(1);
  const std::string message = message_of<DataError>([&] {
    file.read<double>(*file.find("t2m"), {{12, 0, 0}, {1, 1, 1}}, out);
  });
  EXPECT_NE(message.find("t2m"), std::string::npos);
  EXPECT_NE(message.find("packed.nc"), std::string::npos);
  NetcdfFile levels(fixture("levels_1.nc"));
  EXPECT_THROW(levels.read<double>(*levels.find("expver"), {{0}, {1}}, out), DataError);
}

/// A file with damage, removed in the end.
class DamagedFile {
 public:
  DamagedFile()
      : path_(std::filesystem::temp_directory_path() / concat("jigsaw_damaged_", ::getpid(), ".nc")) {}
  ~DamagedFile() { std::filesystem::remove(path_); }
  const std::string& write(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return path_;
  }

 private:
  std::string path_;
};

std::string bytes_of(const std::string& name) {
  std::ifstream file(fixture(name), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Reads all of a field.
void use(const std::string& path, const Field& field) {
  FileSet files({path});
  files.select(field, true);
  const Box box = Box::whole(files.grid().shape());
  std::vector<double> values(static_cast<std::size_t>(box.extent.count()));
  for (const Time time : files.times(field)) files.read(field, time, box, values);
}

TEST(NetcdfFile, EveryTruncationIsADataError) {
  DamagedFile damaged;
  const std::vector<std::tuple<std::string, Field, std::size_t>> files = {
      {"packed.nc", {"t2m", {}}, 13}, {"records.nc", {"tp", {}}, 13}, {"levels_1.nc", {"t", 500}, 173}};
  for (const auto& [name, field, step] : files) {
    const std::string whole = bytes_of(name);
    use(damaged.write(whole), field);
    for (std::size_t length = 0; length + 4 < whole.size(); length += step) {
      EXPECT_THROW(use(damaged.write(whole.substr(0, length)), field), DataError)
          << name << " cut at " << length;
    }
  }
}

// Damage either goes unseen, in values, or is a DataError; it never ends the program or takes its memory.
TEST(NetcdfFile, DamagedHeadersAreDataErrors) {
  DamagedFile damaged;
  std::mt19937 random(1);
  int refused = 0;
  for (const auto& [name, variable] : {std::pair{"packed.nc", "t2m"}, std::pair{"records.nc", "tp"}}) {
    const std::string whole = bytes_of(name);
    for (int trial = 0; trial < 300; ++trial) {
      std::string bytes = whole;
      bytes[random() % 600] = static_cast<char>(random());
      try {
        use(damaged.write(bytes), {variable, {}});
      } catch (const DataError&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 200);
  EXPECT_THROW(use(damaged.write(std::string(1000, 'x')), {"t2m", {}}), DataError);
  EXPECT_THROW(use(damaged.write("CDF\x01" + std::string(1000, '\xff')), {"t2m", {}}), DataError);
}

TEST(VariableFile, IsOpenedByItsContentNotItsName) {
  const testing::TemporaryFolder folder;
  const auto in = [&](const std::string& name) { return concat(folder.path(), "/", name); };
  const auto copy = [&](const std::string& from, const std::string& to) {
    std::filesystem::copy_file(fixture(from), in(to));
    return in(to);
  };
  const std::string classic = copy("packed.nc", "classic.h5"), hdf5 = copy("images/volume.h5", "volume.nc");
  for (const Dimensions dimensions : {Dimensions::kByNumber, Dimensions::kByName}) {
    EXPECT_NE(dynamic_cast<NetcdfFile*>(open_variables(classic, dimensions).get()), nullptr);
  }
  EXPECT_NE(dynamic_cast<Hdf5File*>(open_variables(hdf5, Dimensions::kByNumber).get()), nullptr);
  // NetCDF-4 is HDF5 whose dimensions have names.
  EXPECT_NE(dynamic_cast<NetcdfFile*>(open_variables(hdf5, Dimensions::kByName).get()), nullptr);
  std::ofstream(in("text.nc")) << "latitude,longitude\n";
  const std::string grib = eccodes_version().empty() ? "" : " or GRIB";
  EXPECT_EQ(message_of<DataError>([&] { open_variables(in("text.nc"), Dimensions::kByName); }),
            concat("cannot read ", in("text.nc"), ": it is no NetCDF", grib, " file but a text file"));
  EXPECT_EQ(message_of<DataError>([&] { open_variables(in("text.nc"), Dimensions::kByNumber); }),
            concat("cannot read ", in("text.nc"), ": it is no HDF5 or NetCDF or NIfTI", grib,
                   " file but a text file"));
  EXPECT_THROW(open_variables(in("nowhere.nc"), Dimensions::kByName), DataError);
  std::ofstream(in("empty.nc")).close();
  EXPECT_EQ(message_of<DataError>([&] { open_variables(in("empty.nc"), Dimensions::kByName); }),
            concat("cannot read ", in("empty.nc"), ": it is empty"));
}

}  // namespace netcdf_file_test
}  // namespace jigsaw
