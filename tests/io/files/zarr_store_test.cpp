#include "files/zarr_store.h"

#include <blosc.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>
#include <functional>
#include <limits>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "comm/self/self.h"
#include "fields/file_set.h"
#include "fields/shared_files.h"
#include "files/chunk_cache.h"
#include "files/glob.h"
#include "files/node_chunks.h"
#include "io/fixtures.h"
#include "support/child_process.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace zarr_store_test {

using Json = nlohmann::json;

std::string packed(const std::string& codec, const std::string& bytes) {
  std::string out(bytes.size() + 4096, '\0');
  std::size_t size = 0;
  if (codec == "zlib") {
    uLongf length = out.size();
    EXPECT_EQ(compress2(reinterpret_cast<Bytef*>(out.data()), &length,
                        reinterpret_cast<const Bytef*>(bytes.data()), bytes.size(), 5),
              Z_OK);
    size = length;
  } else if (codec == "blosc") {
    size = static_cast<std::size_t>(blosc_compress_ctx(5, BLOSC_SHUFFLE, 4, bytes.size(), bytes.data(),
                                                       out.data(), out.size(), "lz4", 0, 1));
  } else if (codec == "zstd") {
    size = ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), 3);
  } else {
    return bytes;
  }
  return out.substr(0, size);
}

template <typename T>
std::string bytes_of(double value, bool swapped) {
  const auto stored = static_cast<T>(value);
  std::string raw(sizeof(T), '\0');
  std::memcpy(raw.data(), &stored, sizeof(T));
  if (swapped) std::reverse(raw.begin(), raw.end());
  return raw;
}

struct Spec {
  Shape shape, chunks;
  std::string codec = "blosc", separator = ".", dtype = "<f4";
  Json fill = nullptr, attributes = Json::object();
};

double value_at(const Shape& at) {
  double value = 0.5;
  for (const std::int64_t index : at) value = value * 10 + static_cast<double>(index);
  return value;
}

/// A store written by the specification, chunk by chunk; `without` are the names of chunks that are left out.
class Store {
 public:
  explicit Store(std::string path) : path_(std::move(path)) {
    std::filesystem::create_directory(path_);
    put("/.zgroup", Json{{"zarr_format", 2}});
  }

  template <typename F>
  void add(const std::string& name, const Spec& spec, const F& value,
           const std::vector<std::string>& without = {}) {
    std::filesystem::create_directories(path_ + "/" + name);
    Json compressor = spec.codec.empty() ? Json() : Json{{"id", spec.codec}};
    const Json zarray = {{"zarr_format", 2},
                         {"shape", std::vector<std::int64_t>(spec.shape.begin(), spec.shape.end())},
                         {"chunks", std::vector<std::int64_t>(spec.chunks.begin(), spec.chunks.end())},
                         {"dtype", spec.dtype},
                         {"compressor", compressor},
                         {"fill_value", spec.fill},
                         {"filters", nullptr},
                         {"order", "C"},
                         {"dimension_separator", spec.separator}};
    put("/" + name + "/.zarray", zarray);
    put("/" + name + "/.zattrs", spec.attributes);
    metadata_[name + "/.zarray"] = zarray;
    metadata_[name + "/.zattrs"] = spec.attributes;
    Shape index = Shape::filled(spec.shape.rank(), 0);
    write_chunks(name, spec, index, 0, value, without);
  }
  void consolidate() { put("/.zmetadata", Json{{"metadata", metadata_}, {"zarr_consolidated_format", 1}}); }
  void put(const std::string& file, const Json& json) const { testing::put_text(path_ + file, json.dump()); }
  const std::string& path() const { return path_; }

 private:
  template <typename F>
  void write_chunks(const std::string& name, const Spec& spec, Shape& index, int dim, const F& value,
                    const std::vector<std::string>& without) {
    if (dim < spec.shape.rank()) {
      for (index[dim] = 0; index[dim] * spec.chunks[dim] < spec.shape[dim]; ++index[dim])
        write_chunks(name, spec, index, dim + 1, value, without);
      return;
    }
    const std::string file = join(index, spec.separator);
    if (std::find(without.begin(), without.end(), file) != without.end()) return;
    std::string bytes;
    for (std::int64_t i = 0; i < spec.chunks.count(); ++i) {
      Shape at = index;
      std::int64_t rest = i;
      for (int d = spec.shape.rank() - 1; d >= 0; --d) {
        at[d] = index[d] * spec.chunks[d] + rest % spec.chunks[d];
        rest /= spec.chunks[d];
      }
      const bool swapped = spec.dtype[0] == '>';
      if (spec.dtype.ends_with("b1")) bytes += static_cast<char>(static_cast<int>(value(at)) % 2);
      if (spec.dtype.ends_with("f2")) bytes += bytes_of<Half>(value(at), swapped);
      if (spec.dtype.ends_with("f4")) bytes += bytes_of<float>(value(at), swapped);
      if (spec.dtype.ends_with("f8")) bytes += bytes_of<double>(value(at), swapped);
      if (spec.dtype.ends_with("i2")) bytes += bytes_of<std::int16_t>(value(at), swapped);
      if (spec.dtype.ends_with("i8")) bytes += bytes_of<std::int64_t>(value(at), swapped);
    }
    const std::filesystem::path target = path_ + "/" + name + "/" + file;
    std::filesystem::create_directories(target.parent_path());
    testing::put_text(target, packed(spec.codec, bytes));
  }

