#include "fields/variable_sources.h"

#include "base/error.h"

namespace jigsaw::inline fields {

bool VariableSources::may_hold(const std::string& path, const std::string& variable) const {
  const auto source = variables.find(variable);
  if (source == variables.end()) return !own_files.contains(path);
  const Source& of = source->second;
  return !of.absent && (of.paths.empty() ? !own_files.contains(path) : of.paths.contains(path));
}

const std::string& VariableSources::name_of(const std::string& variable) const {
  const auto source = variables.find(variable);
  return source == variables.end() || source->second.name.empty() ? variable : source->second.name;
}

std::optional<Time> VariableSources::lead_of(const std::string& variable) const {
  const auto source = variables.find(variable);
  return source == variables.end() ? std::nullopt : source->second.lead;
}

Json VariableSources::to_json() const {
  Json json;
  for (const auto& [variable, source] : variables) {
    json[variable] = {source.name, source.paths};
    if (source.lead) json[variable].push_back(*source.lead);
  }
  return json;
}

VariableSources sources_of(
    const DataOptions& options,
    const std::function<std::vector<std::string>(const std::vector<std::string>&)>& expand,
    std::vector<std::string>& paths, bool targets_needed) {
  VariableSources sources;
  paths = expand(options.files);
  const std::set<std::string> common(paths.begin(), paths.end());
  std::map<std::vector<std::string>, std::set<std::string>> expanded;  // by patterns
  for (const auto* variables :
       {&options.variables, &options.diagnostic, &options.constants, &options.forcing_variables}) {
    for (const VariableOptions& variable : *variables) {
      sources.names.insert(variable.name);
      if (variable.files.empty() && variable.data_set.empty() && !variable.lead) continue;
      VariableSources::Source& source = sources.variables[variable.name];
      source.name = variable.data_set;
      source.lead = variable.lead;
      if (variable.files.empty()) continue;
      if (!expanded.contains(variable.files)) {
        std::vector<std::string> own;
        try {
          own = expand(variable.files);
        } catch (const Error&) {
          if (targets_needed || variables != &options.diagnostic) throw;
          source.absent = true;
          continue;
        }
        expanded[variable.files] = {own.begin(), own.end()};
        for (const std::string& path : own)
          if (!common.contains(path) && sources.own_files.insert(path).second) paths.push_back(path);
      }
      source.paths = expanded[variable.files];
    }
  }
  return sources;
}

}  // namespace jigsaw::inline fields
