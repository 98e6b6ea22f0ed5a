#include "files/variable_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/file_kind.h"
#include "base/lower_case.h"
#include "base/memory.h"
#include "base/printable.h"
#include "base/text.h"
#include "base/trace.h"
#include "files/chunk_cache.h"
#include "files/coordinate_units.h"
#include "files/field_attributes.h"
#include "files/grib.h"
#include "files/hdf5_file.h"
#include "files/netcdf_file.h"
#include "files/nifti_file.h"
#include "files/zarr_store.h"

namespace jigsaw::inline files {

namespace {

constexpr std::string_view kHdf5Signature = "\x89HDF\r\n\x1a\n";

/// As many as tell a format; of what is compressed, as many as its header takes.
constexpr std::int64_t kBeginBytes = 4096;

std::string begin_of_file(const File& file) {
  std::string begin(static_cast<std::size_t>(std::min(file.size(), kBeginBytes)), '\0');
  file.read(std::as_writable_bytes(std::span(begin)), 0);
  return begin;
}

bool is_nifti_file(const File& file) {
  return is_nifti(begin_of_file(file));
}

bool is_classic(const File& file) {
  return holds_at(file, 0, "CDF");
}

/// The signature stands at 0, or behind a block of the user's at 512, 1024, 2048, …
bool is_hdf5(const File& file) {
  const std::int64_t size = file.size();
  for (std::int64_t offset = 0; offset < size; offset = offset == 0 ? 512 : 2 * offset) {
    if (holds_at(file, offset, kHdf5Signature)) return true;
  }
  return false;
}

/// Attributes that change what stored numbers mean, and how many numbers each is; 0: any number.
struct NumberAttribute {
  const char* name;
  std::size_t count;
};
constexpr std::array<NumberAttribute, 7> kNumberAttributes = {{{"scale_factor", 1},
                                                               {"add_offset", 1},
                                                               {"valid_min", 1},
                                                               {"valid_max", 1},
                                                               {"valid_range", 2},
                                                               {"missing_value", 0},
                                                               {"_FillValue", 0}}};

/// Why the attributes of a variable do not say what its numbers mean; "" when they do.
std::string fault_of_attributes(const FileVariable& variable) {
  for (const NumberAttribute& attribute : kNumberAttributes) {
    if (const auto text = variable.texts.find(attribute.name); text != variable.texts.end()) {
      return concat("its attribute ", attribute.name, " is the text \"",
                    printable(text->second.substr(0, 60)), "\", not a number");
    }
    const auto found = variable.numbers.find(attribute.name);
    if (found == variable.numbers.end() || attribute.count == 0) continue;
    const std::vector<double>& numbers = found->second;
    if (numbers.size() != attribute.count) {
      return concat("its attribute ", attribute.name, " must be ", attribute.count, " number",
                    attribute.count > 1 ? "s" : "", ", and is ", numbers.size());
    }
    const bool scales = std::string_view(attribute.name) == "scale_factor" ||
                        std::string_view(attribute.name) == "add_offset";
    if (scales && !std::isfinite(numbers[0])) {
      return concat("its attribute ", attribute.name, " is ", numbers[0], ", not a finite number");
    }
  }
  if (const std::string is = to_lower(variable.text("_Unsigned"));
      !is.empty() && is != "false" && is != "true")
    return concat("its attribute _Unsigned is \"", printable(is.substr(0, 60)), "\", not true or false");
  return "";
}

constexpr std::int64_t kLongestCoordinate = std::int64_t{1} << 24, kMostTexts = std::int64_t{1} << 16;
/// Numbers that the description of a file brings along.
constexpr std::int64_t kMostDescribed = std::int64_t{1} << 20;

bool is_coordinate(const FileVariable& variable) {
  return variable.shape.rank() == 1 && variable.dimensions == std::vector{variable.name} &&
         variable.shape[0] > 0 && variable.shape[0] <= kMostDescribed;
}

/// Times beside the coordinate of their dimension (WRF's XTIME, valid times of forecasts).
bool counts_time(const FileVariable& variable) {
  return (variable.shape.rank() == 1 || variable.shape.rank() == 2) && variable.shape.count() > 0 &&
         variable.shape.count() <= kMostDescribed && counts_since(variable.text("units"));
}

/// What a scalar coordinate says of fields of a file: time, lead, level, member of an ensemble.
bool is_scalar_coordinate(const FileVariable& variable) {
  static constexpr std::array<std::string_view, 21> kNames = {
      "step",   "lead_time", "prediction_timedelta", "time",          "Time",     "valid_time", "level",
      "plev",   "lev",       "pressure_level",       "isobaricInhPa", "depth",    "deptht",     "number",
      "height", "olevel",    "realization",          "member",        "ensemble", "member_id",  "ens"};
  if (variable.shape.rank() != 0) return false;
  if (counts_since(variable.text("units"))) return true;
  for (const char* attribute : {"standard_name", "axis", "positive"})
    if (!variable.text(attribute).empty()) return true;
  return std::ranges::find(kNames, without_groups(variable.name)) != kNames.end();
}

/// Dates that WRF has in place of a coordinate, by characters.
bool holds_dates(const FileVariable& variable) {
  return !variable.numeric() && variable.name == "Times" && variable.shape.rank() == 2;
}

/// What of a variable a description brings along.
std::vector<Box> described_boxes(const FileVariable& variable) {
  const Shape& shape = variable.shape;
  const int rank = shape.rank();
  if (!variable.numeric() || std::ssize(variable.dimensions) != rank) return {};
  if (is_coordinate(variable) || counts_time(variable) || is_scalar_coordinate(variable))
    return {Box::whole(shape)};
  const std::string units = variable.text("units");
  const bool places = (rank == 2 || rank == 3) && (counts_north(units) || counts_east(units));
  if (!places || shape.count() == 0 || shape.back() > kMostDescribed) return {};
  std::vector<Box> rows;
  for (const std::int64_t row : {std::int64_t{0}, shape[rank - 2] / 2, shape[rank - 2] - 1}) {
    Box box{Shape::filled(rank, 0), Shape::filled(rank, 1)};
    box.begin[rank - 2] = row;
    box.extent[rank - 1] = shape.back();
    if (rows.empty() || !(rows.back() == box)) rows.push_back(box);
  }
  return rows;
}

FileState state_of(const std::string& path) {
  try {
    return file_state(path);
  } catch (const FileError& error) {
    throw DataError(error.what());
  }
}

std::string words_of_change(const FileState& before, const FileState& now) {
  if (now.device != before.device || now.inode != before.inode) return "another file has taken its place";
  if (now.bytes != before.bytes)
    return concat("it has ", now.bytes, " bytes, and had ", before.bytes, " when it was opened");
  return "it was written to";
}

/// Since it was started.
const std::string& this_machine() {
  static const std::string machine = [] {
    try {
      return read_text("/proc/sys/kernel/random/boot_id", 64);
    } catch (const FileError&) {
      std::array<char, 256> name{};
      ::gethostname(name.data(), name.size() - 1);
      return std::string(name.data());
    }
  }();
  return machine;
}

[[noreturn]] void refuse_change(const std::string& path, const FileState& before, const FileState& now) {
  throw DataError(concat(path, " was changed while the run was reading it: ", words_of_change(before, now),
                         "; start again when it stays as it is"));
}

}  // namespace

VariableFile::VariableFile(std::string path, std::string stands_for)
    : path_(std::move(path)),
      stands_for_(stands_for.empty() ? path_ : std::move(stands_for)),
      state_(state_of(stands_for_)) {}

VariableFile::VariableFile(const FileDescription& known)
    : variables_(known.variables),
      path_(known.path),
      stands_for_(known.stands_for),
      state_(state_of(stands_for_)),
      known_values_(known.values),
      known_texts_(known.texts) {
  if (state_.bytes != known.state.bytes) {
    throw DataError(concat(stands_for_, " has ", state_.bytes, " bytes here and ", known.state.bytes,
                           " for the rank that read its header; all nodes must have the same files"));
  }
  // Copies on disks of the nodes differ in everything else, but for numbers that may be equal by chance.
  const bool same_file = known.machine == this_machine() && state_.device == known.state.device &&
                         state_.inode == known.state.inode;
  if (same_file && !(state_ == known.state)) refuse_change(path_, known.state, state_);
}

FileDescription VariableFile::describe() {
  std::int64_t room = kMostDescribed;
  for (const FileVariable& variable : variables_) {
    for (const Box& box : described_boxes(variable)) keep(variable, box, room);
    if (!variable.numeric() && (is_coordinate(variable) || holds_dates(variable))) keep_texts(variable, room);
  }
  return {std::string(format()), path_,        stands_for_,      state_, this_machine(), variables_,
          known_values_,         known_texts_, own_description()};
}

const DescribedPiece* VariableFile::kept(const FileVariable& variable, const Box& box) const {
  const auto known = known_values_.find(variable.name);
  if (known == known_values_.end()) return nullptr;
  const auto found =
      std::ranges::find_if(known->second, [&](const DescribedPiece& piece) { return piece.box == box; });
  return found == known->second.end() ? nullptr : &*found;
}

void VariableFile::keep(const FileVariable& variable, const Box& box, std::int64_t& room) {
  if (box.extent.count() > room) return;
  room -= box.extent.count();
  if (kept(variable, box) != nullptr) return;
  try {
    ByteBuffer buffer;
    const StoredNumbers numbers = read_as_stored(variable, box, buffer);
    const auto bytes = buffer.take(static_cast<std::size_t>(box.extent.count() * size_of(numbers.type)));
    known_values_[variable.name].push_back({box, numbers, {bytes.begin(), bytes.end()}});
  } catch (const DataError&) {
    // Whoever wants them hears why not.
  }
}

void VariableFile::keep_texts(const FileVariable& variable, std::int64_t& room) {
  try {
    std::vector<std::string> texts = read_texts(variable);
    std::int64_t bytes = 0;
    for (const std::string& text : texts) bytes += std::ssize(text) + std::int64_t{sizeof(double)};
    if (bytes > room * std::int64_t{sizeof(double)}) return;
    room -= bytes / std::int64_t{sizeof(double)};
    known_texts_[variable.name] = std::move(texts);
  } catch (const DataError&) {
    // Whoever wants them hears why not.
  }
}

void VariableFile::forget_described() {
  known_values_.clear();
  known_texts_.clear();
}

std::uint64_t VariableFile::chunk_key() const {
  return ChunkCache::shared().file_key(state_);
}

void VariableFile::check_unchanged() const {
  FileState now;
  try {
    now = file_state(stands_for_);
  } catch (const FileError& error) {
    throw DataError(concat(error.what(), "; it was there when the run opened it"));
  }
  if (!(now == state_)) refuse_change(path_, state_, now);
}

void VariableFile::add_unknown(FileVariable& variable, const std::string& attribute) {
  const auto* const known =
      std::ranges::find(kNumberAttributes, attribute, [](const auto& a) { return std::string(a.name); });
  if (known != kNumberAttributes.end())
    variable.refuse(concat("its attribute ", attribute, " is empty or of a type that is not understood"));
}

void VariableFile::require_numbers(const FileVariable& variable) const {
  const std::string fault = !variable.fault.empty() ? variable.fault
                            : !variable.numeric()   ? "it does not hold numbers"
                                                    : fault_of_attributes(variable);
  if (!fault.empty()) throw DataError(concat(variable.name, " in ", path_, " cannot be used: ", fault));
}

std::map<std::string, UndeclaredValues> VariableFile::undeclared() const {
  const std::lock_guard lock(mutex_);
  std::map<std::string, UndeclaredValues> found = undeclared_;
  std::erase_if(found, [](const auto& entry) { return entry.second.count == 0; });
  return found;
}

const std::vector<std::string>& VariableFile::attributes() {
  static const std::vector<std::string> names = {"units",        "calendar",     "standard_name",
                                                 "long_name",    "axis",         "positive",
                                                 "scale_factor", "add_offset",   "missing_value",
                                                 "valid_range",  "_FillValue",   "valid_min",
                                                 "valid_max",    "_Unsigned",    "bounds",
                                                 "coordinates",  "spacing",      "element_size_um",
                                                 "affine",       "grid_mapping", "grid_mapping_name",
                                                 "flag_values",  "flag_masks",   "flag_meanings"};
  return names;
}

bool VariableFile::is_read(const FileVariable& variable, const std::string& attribute) {
  if (!variable.text("grid_mapping_name").empty()) return true;
  if (!variable.numeric() || variable.shape.rank() < 2) return false;
  return variable.texts.size() + variable.numbers.size() < kMostFieldAttributes && is_of_field(attribute);
}

const FileVariable* VariableFile::find(const std::string& name) const {
  const auto found = std::find_if(variables_.begin(), variables_.end(),
                                  [&](const FileVariable& variable) { return variable.name == name; });
  return found == variables_.end() ? nullptr : &*found;
}

const FileVariable* VariableFile::find_from(const FileVariable& variable, const std::string& name) const {
  if (name.starts_with('/')) return find(name.substr(1));
  std::string group = variable.name;
  while (!group.empty()) {
    const std::size_t end = group.rfind('/');
    group.resize(end == std::string::npos ? 0 : end);
    const FileVariable* found = find(group.empty() ? name : concat(group, "/", name));
    if (found != nullptr) return found;
  }
  return nullptr;
}

const FileVariable* VariableFile::grid_mapping(const FileVariable& variable) const {
  // "crs", or "crs: x y" beside others.
  const std::string named = variable.text("grid_mapping");
  const FileVariable* mapping = find_from(variable, named.substr(0, named.find_first_of(": ")));
  return mapping != nullptr && !mapping->text("grid_mapping_name").empty() ? mapping : nullptr;
}

template <typename T>
void VariableFile::read(const FileVariable& variable, const Box& box, std::span<T> out) {
  require(std::ssize(out) == box.extent.count(), "a hyperslab does not fit where it is read to");
  require_numbers(variable);
  if (box.empty()) return;
  // Kept from plane to plane, for a thread reads many of one size.
  static thread_local ByteBuffer buffer;
  const StoredNumbers numbers = read_as_stored(variable, box, buffer);
  const std::size_t bytes = out.size() * static_cast<std::size_t>(size_of(numbers.type));
  const Unpacking unpacking(variable);
  const std::span<const std::byte> stored = buffer.take(bytes);
  UndeclaredValues found{unpacking.unpack(numbers, stored, out), std::ssize(out)};
  if (found.count > 0) found.infinite = unpacking.infinite(numbers, stored);
  note_undeclared(variable, found);
}

void VariableFile::note_undeclared(const FileVariable& variable, const UndeclaredValues& values) {
  const std::lock_guard lock(mutex_);
  UndeclaredValues& found = undeclared_[variable.name];
  found.count += values.count;
  found.of += values.of;
  found.infinite += values.infinite;
}

std::optional<HyperslabStream> VariableFile::stream(const FileVariable& variable, const Box& box) {
  require_numbers(variable);
  if (kept(variable, box) != nullptr || !(intersect(Box::whole(variable.shape), box) == box)) return {};
  try {
    std::optional<PlainNumbers> plain = plain_numbers(variable);
    if (!plain) return {};
    return HyperslabStream(*this, variable, box, std::move(*plain));
  } catch (const DataError&) {
    check_unchanged();
    throw;
  }
}

void VariableFile::end_stream(const FileVariable& variable, std::int64_t fetched,
                              const UndeclaredValues& undeclared) {
  check_unchanged();
  bytes_read_ += undeclared.of * variable.bytes;
  bytes_fetched_ += fetched;
  note_undeclared(variable, undeclared);
}

std::optional<PlainNumbers> VariableFile::plain_numbers(const FileVariable& /*variable*/) {
  return {};
}

StoredNumbers VariableFile::read_as_stored(const FileVariable& variable, const Box& box, ByteBuffer& out) {
  require_numbers(variable);
  if (const DescribedPiece* piece = kept(variable, box)) {
    std::ranges::copy(piece->bytes, out.take(piece->bytes.size()).begin());
    return piece->numbers;
  }
  StoredNumbers numbers;
  std::int64_t fetched = 0;
  try {
    TraceSpan span(TraceKind::kRead, variable.name);
    numbers = read_stored(variable, box, out, fetched);
    if (TraceEvent* event = span.event()) event->bytes = static_cast<double>(fetched);
  } catch (const DataError&) {
    check_unchanged();
    throw;
  }
  check_unchanged();
  bytes_read_ += box.extent.count() * variable.bytes;
  bytes_fetched_ += fetched;
  return numbers;
}

template void VariableFile::read<float>(const FileVariable&, const Box&, std::span<float>);
template void VariableFile::read<double>(const FileVariable&, const Box&, std::span<double>);

std::vector<double> VariableFile::read_all(const FileVariable& variable) {
  for (const std::int64_t extent : variable.shape) {
    if (extent > kLongestCoordinate || variable.shape.count() > kLongestCoordinate) {
      throw DataError(concat("the coordinate ", variable.name, " of ", path_, " has ", extent,
                             " values; at most ", kLongestCoordinate, " are sensible"));
    }
  }
  std::vector<double> values(static_cast<std::size_t>(variable.shape.count()));
  read<double>(variable, Box::whole(variable.shape), values);
  return values;
}

std::string refusal_of_other_file(const std::string& where) {
  return concat("it stands in another file (", printable(where.substr(0, 200)),
                "); set data.allow_external to true if that may be read");
}

void refuse_deep_group(const std::string& path, const std::string& group) {
  throw DataError(concat("cannot read ", path, ": the group ", printable(group.substr(0, 200)),
                         " is nested deeper than ", kDeepestGroup, " groups; move what is to be read up"));
}

void require_memory(const Shape& extents, const std::string& what, const std::string& path) {
  // The variable's elements can be counted, so these can.
  const std::int64_t bytes = extents.count() * std::int64_t{sizeof(double)}, room = memory_limit();
  if (bytes <= room) return;
  throw DataError(concat(what, " in ", path, " cannot be used: ", join(extents, " x "), " values take ",
                         human_bytes(bytes), " and there is memory of ", human_bytes(room)));
}

std::vector<std::string> VariableFile::read_texts(const FileVariable& variable) {
  const int rank = variable.shape.rank();
  const std::int64_t most = holds_dates(variable) ? kLongestCoordinate : kMostTexts;
  const bool sensible =
      (rank == 1 || rank == 2) && variable.shape[0] <= most && variable.shape.count() <= kLongestCoordinate;
  if (sensible && variable.shape[0] == 0) return {};
  if (const auto known = known_texts_.find(variable.name); known != known_texts_.end()) return known->second;
  std::vector<std::string> texts;
  if (sensible) texts = read_stored_texts(variable);
  if (texts.empty() || std::ssize(texts) != variable.shape[0])
    throw DataError(concat(variable.name, " in ", path_, " does not hold a list of names"));
  return texts;
}

std::vector<std::string> VariableFile::read_stored_texts(const FileVariable& /*variable*/) {
  return {};
}

bool holds_at(const File& file, std::int64_t offset, std::string_view signature) {
  std::string bytes(signature.size(), '\0');
  if (file.size() < offset + std::ssize(bytes)) return false;
  file.read(std::as_writable_bytes(std::span(bytes)), offset);
  return bytes == signature;
}

const std::vector<FileFormat>& file_formats() {
  static const std::vector<FileFormat> formats = [] {
    std::vector<FileFormat> all = {
        format_of<Hdf5File>(false, is_hdf5),
        format_of<NetcdfFile>(true, [](const File& file) { return is_classic(file) || is_hdf5(file); }),
        format_of<NiftiFile>(false, is_nifti_file),
    };
    if (const std::optional<FileFormat> grib = grib_format()) all.push_back(*grib);
    return all;
  }();
  return formats;
}

namespace {

/// What a file of no format is, and how one that is read is made of it.
std::string advice(const std::string& path, const std::string& begin) {
  std::optional<FileKind> kind = kind_of_file(path);
  const auto decompressed = decompressed_begin(begin);
  const std::optional<FileKind> within =
      kind_of_content(std::string(decompressed.begin(), decompressed.end()), path);
  if (within && within->name.find("NIfTI") != std::string::npos) kind = within;
  if (!kind) return "";
  return concat(" but ", kind->name,
                kind->conversion.empty() ? "" : concat("; convert it with: ", kind->conversion));
}

}  // namespace

std::unique_ptr<VariableFile> open_variables(const std::string& path, Dimensions dimensions,
                                             External external) {
  if (is_zarr_store(path)) return std::make_unique<ZarrStore>(path, external);
  std::vector<std::string> names;
  const FileFormat* found = nullptr;
  std::string begin;
  try {
    const File file(path, O_RDONLY);
    if (file.size() == 0) throw DataError(concat("cannot read ", path, ": it is empty"));
    begin = begin_of_file(file);
    for (const FileFormat& format : file_formats()) {
      if (dimensions == Dimensions::kByName && !format.names_dimensions) continue;
      if (found == nullptr && format.recognises(file)) found = &format;
      names.push_back(format.name);
    }
  } catch (const FileError& error) {
    throw DataError(error.what());
  }
  if (found != nullptr) return found->open(path, external);
  throw DataError(
      concat("cannot read ", path, ": it is no ", join(names, " or "), " file", advice(path, begin)));
}

bool is_variable_file(const std::string& path) {
  if (is_zarr_store(path)) return true;
  try {
    const File file(path, O_RDONLY);
    return std::ranges::any_of(file_formats(), [&](const FileFormat& format) {
      return format.names_dimensions && file.size() > 0 && format.recognises(file);
    });
  } catch (const FileError& error) {
    throw DataError(error.what());
  }
}

std::unique_ptr<VariableFile> open_described(const FileDescription& known, External external) {
  if (known.format == ZarrStore::kFormat) return std::make_unique<ZarrStore>(known, external);
  const auto& formats = file_formats();
  const auto format = std::ranges::find(formats, known.format, &FileFormat::name);
  require(format != formats.end(), "a file was described in a format that is not known");
  return format->open_described(known, external);
}

FileOpener opener(Dimensions dimensions, External external) {
  return [=](const std::string& path) { return open_variables(path, dimensions, external); };
}

}  // namespace jigsaw::inline files