  std::string path_;
  Json metadata_ = Json::object();
};

/// Compares boxes with what stands at each of their places.
void expect_values(ZarrStore& store, const std::string& name,
                   const std::function<double(const Shape&)>& wanted) {
  const FileVariable& variable = *store.find(name);
  const Shape& shape = variable.shape;
  for (const Box& box : {Box::whole(shape), Box{{1, 0, 2}, {1, shape[1], 3}}, Box{{1, 3, 4}, {2, 1, 2}}}) {
    std::vector<double> found(static_cast<std::size_t>(box.extent.count()));
    store.read<double>(variable, box, found);
    std::size_t i = 0;
    for (std::int64_t a = box.begin[0]; a < box.end(0); ++a) {
      for (std::int64_t b = box.begin[1]; b < box.end(1); ++b) {
        for (std::int64_t c = box.begin[2]; c < box.end(2); ++c, ++i) {
          const double value = wanted({a, b, c});
          if (std::isnan(value)) {
            ASSERT_TRUE(std::isnan(found[i]));
          } else {
            ASSERT_EQ(found[i], value) << name << " " << a << " " << b << " " << c;
          }
        }
      }
    }
  }
}

TEST(ZarrStore, ReadsChunksOfEveryCodecAndType) {
  const testing::TemporaryFolder folder;
  Store store(folder.path() + "/a.zarr");
  const Shape shape{3, 4, 7}, chunks{2, 3, 4};
  for (const char* codec : {"", "zlib", "blosc", "zstd"}) {
    for (const char* dtype : {"|b1", "<f2", ">f2", "<f4", ">f4", "<f8", "<i2", ">i2", "<i8"}) {
      store.add(concat("x", codec, dtype[0] == '<' ? "little" : "big", dtype + 1),
                {.shape = shape, .chunks = chunks, .codec = codec, .dtype = dtype}, value_at);
    }
  }
  store.add("slashes", {.shape = shape, .chunks = chunks, .separator = "/"}, value_at);
  for (const bool consolidated : {false, true}) {
    if (consolidated) store.consolidate();
    ZarrStore opened(store.path());
    ASSERT_EQ(opened.variables().size(), 37U);
    for (const FileVariable& variable : opened.variables()) {
      const bool whole = variable.name.ends_with("i2") || variable.name.ends_with("i8");
      expect_values(opened, variable.name, [&](const Shape& at) {
        if (variable.name.ends_with("b1")) return std::fmod(std::trunc(value_at(at)), 2);
        return whole ? std::trunc(value_at(at)) : value_at(at);
      });
    }
  }
}

TEST(ZarrStore, ChunksThatAreNotThereHoldTheFillValue) {
  const testing::TemporaryFolder folder;
  Store store(folder.path() + "/a.zarr");
  const Shape shape{3, 4, 7}, chunks{2, 3, 4};
  const auto left_out = [](const Shape& at) { return at[0] >= 2 && at[1] < 3 && at[2] >= 4; };  // chunk 1.0.1
  store.add("nan", {.shape = shape, .chunks = chunks, .fill = "NaN"}, value_at, {"1.0.1"});
  store.add("zero", {.shape = shape, .chunks = chunks, .fill = 0}, value_at, {"1.0.1"});
  store.add("number", {.shape = shape, .chunks = chunks, .fill = -9999.0}, value_at, {"1.0.1"});
  store.add("true", {.shape = shape, .chunks = chunks, .dtype = "|b1", .fill = true}, value_at, {"1.0.1"});
  store.add("unknown", {.shape = shape, .chunks = chunks}, value_at, {"1.0.1"});
  store.add("packed", {.shape = shape, .chunks = chunks, .dtype = "<i2", .attributes = {{"_FillValue", -1}}},
            value_at, {"1.0.1"});
  store.add("nothing", {.shape = shape, .chunks = chunks, .dtype = "<i2"}, value_at, {"1.0.1"});
  ZarrStore opened(store.path());
  expect_values(opened, "unknown",
                [&](const Shape& at) { return left_out(at) ? std::nan("") : value_at(at); });
  expect_values(opened, "packed",
                [&](const Shape& at) { return left_out(at) ? std::nan("") : std::trunc(value_at(at)); });
  double there = 0;
  opened.read<double>(*opened.find("nothing"), {{0, 0, 0}, {1, 1, 1}}, std::span(&there, 1));
  const std::string said = message_of<DataError>([&] {
    opened.read<double>(*opened.find("nothing"), {{2, 1, 5}, {1, 1, 1}}, std::span(&there, 1));
  });
  EXPECT_NE(said.find("the chunk 1.0.1 of nothing is not in "), std::string::npos) << said;
  expect_values(opened, "nan", [&](const Shape& at) { return left_out(at) ? std::nan("") : value_at(at); });
  expect_values(opened, "zero", [&](const Shape& at) { return left_out(at) ? 0 : value_at(at); });
  expect_values(opened, "number",
                [&](const Shape& at) { return left_out(at) ? std::nan("") : value_at(at); });
  double one = 0;
  opened.read<double>(*opened.find("true"), {{2, 1, 5}, {1, 1, 1}}, std::span(&one, 1));
  EXPECT_EQ(one, 1);
}

