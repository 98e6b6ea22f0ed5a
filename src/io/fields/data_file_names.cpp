// Which variable of a file a field is: by its name, its group or kind of level, as a channel, by
// standard_name.
#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "fields/data_file.h"
#include "fields/variable_names.h"
#include "files/value_kinds.h"

namespace jigsaw::inline fields {

namespace {

/// Whether a variable of GRIB messages is of a kind of level, or of it and of step: "isobaricInhPa",
/// "surface_accum".
bool is_of_kind(const FileVariable& variable, const std::string& kind) {
  const std::string level = variable.text(kTypeOfLevel);
  return !level.empty() && (kind == level || kind == concat(level, "_", variable.text(kStepType)));
}

}  // namespace

std::optional<FieldPlace> DataFile::find(const Field& field) {
  if (const auto place = find_by_name(field)) return place;
  if (const auto place = find_channel(field)) return place;
  if (const auto place = find_standard_name(field)) return place;
  for (const std::string& name : other_names(field.variable)) {
    const auto place = find_by_name({name, field.level});
    if (!place) continue;
    // One that cannot be read says why when it is asked for.
    const FileVariable& variable = *place->variable;
    if (!variable.fault.empty() || (variable.numeric() && axes(variable).horizontal())) return place;
  }
  return std::nullopt;
}

/// The variable of this name, else the one in some group, else the one of the kind of level before its name.
std::optional<FieldPlace> DataFile::find_by_name(const Field& field) {
  if (const FileVariable* variable = file_->find(field.variable)) return FieldPlace{variable};
  const std::string name = without_groups(field.variable);
  const std::string group = field.variable.substr(0, field.variable.size() - name.size());
  std::vector<const FileVariable*> found;
  for (const FileVariable& variable : file_->variables()) {
    if (without_groups(variable.name) != name) continue;
    if (group.empty() || is_of_kind(variable, group.substr(0, group.size() - 1))) found.push_back(&variable);
  }
  if (found.empty()) return std::nullopt;
  return FieldPlace{found.size() == 1 ? found.front() : &one_of_groups(field, found)};
}

/// Of several variables of one name that which has the level, or levels, or none where none is asked for.
const FileVariable& DataFile::one_of_groups(const Field& field,
                                            const std::vector<const FileVariable*>& candidates) {
  for (const bool this_level : {true, false}) {
    std::vector<const FileVariable*> fit;
    for (const FileVariable* const candidate : candidates)
      if (has_level(*candidate, field.level, this_level)) fit.push_back(candidate);
    if (fit.size() == 1) return *fit.front();
    if (fit.size() > 1) break;
  }
  throw DataError(concat(field.variable, " is in several groups of ", file_->path(), "; say which, as \"",
                         candidates[0]->name, "\" or \"", candidates[1]->name, "\""));
}

/// Whether a variable has levels where one is asked for, or none where none is.
/// @param this_level  and that one is among them.
bool DataFile::has_level(const FileVariable& variable, const std::optional<double>& level, bool this_level) {
  if (!variable.numeric()) return false;
  const int axis = axes(variable).level;
  const bool has_levels = axis >= 0 && !at_one_height(variable);
  if (!level) return !has_levels;
  std::vector<double> levels;
  if (has_levels) {
    const std::string& along = variable.dimensions[static_cast<std::size_t>(axis)];
    if (coordinate_of(*file_, along) != nullptr) levels = coordinates(along);
  } else if (const std::optional<double> scalar = level_of(variable)) {
    levels = {*scalar};
  }
  const auto wanted = [&](double one) { return same_level(one, *level); };
  return this_level ? std::ranges::any_of(levels, wanted) : !levels.empty();
}

/// "t2m", and of levels "t850" and "t_850".
std::optional<FieldPlace> DataFile::find_channel(const Field& field) {
  std::vector<std::string> wanted = {field.name()};
  if (field.level) wanted.push_back(field.variable + format_level(*field.level));
  if (!field.level)
    wanted.insert(wanted.end(), other_names(field.variable).begin(), other_names(field.variable).end());
  for (const FileVariable& variable : file_->variables()) {
    const int axis = variable.numeric() ? axes(variable).channel : -1;
    if (axis < 0) continue;
    const std::vector<std::string>& channels = names(variable.dimensions[static_cast<std::size_t>(axis)]);
    for (const std::string& name : wanted) {
      const auto found = std::find(channels.begin(), channels.end(), name);
      if (found != channels.end()) return FieldPlace{&variable, found - channels.begin()};
    }
  }
  return std::nullopt;
}

std::optional<FieldPlace> DataFile::find_standard_name(const Field& field) {
  std::vector<const FileVariable*> found;
  std::vector<std::string> names;
  for (const FileVariable& variable : file_->variables()) {
    if (!variable.numeric() || variable.text("standard_name") != field.variable) continue;
    const FieldAxes here = axes(variable);
    const std::optional<double> scalar = field.level ? level_of(variable) : std::nullopt;
    const bool has_levels =
        here.level >= 0 ? !at_one_height(variable) : scalar && same_level(*scalar, *field.level);
    if (!here.horizontal() || has_levels != field.level.has_value()) continue;
    found.push_back(&variable);
    names.push_back(variable.name);
  }
  if (found.size() > 1) {
    throw DataError(concat("several fields of ", file_->path(), " have the standard_name ", field.variable,
                           ": ", join(names, ", "), "; say which by its name"));
  }
  return found.empty() ? std::nullopt : std::optional(FieldPlace{found[0]});
}

}  // namespace jigsaw::inline fields
