#include "images/case_choice.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "comm/from_first.h"
#include "files/glob.h"
#include "images/case_names.h"

namespace jigsaw::inline images {

namespace {

/// A file of folds is no larger.
constexpr std::int64_t kMostBytesOfFolds = 16 << 20;

Json read_folds(const std::string& path) {
  try {
    return parse_json(read_text(path, kMostBytesOfFolds), path);
  } catch (const Error& error) {
    throw DataError(error.what());
  }
}

/// @throws DataError  where there is no such list of texts.
std::vector<std::string> cases_in(const Json& fold, const std::string& list, const std::string& path) {
  const auto is_text = [](const Json& text) { return text.is_string(); };
  const bool there = fold.is_object() && fold.contains(list) && fold.at(list).is_array();
  if (!there || !std::ranges::all_of(fold.at(list), is_text)) {
    throw DataError(concat(path,
                           " must be a list of folds, each {\"train\": […], \"val\": […]} with names "
                           "of cases, and has none under \"",
                           list, "\""));
  }
  return fold.at(list).get<std::vector<std::string>>();
}

/// Names are themselves; "*" in them stands for anything.
bool is_named(const std::string& name, const std::vector<std::string>& by) {
  return std::ranges::any_of(by, [&](const std::string& pattern) {
    return name == pattern || (pattern.find('*') != std::string::npos && matches_pattern(name, pattern));
  });
}

/// Of all images, in their order.
std::vector<std::string> cases_of(const ImageFiles& files) {
  std::vector<std::string> known;
  for (std::int64_t image = 0; image < files.count(); ++image)
    if (known.empty() || known.back() != files.case_of(image)) known.push_back(files.case_of(image));
  return known;
}

/// Names of a part that are of no case.
std::vector<std::string> unknown_cases(const SliceRanges& part, const std::vector<std::string>& known) {
  std::vector<std::string> unknown;
  for (const std::string& name : part.cases) {
    if (std::ranges::none_of(known, [&](const std::string& each) { return is_named(each, {name}); }))
      unknown.push_back(name);
  }
  return unknown;
}

/// @throws ConfigError  where a name is of no case.
void check_cases(const SliceRanges& part, const std::vector<std::string>& known, const std::string& key) {
  const std::vector<std::string> unknown = unknown_cases(part, known);
  if (unknown.empty()) return;
  const bool one = unknown.size() == 1;
  throw ConfigError(concat(
      key, part.folds.empty() ? "" : concat(", fold ", part.fold, " of ", part.folds, ","), " takes the case",
      one ? " " : "s ", first_of(unknown), ", which ", one ? "is" : "are", " not among the ", known.size(),
      " of the files", did_you_mean(unknown.front(), known), "; the first one there is ", known.front()));
}

}  // namespace

SliceRanges with_cases_of_fold(SliceRanges part, const std::string& list, const std::string& key,
                               const std::filesystem::path& folder) {
  if (part.folds.empty()) return part;
  std::string path;
  Json folds;
  try {
    path = expand_patterns({part.folds}, folder).front();
    folds = read_folds(path);
  } catch (const DataError& error) {
    throw DataError(concat(key, ".file: ", error.what()));
  }
  if (!folds.is_array() || folds.empty())
    throw DataError(concat(key, ".file: ", path, " must hold a list of folds, not ", describe(folds)));
  if (part.fold >= std::ssize(folds)) {
    throw ConfigError(concat(key, ".fold is ", part.fold, ", and ", path, " has ",
                             counted(std::ssize(folds), "fold"), ", from 0 on"));
  }
  const std::string chosen = part.list.empty() ? list : part.list;
  part.cases = cases_in(folds[static_cast<std::size_t>(part.fold)], chosen, path);
  if (part.cases.empty())
    throw ConfigError(
        concat(key, ": fold ", part.fold, " of ", path, " names no case under \"", chosen, "\""));
  return part;
}

std::vector<DataPart> with_cases_of_folds(std::vector<DataPart> parts, const std::string& list,
                                          const std::string& key, const std::filesystem::path& folder,
                                          Communicator& communicator) {
  for (DataPart& part : parts) {
    auto& ranges = std::get<SliceRanges>(part);
    if (ranges.folds.empty()) continue;
    const std::string cases = from_first(communicator, [&] {
      const std::vector<std::uint8_t> bytes =
          Json::to_cbor(with_cases_of_fold(ranges, list, key, folder).cases);
      return std::string(bytes.begin(), bytes.end());
    });
    ranges.cases = Json::from_cbor(cases).get<std::vector<std::string>>();
  }
  return parts;
}

std::vector<std::int64_t> images_of(const SliceRanges& part, const ImageFiles& files,
                                    const std::string& key) {
  std::vector<std::int64_t> images(static_cast<std::size_t>(files.count()));
  std::iota(images.begin(), images.end(), 0);
  if (const auto samples = part.of.find(ImageDim::kSample); samples != part.of.end()) {
    const auto& [first, last] = samples->second;
    if (last >= files.count()) {
      throw ConfigError(concat(key, " takes ", name(ImageDim::kSample), " ", first, " to ", last,
                               ", but the images of all files are ", files.count(),
                               "; the last can be at most ", files.count() - 1));
    }
    return {images.begin() + first, images.begin() + last + 1};
  }
  if (part.cases.empty()) return images;
  check_cases(part, cases_of(files), key);
  std::vector<std::int64_t> chosen;
  const std::string* before = nullptr;  // slices of a volume have one name
  bool named = false;
  for (const std::int64_t image : images) {
    const std::string& of = files.case_of(image);
    if (before == nullptr || *before != of) named = is_named(of, part.cases);
    before = &of;
    if (named) chosen.push_back(image);
  }
  return chosen;
}

bool has_cases_of(const SliceRanges& part, const ImageFiles& files) {
  return unknown_cases(part, cases_of(files)).empty();
}

}  // namespace jigsaw::inline images