/// A satellite's counts, of which 0 is none, as xarray writes `_FillValue` 0 of packed numbers.
TEST(ZarrStore, ZeroIsMissingOfPackedNumbersOfFormat2) {
  const testing::TemporaryFolder folder;
  Store store(folder.path() + "/a.zarr");
  const Shape shape{3, 4, 7}, chunks{2, 3, 4};
  const auto count = [](const Shape& at) { return static_cast<double>(at[1] % 3); };
  const Json packing = {{"scale_factor", 0.5}, {"add_offset", 200}};
  store.add("counts", {.shape = shape, .chunks = chunks, .dtype = "<i2", .fill = 0, .attributes = packing},
            count);
  store.add("land", {.shape = shape, .chunks = chunks, .dtype = "<i2", .fill = 0}, count);
  ZarrStore opened(store.path());
  expect_values(opened, "counts",
                [&](const Shape& at) { return count(at) == 0 ? std::nan("") : 200 + 0.5 * count(at); });
  expect_values(opened, "land", count);
}

// As WeatherBench 2: time, level, longitude, latitude.
TEST(ZarrStore, IsAFileOfFields) {
  const testing::TemporaryFolder folder;
  Store store(folder.path() + "/wb2.zarr");
  const auto coordinate = [&](const char* name, std::int64_t count, double first, double step,
                              const Json& attributes) {
    Json all = attributes;
    all["_ARRAY_DIMENSIONS"] = {name};
    store.add(name, {.shape = {count}, .chunks = {count}, .dtype = "<f8", .attributes = all},
              [&](const Shape& at) { return first + step * static_cast<double>(at[0]); });
  };
  coordinate("time", 4, 0, 6, {{"units", "hours since 1959-01-01"}, {"calendar", "proleptic_gregorian"}});
  coordinate("level", 2, 500, 350, Json::object());
  coordinate("longitude", 6, 0, 60, Json::object());
  coordinate("latitude", 3, -60, 60, Json::object());
  store.add(
      "temperature",
      {.shape = {4, 2, 6, 3},
       .chunks = {1, 2, 6, 3},
       .fill = "NaN",
       .attributes = {{"units", "K"}, {"_ARRAY_DIMENSIONS", {"time", "level", "longitude", "latitude"}}}},
      value_at);
  store.consolidate();
  const std::vector<std::string> paths = expand_patterns({"*.zarr"}, folder.path());
  ASSERT_EQ(paths.size(), 1U);
  FileSet files(paths);
  const Field field{"t", 850};
  files.select(field, true);
  EXPECT_TRUE(files.grid().periodic);
  EXPECT_EQ(format_time(files.times(field)[1]), "1959-01-01T06:00");
  std::vector<double> found(4);
  files.read(field, files.times(field)[3], {{1, 4}, {2, 2}}, found);
  for (std::int64_t i = 0; i < 4; ++i)
    EXPECT_EQ(found[static_cast<std::size_t>(i)], value_at({3, 1, 4 + i % 2, 1 + i / 2}));
}

