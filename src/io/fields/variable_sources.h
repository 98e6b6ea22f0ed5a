#pragma once
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fields/data_options.h"

namespace jigsaw::inline fields {

/// Where the variables of forecasts stand: in all of data.files under their names, or in files of their own
/// or under another name.
struct VariableSources {
  struct Source {
    std::string name;               ///< in the files; "": the variable's
    std::set<std::string> paths;    ///< those that hold it; empty: data.files
    bool absent = false;            ///< none does
    std::optional<Time> lead = {};  ///< VariableOptions::lead

    bool operator==(const Source&) const = default;
  };

  std::map<std::string, Source> variables;  ///< those of which it is not said by data.files alone
  std::set<std::string> names;              ///< all variables that are read
  std::set<std::string> own_files;          ///< that are none of data.files

  /// Whether a file may hold a variable. @param path  as of the files.
  bool may_hold(const std::string& path, const std::string& variable) const;
  /// The variable's name in files.
  const std::string& name_of(const std::string& variable) const;
  /// The lead of the forecasts that are its states; nothing where its files hold states.
  std::optional<Time> lead_of(const std::string& variable) const;
  /// Null where all is said by data.files.
  Json to_json() const;
};

/// @param expand  the files that patterns name.
/// @param paths   gets all files, those of data.files first, each once.
/// @param targets_needed  else there may be no file of a diagnostic variable.
VariableSources sources_of(
    const DataOptions& options,
    const std::function<std::vector<std::string>(const std::vector<std::string>&)>& expand,
    std::vector<std::string>& paths, bool targets_needed = true);

}  // namespace jigsaw::inline fields
