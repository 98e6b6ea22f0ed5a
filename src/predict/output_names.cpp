#include "predict/output_names.h"

#include <algorithm>
#include <optional>
#include <set>

#include "images/case_names.h"

namespace jigsaw::inline predict {

namespace {

/// What follows the case in the name of every file; nothing where it does not stand in one.
std::optional<std::size_t> length_behind_case(const std::vector<std::string>& names,
                                              const std::vector<std::string>& cases) {
  for (std::size_t at = names[0].rfind(cases[0]); at != std::string::npos;
       at = at == 0 ? std::string::npos : names[0].rfind(cases[0], at - 1)) {
    const std::string behind = names[0].substr(at + cases[0].size());
    bool of_all = true;
    for (std::size_t i = 0; i < names.size(); ++i) of_all = of_all && names[i].ends_with(cases[i] + behind);
    if (of_all) return behind.size();
  }
  return std::nullopt;
}

bool are_different(const std::vector<std::string>& names) {
  return std::set<std::string>(names.begin(), names.end()).size() == names.size();
}

}  // namespace

std::vector<std::string> output_names(const std::vector<std::string>& paths,
                                      const std::vector<std::string>& cases) {
  if (paths.empty()) return {};
  std::vector<std::string> names;
  for (const std::string& path : paths) names.push_back(name_of_file(path));
  if (const auto behind = length_behind_case(names, cases)) {
    for (std::string& name : names) name.resize(name.size() - *behind);
    if (are_different(names)) return names;
  }
  names = cases;
  for (std::string& name : names) std::ranges::replace(name, '/', '_');
  return names;
}

std::vector<InputFile> input_files(const ImageData& data) {
  const std::string& input = data.channels().inputs[0].field.variable;
  std::vector<InputFile> files;
  std::vector<std::string> paths, cases;
  bool of_cases = true;
  for (std::int64_t image = 0; image < data.files().count(); ++image) {
    const ImageSource source = data.files().source(input, image);
    if (!files.empty() && files.back().number == source.file) {
      ++files.back().images;
      of_cases = of_cases && source.nifti != nullptr;
      continue;
    }
    files.push_back({source.file, source.path, data.files().file_case(image), "", 1});
    paths.push_back(source.path);
    cases.push_back(files.back().name);
  }
  const std::vector<std::string> outputs = of_cases ? output_names(paths, cases) : std::vector<std::string>{};
  for (std::size_t i = 0; i < files.size(); ++i)
    files[i].output = of_cases ? outputs[i] : name_of_file(paths[i]);
  return files;
}

}  // namespace jigsaw::inline predict