TEST(ZarrStore, DamageIsADataError) {
  const testing::TemporaryFolder folder;
  const Shape shape{3, 4, 7}, chunks{2, 3, 4};
  int number = 0;
  const auto read = [&](const std::function<void(Store&)>& damage, const char* codec = "blosc") {
    Store store(concat(folder.path(), "/", ++number, ".zarr"));
    store.add("x", {.shape = shape, .chunks = chunks, .codec = codec}, value_at);
    damage(store);
    ZarrStore opened(store.path());
    if (opened.variables().empty()) throw DataError("nothing");
    std::vector<double> values(static_cast<std::size_t>(shape.count()));
    opened.read<double>(opened.variables()[0], Box::whole(shape), values);
  };
  EXPECT_NO_THROW(read([](Store&) {}));
  for (const char* codec : {"", "zlib", "blosc", "zstd"}) {
    for (const std::size_t length : {std::size_t{0}, std::size_t{5}, std::size_t{20}}) {
      EXPECT_THROW(read(
                       [&](Store& store) {
                         const std::string chunk = store.path() + "/x/1.1.0";
                         testing::put_text(chunk, testing::text_of(chunk).substr(0, length));
                       },
                       codec),
                   DataError)
          << codec << " " << length;
    }
  }
  const Json good = {{"zarr_format", 2}, {"shape", {3, 4, 7}}, {"chunks", {2, 3, 4}},
                     {"dtype", "<f4"},   {"order", "C"},       {"compressor", {{"id", "blosc"}}}};
  const auto with = [&](const char* key, const Json& value) {
    return [&, key, value](Store& store) {
      Json zarray = good;
      zarray[key] = value;
      store.put("/x/.zarray", zarray);
    };
  };
  EXPECT_NO_THROW(read(with("zarr_format", 2)));
  EXPECT_THROW(read(with("zarr_format", 3)), DataError);
  EXPECT_THROW(read(with("shape", {-3, 4, 7})), DataError);
  EXPECT_THROW(read(with("chunks", {2, 3})), DataError);
  EXPECT_THROW(read(with("chunks", {0, 3, 4})), DataError);
  EXPECT_THROW(read(with("chunks", {2000000, 3000000, 4})), DataError);
  EXPECT_THROW(read(with("filters", {{{"id", "delta"}}})), DataError);
  EXPECT_THROW(read(with("compressor", {{"id", "lzma"}})), DataError);
  EXPECT_THROW(read(with("order", "F")), DataError);
  EXPECT_THROW(read([](Store& store) { testing::put_text(store.path() + "/x/.zarray", "{"); }), DataError);
  EXPECT_THROW(read([](Store& store) { testing::put_text(store.path() + "/.zmetadata", "[]"); }), DataError);
  EXPECT_THROW(read([&](Store& store) {
                 store.put("/.zmetadata", Json{{"metadata", {{"../1.zarr/x/.zarray", good}}}});
               }),
               DataError);
  // Pipes would be waited for, links that lead in a circle nowhere.
  for (const char* name : {"/x/.zarray", "/x/.zattrs", "/x/0.0.0", "/.zmetadata"}) {
    for (const bool pipe : {true, false}) {
      EXPECT_THROW(read([&](Store& store) {
                     const std::string path = store.path() + name;
                     std::filesystem::remove(path);
                     if (pipe) {
                       ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
                     } else {
                       std::filesystem::create_symlink(path, path);
                     }
                   }),
                   DataError)
          << name << (pipe ? " is a pipe" : " is a link to itself");
    }
  }
}

std::vector<double> read_whole(VariableFile& store, const std::string& name) {
  const FileVariable& variable = *store.find(name);
  std::vector<double> values(static_cast<std::size_t>(variable.shape.count()));
  store.read<double>(variable, Box::whole(variable.shape), values);
  return values;
}

