// Damaged copies of small files of each format: whatever is in them, reading ends with values or with an
// error.
//
// JIGSAW_MUTATIONS: copies of each file, 400 unless set (docs/reading.md has what thousands gave).
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>

#include "base/error.h"
#include "base/text.h"
#include "comm/self/self.h"
#include "fields/new_files.h"
#include "files/probe.h"
#include "io/fixtures.h"
#include "support/temporary_folder.h"

/// Libraries leave memory of files behind that they refuse. What this program's own code does not close, the
/// other tests that read files find.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libnetcdf\nleak:libhdf5\nleak:libeccodes\n";
}

namespace jigsaw {
namespace mutation_test {

namespace fs = std::filesystem;
using testing::put_text;
using testing::TemporaryFolder;
using testing::text_of;

int mutations() {
  const char* count = std::getenv("JIGSAW_MUTATIONS");
  return count == nullptr ? 400 : std::atoi(count);
}

/// Some bytes, mostly of the begin where headers are: set at random, to what often breaks, or cut off.
std::string mutated(std::string bytes, std::mt19937& random) {
  static constexpr std::array<unsigned char, 6> kOften = {0, 1, 0x7f, 0x80, 0xfe, 0xff};
  const auto below = [&](std::size_t n) { return random() % std::max<std::size_t>(n, 1); };
  const std::size_t changes = 1 + below(4);
  for (std::size_t i = 0; i < changes; ++i) {
    const std::size_t reach = below(3) == 0 ? bytes.size() : std::min<std::size_t>(bytes.size(), 1024);
    const std::size_t at = below(reach), length = std::min<std::size_t>(1 + below(4), bytes.size() - at);
    for (std::size_t b = at; b < at + length; ++b) {
      bytes[b] = static_cast<char>(below(2) == 0 ? kOften[below(kOften.size())] : below(256));
    }
  }
  if (below(12) == 0) bytes.resize(below(bytes.size()));
  return bytes;
}

/// All numbers of a file, as far as they are few; variables may be refused.
void read_values(VariableFile& file) {
  std::vector<float> values;
  for (const FileVariable& variable : file.variables()) {
    if (!variable.numeric() || variable.shape.count() > (1 << 16)) continue;
    values.resize(static_cast<std::size_t>(variable.shape.count()));
    try {
      file.read<float>(variable, Box::whole(variable.shape), values);
    } catch (const DataError& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    }
  }
}

struct Counts {
  int read = 0, refused = 0, died = 0;
};

/// A copy of a file, or of a folder in which one file is changed, as often one that describes others.
void copy_mutated(const std::string& original, const std::string& path, std::mt19937& random) {
  if (!fs::is_directory(original)) return put_text(path, mutated(text_of(original), random));
  fs::copy(original, path, fs::copy_options::recursive);
  std::vector<std::string> described, chunks;
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    if (!entry.is_regular_file()) continue;
    const std::string name = entry.path().filename();
    (name[0] == '.' || name.ends_with(".json") ? described : chunks).push_back(entry.path());
  }
  std::vector<std::string>& some = random() % 3 > 0 ? described : chunks;
  std::sort(some.begin(), some.end());
  const std::string& changed = some[random() % some.size()];
  const std::string bytes = mutated(text_of(changed), random);
  put_text(changed, bytes);
}

/// Copies of one file or folder. Those whose header ends the process that reads it first are not opened here.
Counts try_copies(const std::string& original, Dimensions dimensions, const TemporaryFolder& folder) {
  std::mt19937 random(11);
  std::vector<std::string> paths;
  for (int i = 0; i < mutations(); ++i) {
    paths.push_back(concat(folder.path(), "/", i, fs::path(original).extension().string()));
    copy_mutated(original, paths.back(), random);
  }
  const std::vector<std::string> ends = Probe{PROBE_PROGRAM, dimensions, External::kRefused}.outcomes(paths);
  Counts counts;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (!ends[i].empty()) {
      ++counts.died;
      continue;
    }
    try {
      const auto file = open_variables(paths[i], dimensions);
      file->describe();
      read_values(*file);
      ++counts.read;
    } catch (const DataError& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
      ++counts.refused;
    }
  }
  return counts;
}