void set_time(const std::string& path, std::time_t seconds) {
  const struct timespec times[] = {{seconds, 0}, {seconds, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}

TEST(ZarrStore, AChunkThatIsChangedWhileItIsReadIsADataError) {
  const testing::TemporaryFolder folder;
  const struct {
    std::vector<std::string> without;
    std::function<void(const std::string&)> change;
    const char* says;
  } cases[] = {
      {{}, [](const std::string& chunk) { set_time(chunk, std::time(nullptr) - 3600); }, " was written to"},
      {{},
       [](const std::string& chunk) { testing::put_text(chunk, "longer than it was"); },
       " was written to"},
      {{}, [](const std::string& chunk) { std::filesystem::remove(chunk); }, " is gone"},
      {{"1"}, [](const std::string& chunk) { testing::put_text(chunk, "new"); }, " was not there before"}};
  int number = 0;
  for (const auto& [without, change, says] : cases) {
    Store store(concat(folder.path(), "/", ++number, ".zarr"));
    store.add("x", {.shape = {4}, .chunks = {2}, .codec = "", .fill = 0}, value_at, without);
    ZarrStore opened(store.path());
    const std::vector<double> before = read_whole(opened, "x");
    EXPECT_EQ(read_whole(opened, "x"), before);
    const std::string chunk = store.path() + "/x/1";
    change(chunk);
    EXPECT_EQ(message_of<DataError>([&] { read_whole(opened, "x"); }),
              concat(store.path(), " was changed while the run was reading it: ", chunk, says,
                     "; start again when it stays as it is"));
  }
  const std::string sharded = folder.path() + "/sharded.zarr";
  std::filesystem::copy(fixture("zarr3"), sharded, std::filesystem::copy_options::recursive);
  ZarrStore opened(sharded);
  read_whole(opened, "shards");
  opened.close();
  set_time(sharded + "/shards/c/0/0/0", std::time(nullptr) - 3600);
  EXPECT_NE(message_of<DataError>([&] {
              read_whole(opened, "shards");
            }).find(sharded + "/shards/c/0/0/0 was written to"),
            std::string::npos);
}

/// Of clocks that differ by less than a minute nothing can be told, so that the stamp is set beyond.
TEST(ZarrStore, AChunkThatWasWrittenAfterTheStoreWasOpenedIsADataError) {
  const testing::TemporaryFolder folder;
  Store store(folder.path() + "/a.zarr");
  store.add("x", {.shape = {4}, .chunks = {2}}, value_at);
  const std::string chunk = store.path() + "/x/1";
  ZarrStore opened(store.path());
  set_time(chunk, std::time(nullptr) + 90);
  EXPECT_NE(message_of<DataError>([&] { read_whole(opened, "x"); }).find(chunk + " was written to"),
            std::string::npos);
  // Read as it was, it is no other later.
  set_time(chunk, std::time(nullptr) + 15);
  ZarrStore other(store.path());
  EXPECT_EQ(read_whole(other, "x"), read_whole(other, "x"));
  // It came from a machine whose clock is wrong.
  set_time(chunk, std::time(nullptr) + 36000);
  ZarrStore again(store.path());
  EXPECT_EQ(read_whole(again, "x").size(), 4U);
}

/// Where processes keep chunks together, which stay when a store is closed: in a process of its own, for it
/// keeps doing so.
TEST(ZarrStore, AChunkThatIsWrittenBetweenTwoOpeningsIsReadAnew) {
  if (const auto node = NodeChunks::make(1 << 20); !node || !NodeChunks::open(node->address()))
    GTEST_SKIP() << "no memory in common here";
  const testing::TemporaryFolder folder;
  Store store(folder.path() + "/a.zarr");
  store.add("x", {.shape = {4}, .chunks = {4}, .codec = ""}, [](const Shape&) { return 1.0; });
  const pid_t child = testing::in_child([&] {
    ChunkCache::shared().share(0, 2, NodeChunks::make(1 << 20));
    const auto first_but_one = [&] {
      Context context = Context::make_host(Backend::kReference, 1);
      const auto self = make_self_communicator(context);
      const auto file =
          share_files({store.path()}, Dimensions::kByName, External::kRefused, "", *self)(store.path());
      std::vector<double> values(1);
      file->read<double>(*file->find("x"), {{1}, {1}}, values);
      return values[0];
    };
    const double before = first_but_one();
    store.add("x", {.shape = {4}, .chunks = {4}, .codec = ""}, [](const Shape&) { return 2.0; });
    return before == 1 && first_but_one() == 2;
  });
  EXPECT_EQ(testing::exit_status(child), 0);
}

TEST(ZarrStore, LinksThatLeaveTheStoreAreFollowedOnlyWhereThatIsAllowed) {
  namespace fs = std::filesystem;
  const testing::TemporaryFolder folder;
  Store store(folder.path() + "/a.zarr");
  for (const char* name : {"x", "y", "z"}) store.add(name, {.shape = {4}, .chunks = {2}}, value_at);
  store.consolidate();
  const std::vector<double> wanted = {value_at({0}), value_at({1}), value_at({2}), value_at({3})};
  const auto move_out = [&](const std::string& name) {
    const std::string outside = folder.path() + "/outside_" + fs::path(name).filename().string();
    fs::rename(store.path() + name, outside);
    fs::create_symlink(outside, store.path() + name);
    return outside;
  };
  const std::string chunk = move_out("/x/1"), array = move_out("/y");
  fs::rename(store.path() + "/z/1", store.path() + "/z/kept");
  fs::create_symlink("kept", store.path() + "/z/1");
  fs::create_symlink("a.zarr", folder.path() + "/link.zarr");
  for (const std::string& path : {store.path(), folder.path() + "/link.zarr"}) {
    ZarrStore refusing(path);
    EXPECT_EQ(message_of<DataError>([&] { read_whole(refusing, "x"); }),
              concat("cannot read ", path, "/x/1: it stands in another file (", chunk,
                     "); set data.allow_external to true if that may be read"));
    EXPECT_NE(message_of<DataError>([&] { read_whole(refusing, "y"); }).find(array), std::string::npos);
    EXPECT_EQ(read_whole(refusing, "z"), wanted);
    const auto following = open_variables(path, Dimensions::kByName, External::kFollowed);
    const FileDescription told = refusing.describe();
    EXPECT_THROW(read_whole(*open_described(told, External::kRefused), "x"), DataError);
    for (const char* name : {"x", "y", "z"}) {
      EXPECT_EQ(read_whole(*following, name), wanted) << name;
      EXPECT_EQ(read_whole(*open_described(told, External::kFollowed), name), wanted) << name;
    }
  }
}

/// JSON of objects in each other.
std::string nested(int depth) {
  std::string text;
  for (int i = 0; i < depth; ++i) text += "{\"a\":";
  return text + "1" + std::string(static_cast<std::size_t>(depth), '}');
}

TEST(ZarrStore, DeeplyNestedMetadataIsRefused) {
  const testing::TemporaryFolder folder;
  Store store(folder.path() + "/a.zarr");
  store.add("x", {.shape = {2}, .chunks = {2}}, value_at);
  testing::put_text(store.path() + "/x/.zattrs", nested(100));
  EXPECT_NO_THROW(ZarrStore{store.path()});
  for (const char* file : {"/x/.zattrs", "/.zmetadata", "/zarr.json"}) {
    testing::put_text(store.path() + file, nested(200000));
    EXPECT_EQ(
        message_of<DataError>([&] { ZarrStore{store.path()}; }),
        concat("cannot read ", store.path(), file, ": objects and lists are nested deeper than 100 levels"));
  }
}

TEST(ZarrStore, FoldersThatAreLinksArePassedOver) {
  const testing::TemporaryFolder folder;
  Store store(folder.path() + "/a.zarr");
  store.add("x", {.shape = {2}, .chunks = {2}}, value_at);
  for (int i = 0; i < 10; ++i) std::filesystem::create_symlink(".", concat(store.path(), "/g", i));
  const ZarrStore opened(store.path());
  ASSERT_EQ(opened.variables().size(), 1U);
  EXPECT_EQ(opened.variables()[0].name, "x");
}

TEST(ZarrStore, HasAtMostAThousandGroups) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/a.zarr";
  const auto add_group = [&](const std::string& name) {
    std::filesystem::create_directory(path + name);
    testing::put_text(path + name + "/.zgroup", "{}");
  };
  add_group("");
  for (int i = 1; i < 1000; ++i) add_group(concat("/", i));
  EXPECT_NO_THROW(ZarrStore{path});
  add_group("/more");
  EXPECT_EQ(message_of<DataError>([&] { ZarrStore{path}; }),
            concat("cannot read ", path, ": it has more than 1000 groups"));
}

TEST(ZarrStore, ASingleArrayIsRefused) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/a.zarr";
  std::filesystem::create_directory(path);
  for (const char* file : {"/.zarray", "/zarr.json"}) {
    testing::put_text(path + file, R"({"zarr_format": 3, "node_type": "array"})");
    EXPECT_EQ(message_of<DataError>([&] { open_variables(path, Dimensions::kByName); }),
              path + " is a single array of Zarr, and must be a group of arrays");
  }
}

/// Of other arrays those that say what numbers mean.
TEST(ZarrStore, OfAGridMappingAllAttributesAreRead) {
  const testing::TemporaryFolder folder;
  Store store(folder.path() + "/a.zarr");
  Json attributes = {{"grid_mapping_name", "lambert_conformal_conic"}, {"earth_radius", 6371229}};
  attributes["standard_parallel"] = {38.5, 39.5};
  attributes["crs_wkt"] = std::string(2000, 'w');
  attributes["history"] = std::string(5000, 'h');
  store.add("crs", {.shape = {1}, .chunks = {1}, .attributes = attributes}, value_at);
  attributes.erase("grid_mapping_name");
  store.add("x", {.shape = {2}, .chunks = {2}, .attributes = attributes}, value_at);
  const ZarrStore opened(store.path());
  const FileVariable &crs = *opened.find("crs"), &x = *opened.find("x");
  EXPECT_EQ(crs.text("grid_mapping_name"), "lambert_conformal_conic");
  EXPECT_EQ(crs.text("crs_wkt"), std::string(2000, 'w'));
  EXPECT_EQ(crs.text("history"), "");
  EXPECT_EQ(crs.numbers.at("earth_radius"), std::vector<double>{6371229});
  EXPECT_EQ(crs.numbers.at("standard_parallel"), (std::vector<double>{38.5, 39.5}));
  EXPECT_TRUE(x.numbers.empty());
  EXPECT_EQ(x.text("crs_wkt"), "");
}

// As zarr-python writes numbers that JSON has not.
TEST(ZarrStore, NumbersThatAreNotFiniteMayStandInAttributes) {
  const testing::TemporaryFolder folder;
  Store store(folder.path() + "/a.zarr");
  store.add("x", {.shape = {2}, .chunks = {2}}, value_at);
  const std::string attributes =
      R"({"missing_value": NaN, "_FillValue": -Infinity, "valid_range": [0, Infinity], )"
      R"("units": "\"NaN", "long_name": "x Infinity\\"})";
  const auto check = [](const std::string& path) {
    const ZarrStore opened(path);
    const FileVariable& x = *opened.find("x");
    const double infinity = std::numeric_limits<double>::infinity();
    EXPECT_TRUE(std::isnan(x.numbers.at("missing_value").at(0)));
    EXPECT_EQ(x.numbers.at("_FillValue"), std::vector<double>{-infinity});
    EXPECT_EQ(x.numbers.at("valid_range"), (std::vector<double>{0, infinity}));
    EXPECT_EQ(x.text("units"), "\"NaN");
    EXPECT_EQ(x.text("long_name"), "x Infinity\\");
  };
  testing::put_text(store.path() + "/x/.zattrs", attributes);
  check(store.path());
  const std::string array = R"({"zarr_format": 3, "node_type": "array", "shape": [2], "data_type": "float32",
      "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}}, "fill_value": NaN,
      "codecs": [{"name": "bytes"}], "attributes": )";
  const std::string path = folder.path() + "/b.zarr";
  std::filesystem::create_directories(path + "/x");
  testing::put_text(path + "/zarr.json", R"({"zarr_format": 3, "node_type": "group"})");
  testing::put_text(path + "/x/zarr.json", array + attributes + "}");
  check(path);
}