class Mutations : public ::testing::TestWithParam<std::pair<const char*, Dimensions>> {};

TEST_P(Mutations, EndWithValuesOrWithADataError) {
  const TemporaryFolder folder;
  const auto& [name, dimensions] = GetParam();
  const Counts counts = try_copies(fixture(name), dimensions, folder);
  RecordProperty("read", counts.read);
  std::cout << name << ": of " << mutations() << " copies " << counts.read << " read, " << counts.refused
            << " refused, " << counts.died << " ended the process that reads headers\n";
  EXPECT_GT(counts.read, 0);
  EXPECT_GT(counts.refused, 0);
}
INSTANTIATE_TEST_SUITE_P(Files, Mutations,
                         ::testing::Values(std::pair{"storage/cdf1.nc", Dimensions::kByName},
                                           std::pair{"storage/cdf2.nc", Dimensions::kByName},
                                           std::pair{"storage/cdf5.nc", Dimensions::kByName},
                                           std::pair{"levels_1.nc", Dimensions::kByName},
                                           std::pair{"makani.h5", Dimensions::kByName},
                                           std::pair{"storage/latest.h5", Dimensions::kByNumber},
                                           std::pair{"zarr2", Dimensions::kByName},
                                           std::pair{"zarr3", Dimensions::kByName},
                                           std::pair{"xarray.zarr", Dimensions::kByName},
                                           std::pair{"anemoi2.zarr", Dimensions::kByName},
                                           std::pair{"images/volume.nii", Dimensions::kByNumber},
                                           std::pair{"images/volume.nii.gz", Dimensions::kByNumber}));

/// A program that ends by a signal with each file, and says that it has begun with one.
std::string dying_program(const TemporaryFolder& folder) {
  std::string program = folder.path() + "/dies";
  put_text(program, "#!/bin/sh\nread -r ignored\nprintf .\nkill -SEGV $$\n");
  fs::permissions(program, fs::perms::owner_all);
  return program;
}

TEST(Probe, TellsOfWhichFileItsProcessDied) {
  const TemporaryFolder folder;
  const std::string good = fixture("packed.nc"), program = dying_program(folder);
  const Probe dying{program, Dimensions::kByName, External::kRefused};
  const std::vector<std::string> ends = dying.outcomes({good, good});
  EXPECT_EQ(ends[0].substr(0, 9), "signal 11");
  EXPECT_EQ(ends[1].substr(0, 9), "signal 11");
  const std::string message = message_of<DataError>([&] { dying.check({good}); });
  EXPECT_NE(message.find(good), std::string::npos) << message;
  EXPECT_NE(message.find("signal 11"), std::string::npos) << message;
  EXPECT_EQ(
      (Probe{PROBE_PROGRAM, Dimensions::kByName, External::kRefused}.outcomes({good, "/nowhere", good})),
      std::vector<std::string>(3));
  EXPECT_THROW((Probe{"/nowhere", Dimensions::kByName, External::kRefused}.outcomes({good})), Error);
}

TEST(Probe, ReadsAFileOnceAndAZarrStoreEachTime) {
  const TemporaryFolder folder;
  const std::string file = fixture("packed.nc"), store = fixture("zarr3"), cache = folder.path() + "/cache";
  Context context = Context::make_host(Backend::kReference, 1);
  const std::unique_ptr<Communicator> self = make_self_communicator(context);
  const auto probe = [&](const std::string& program, const std::vector<std::string>& paths) {
    set_probe_program(program);
    std::string message;
    try {
      probe_new_files(paths, Dimensions::kByName, External::kRefused, cache, *self);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kData);
      message = error.what();
    }
    set_probe_program("");
    return message;
  };
  const std::string dies = dying_program(folder);
  EXPECT_EQ(probe(PROBE_PROGRAM, {store, file}), "");
  EXPECT_EQ(probe(dies, {file}), "");
  EXPECT_NE(probe(dies, {store, file}).find(concat("cannot read ", store)), std::string::npos);
}

}  // namespace mutation_test
}  // namespace jigsaw