TEST(ZarrStore, AttributesThatAreNoNumbersWhereNumbersAreMeantAreRefused) {
  const testing::TemporaryFolder folder;
  Store store(folder.path() + "/a.zarr");
  const Spec spec{.shape = {2}, .chunks = {2}};
  store.add("x", spec, value_at);
  const auto read = [&](const Json& attributes) {
    store.put("/x/.zattrs", attributes);
    ZarrStore opened(store.path());
    std::vector<double> values(2);
    opened.read<double>(*opened.find("x"), Box::whole(spec.shape), values);
    return values;
  };
  const std::vector<double> unscaled = {value_at({0}), value_at({1})};
  EXPECT_EQ(read({{"scale_factor", nullptr}, {"units", true}, {"long_name", {"a", 1}}}), unscaled);
  EXPECT_EQ(read({{"scale_factor", Json::array({2})}}),
            (std::vector<double>{2 * unscaled[0], 2 * unscaled[1]}));
  for (const char* value : {"[\"two\"]", "[2, \"two\"]", "true", "[false]", "{}", "[]", "[[2]]", "[null]"}) {
    for (const char* name : {"scale_factor", "add_offset", "missing_value", "valid_range"}) {
      EXPECT_EQ(message_of<DataError>([&] {
                  read({{name, Json::parse(value)}});
                }),
                concat("x in ", store.path(), " cannot be used: its attribute ", name,
                       " is empty or of a type that is not understood"))
          << value;
    }
  }
}

TEST(ZarrStore, AShardedArrayWithAnotherGridIsAtFaultAlone) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/a.zarr", metadata = path + "/shards/zarr.json";
  std::filesystem::create_directory(path);
  std::filesystem::copy(fixture("zarr3"), path, std::filesystem::copy_options::recursive);
  Json root = Json::parse(testing::text_of(path + "/zarr.json"));
  root.erase("consolidated_metadata");
  testing::put_text(path + "/zarr.json", root.dump());
  Json changed = Json::parse(testing::text_of(metadata));
  changed["chunk_grid"]["name"] = "rectilinear";
  testing::put_text(metadata, changed.dump());
  const ZarrStore store(path);
  EXPECT_EQ(store.variables().size(), 14U);
  EXPECT_EQ(store.find("plain")->fault, "");
  EXPECT_EQ(store.find("shards")->fault.find("its grid of chunks is \"rectilinear\", not regular"), 0U);
}

/// What make_zarr_fixtures.py puts into arrays of floats, or of whole numbers.
double python_value(const Shape& at, bool whole) {
  return static_cast<double>(500 + 100 * at[0] + 10 * at[1] + at[2]) + (whole ? 0 : 0.5);
}

TEST(ZarrStore, ReadsWhatZarrPythonWrites) {
  const std::set<std::string> of_floats = {"plain", "big", "zstd", "dots", "shards"};
  ZarrStore format2(fixture("zarr2"));
  ASSERT_EQ(format2.variables().size(), 3U);
  for (const char* name : {"plain", "big", "zstd"})
    expect_values(format2, name, [&](const Shape& at) { return python_value(at, name[0] == 'z'); });
  ZarrStore format3(fixture("zarr3"));
  ASSERT_EQ(format3.variables().size(), 14U);
  for (const char* name :
       {"plain", "big", "gzip", "zstd", "blosc", "checked", "dots", "old_names", "shards", "index_first"}) {
    expect_values(format3, name,
                  [&](const Shape& at) { return python_value(at, !of_floats.contains(name)); });
  }
  const auto left_out = [](const Shape& at) { return at[0] >= 2 && at[2] >= 4; };
  // What is not there is missing only where an attribute says so.
  expect_values(format3, "missing_in_shard",
                [&](const Shape& at) { return left_out(at) ? -1 : python_value(at, false); });
  expect_values(format3, "missing",
                [&](const Shape& at) { return left_out(at) ? std::nan("") : python_value(at, false); });
  EXPECT_EQ(format3.find("missing")->dimensions, (std::vector<std::string>{"time", "latitude", "longitude"}));
  EXPECT_EQ(format3.find("missing")->text("units"), "K");
  EXPECT_EQ(format3.find("shards")->chunks, (Shape{1, 2, 4}));
  double value = 0;
  format3.read<double>(*format3.find("surface/inner"), Box{}, std::span(&value, 1));
  EXPECT_EQ(value, 2.5);
  const std::string message =
      message_of<DataError>([&] { format3.require_numbers(*format3.find("transposed")); });
  EXPECT_NE(message.find("its dimensions are transposed; convert it with: python3 -c "), std::string::npos)
      << message;
}

TEST(ZarrStore, OfAShardOnlyTheChunksThatAreNeededAreRead) {
  ZarrStore store(fixture("zarr3"));
  const FileVariable& shards = *store.find("shards");
  std::vector<double> found(2 * 3);
  store.read<double>(shards, {{1, 2, 4}, {1, 2, 3}}, found);
  EXPECT_EQ(found[0], python_value({1, 2, 4}, false));
  const auto whole = std::filesystem::file_size(fixture("zarr3/shards/c/0/0/0"));
  const std::int64_t once = store.bytes_fetched();
  EXPECT_LT(once, static_cast<std::int64_t>(whole) / 2);
  // The index is kept; the next chunk costs itself.
  store.read<double>(shards, {{0, 0, 0}, {1, 2, 3}}, found);
  EXPECT_LT(store.bytes_fetched() - once, once);
}

TEST(ZarrStore, FieldsOfFormat3AsXarrayWritesThem) {
  FileSet files({fixture("xarray.zarr")});
  const Field t2m{"t2m", {}};
  files.select(t2m, true);
  EXPECT_EQ(files.units(t2m), "K");
  ASSERT_EQ(files.times(t2m).size(), 4U);
  EXPECT_EQ(format_time(files.times(t2m)[3]), "2020-01-01T18:00");
  std::vector<double> plane(18);
  files.read(t2m, files.times(t2m)[1], {{0, 0}, {3, 6}}, plane);
  for (std::size_t i = 0; i < plane.size(); ++i) {
    if (i == 15) {
      EXPECT_TRUE(std::isnan(plane[i]));  // _FillValue is base64 there
    } else {
      EXPECT_EQ(plane[i], 298 + static_cast<double>(i));
    }
  }
}

TEST(ZarrStore, DamageOfFormat3IsADataError) {
  const testing::TemporaryFolder folder;
  int number = 0;
  const auto read = [&](const std::string& name, const std::function<void(const std::string&)>& damage) {
    const std::string path = concat(folder.path(), "/", ++number, ".zarr");
    std::filesystem::create_directory(path);
    std::filesystem::copy(fixture("zarr3/zarr.json"), path + "/zarr.json");
    std::filesystem::copy(fixture("zarr3/" + name), path + "/" + name,
                          std::filesystem::copy_options::recursive);
    damage(path + "/" + name);
    ZarrStore store(path);
    const FileVariable& variable = store.variables().at(0);
    std::vector<double> values(static_cast<std::size_t>(variable.shape.count()));
    store.read<double>(variable, Box::whole(variable.shape), values);
  };
  const auto byte = [](const char* file, std::size_t back, char bits) {
    return [=](const std::string& array) {
      std::string bytes = testing::text_of(array + file);
      bytes[bytes.size() - back] ^= bits;
      testing::put_text(array + file, bytes);
    };
  };
  const auto json = [](const std::function<void(Json&)>& change) {
    return [=](const std::string& array) {
      Json metadata = Json::parse(testing::text_of(array + "/zarr.json"));
      change(metadata);
      testing::put_text(array + "/zarr.json", metadata.dump());
    };
  };
  EXPECT_NO_THROW(read("shards", [](const std::string&) {}));
  for (const char* name : {"plain", "gzip", "zstd", "blosc", "checked", "shards"}) {
    EXPECT_THROW(read(name,
                      [](const std::string& array) {
                        const std::string chunk = array + "/c/1/0/0";
                        testing::put_text(chunk, testing::text_of(chunk).substr(0, 15));
                      }),
                 DataError)
        << name;
  }
  // The checksum of a chunk, that of an index, a length in it, and one in an index without a checksum.
  EXPECT_THROW(read("checked", byte("/c/0/0/0", 1, 1)), DataError);
  EXPECT_THROW(read("shards", byte("/c/0/0/0", 1, 1)), DataError);
  EXPECT_THROW(read("shards", byte("/c/0/0/0", 4 + 8, 1)), DataError);
  EXPECT_THROW(read("index_first",
                    [](const std::string& array) {
                      std::string bytes = testing::text_of(array + "/c/0/0/0");
                      bytes[7] = 0x7f;
                      testing::put_text(array + "/c/0/0/0", bytes);
                    }),
               DataError);
  EXPECT_THROW(read("plain", json([](Json& j) { j["zarr_format"] = 2; })), DataError);
  EXPECT_THROW(read("plain", json([](Json& j) { j["shape"][0] = -3; })), DataError);
  EXPECT_THROW(read("plain", json([](Json& j) { j["codecs"] = Json::array(); })), DataError);
  EXPECT_THROW(read("plain", json([](Json& j) { j["codecs"][0]["name"] = "x"; })), DataError);
  EXPECT_THROW(read("plain", json([](Json& j) { j["chunk_grid"]["name"] = "rectilinear"; })), DataError);
  EXPECT_THROW(read("plain", json([](Json& j) { j["chunk_key_encoding"]["name"] = "x"; })), DataError);
  EXPECT_THROW(read("plain", json([](Json& j) {
                      j["storage_transformers"] = {{{"name", "x"}}};
                    })),
               DataError);
  EXPECT_THROW(read("plain", json([](Json& j) { j["offset"] = 5; })), DataError);
  EXPECT_NO_THROW(read("plain", json([](Json& j) { j["note"] = {{"must_understand", false}}; })));
  const auto inner = [](const char* key, const Json& value) {
    return [=](Json& j) { j["codecs"][0]["configuration"][key] = value; };
  };
  EXPECT_THROW(read("shards", json(inner("chunk_shape", {1, 3, 4}))), DataError);
  EXPECT_THROW(read("shards", json(inner("chunk_shape", {1, 2}))), DataError);
  EXPECT_THROW(read("shards", json(inner("index_codecs", {{{"name", "gzip"}}}))), DataError);
}

}  // namespace zarr_store_test
}  // namespace jigsaw
