#include "init/first_fields.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "fields/fill_values.h"
#include "init/field_samples.h"
#include "init/value_remarks.h"
#include "times/windows.h"

namespace jigsaw::inline init {

namespace {

bool is_missing(double value) {
  return std::isnan(value);
}

enum class Change : std::uint8_t { kSome, kNone, kMissing };

/// Whether a field has one state at all sampled times. Data sets repeat what is constant (orography, land)
/// with a time. States that are missing as a whole say nothing.
Change change_of(FileSet& files, const Field& field, std::int64_t most = kMostSampled) {
  std::vector<double> first;
  double packing = 0;
  int states = 0;
  for (const Time time : sampled_times(files.times(field))) {
    const std::vector<double> values = sampled_values(files, field, time, most);
    if (std::ranges::all_of(values, is_missing)) continue;
    if (++states == 1) {
      double least = INFINITY, largest = -INFINITY;
      for (const double value : values) {
        if (value < least) least = value;
        if (value > largest) largest = value;
      }
      // Files may pack it by different scales, into some ten thousands of steps.
      packing = 1e-4 * (largest - least);
      first = values;
      continue;
    }
    const auto same = [packing](double a, double b) {
      return std::abs(a - b) <= packing || (is_missing(a) && is_missing(b));
    };
    if (!std::ranges::equal(first, values, same)) return Change::kSome;
  }
  return states == 0 ? Change::kMissing : states == 1 ? Change::kSome : Change::kNone;
}

/// A value at the last time beside which others are none, and that files have in place of missing ones.
std::optional<double> fill_in(FileSet& files, const Field& field) {
  const std::vector<double> values = sampled_values(files, field, files.times(field).back(), kFewSampled);
  const auto found = std::ranges::find_if(values, [](double value) {
    constexpr double kHides = 1e15;
    return std::abs(value) > kHides && is_usual_fill(value);
  });
  return found == values.end() ? std::nullopt : std::optional(*found);
}

/// Whether a selected constant field has one value everywhere, or none: nothing to learn from, nor to
/// normalise by.
bool is_flat(FileSet& files, const VariableSummary& variable) {
  std::vector<double> values(static_cast<std::size_t>(files.grid().shape().count()));
  files.read(Field{variable.name, {}}, variable.times.empty() ? 0 : variable.times.front(),
             Box::whole(files.grid().shape()), std::span(values));
  std::erase_if(values, is_missing);
  return std::ranges::adjacent_find(values, std::not_equal_to()) == values.end();
}

class FieldChoice {
 public:
  FieldChoice(FileSet& files, std::vector<std::string>& notices) : files_(files), notices_(notices) {}

  /// A variable that training would refuse is left out, and told.
  void add(const VariableSummary& variable) {
    if (!variable.fault.empty()) return refuse(variable.fault);
    try {
      if (variable.times.size() <= 1) {
        add_constant(variable);
      } else if (variable.levels.empty()) {
        add_changing(variable);
      } else {
        add_levels(variable);
      }
    } catch (const DataError& error) {
      refuse(error.what());
    }
  }
  FirstFields fields() const {
    FirstFields fields = fields_;
    fields.changing = choose_by_times(changing_, notices_);
    std::ranges::sort(fields.constant);
    std::ranges::sort(fields.flat);
    return fields;
  }
  const std::string& first_reason() const { return first_reason_; }

 private:
  void refuse(const std::string& why) {
    if (first_reason_.empty()) first_reason_ = why;
    notices_.push_back(concat("left out: ", why));
  }
  std::string undeclared_fill(const Field& field, double fill) {
    return concat(field.variable, " in ", files_.where(field), " has values of ", fill,
                  ", which seem to stand for missing ones and hide all others: files declare them by the ",
                  "attribute _FillValue or missing_value");
  }

  void add_constant(const VariableSummary& variable) {
    if (!variable.levels.empty()) {
      notices_.push_back(concat("left out: ", variable.name,
                                " has levels and at most one time; data.static takes it ",
                                "where its levels are named"));
      return;
    }
    take_constant(variable, [&](const Field& field, const std::string& other) {
      return concat(files_.where(field), variable.times.empty() ? " has no time" : " has one time only",
                    ", and other values in ", other,
                    ": data.static takes what is constant, and data.variables what has times");
    });
  }

  /// Some files may repeat with a time what others hold without one.
  void add_partly_timed(const VariableSummary& variable, const std::string& path) {
    take_constant(variable, [&](const Field& /*field*/, const std::string& other) {
      return concat(path, " has no time, and it changes (", other,
                    " has other values): leave the file out, or write it with its time");
    });
  }

  /// @param why  what is said of a field that is not constant, behind its name, with a file of other values.
  void take_constant(const VariableSummary& variable,
                     const std::function<std::string(const Field&, const std::string&)>& why) {
    const Field field{variable.name, {}};
    files_.select(field, false);
    if (const std::optional<std::string> other = files_.changes_in(field))
      return refuse(concat(variable.name, " in ", why(field, *other)));
    (is_flat(files_, variable) ? fields_.flat : fields_.constant).push_back(variable.name);
  }

  void add_changing(const VariableSummary& variable) {
    const Field field{variable.name, {}};
    if (const std::optional<std::string> path = files_.file_without_time(field))
      return add_partly_timed(variable, *path);
    files_.select(field, true);
    const Change change = change_of(files_, field);
    if (variable.flags && change != Change::kNone) return leave_out_flags(variable);
    switch (change) {
      case Change::kSome:
        take_changing(variable);
        break;
      case Change::kMissing:
        refuse(concat(variable.name, " in ", files_.where(field), " is missing everywhere ",
                      looked_at(files_, field)));
        break;
      case Change::kNone: {
        if (const std::optional<double> fill = fill_in(files_, field))
          return refuse(undeclared_fill(field, *fill));
        const bool flat = is_flat(files_, variable);
        notices_.push_back(concat(
            variable.name, " does not change ", looked_at(files_, field),
            flat ? ", and is the same everywhere: it is left out" : ": it is taken as constant (data.static)",
            "; name it in data.variables if it changes"));
        (flat ? fields_.flat : fields_.constant).push_back(variable.name);
        break;
      }
    }
  }

  /// Those on rows and columns that stay as they are, as where land and lakes are, say something of their
  /// places.
  void leave_out_flags(const VariableSummary& variable) {
    notices_.push_back(concat("left out: ", variable.name,
                              " holds flags, which are no quantity (flag_values, flag_masks, ",
                              "flag_meanings); data.variables takes it where it is named"));
  }

  void add_levels(VariableSummary variable) {
    if (variable.flags) return leave_out_flags(variable);
    std::vector<double> levels;
    std::map<Change, std::vector<std::string>> others;
    for (const double level : variable.levels) {
      const Field field{variable.name, level};
      files_.select(field, true);
      Change change = change_of(files_, field, kFewSampled);
      if (change != Change::kSome) change = change_of(files_, field);
      if (change == Change::kSome) {
        levels.push_back(level);
      } else {
        others[change].push_back(format_level(level));
      }
    }
    const Field first{variable.name, variable.levels.front()};
    for (const auto& [change, names] : others) {
      const bool missing = change == Change::kMissing, all = names.size() == variable.levels.size();
      refuse(concat(
          variable.name, " in ", files_.where(first),
          missing ? " is missing everywhere " : " does not change ", looked_at(files_, first),
          all                 ? ""
          : names.size() == 1 ? concat(" on the level ", names[0])
                              : concat(" on the levels ", join(names, ", ")),
          missing ? "" : "; data.static takes levels that vary in space, data.variables those that change"));
    }
    if (levels.empty()) return;
    variable.levels = std::move(levels);
    take_changing(variable);
  }

  /// With the times of its levels, which may be in files of their own.
  void take_changing(VariableSummary variable) {
    if (variable.levels.empty())
      variable.times = common_times(variable.times, files_.times({variable.name, {}}));
    for (const double level : variable.levels)
      variable.times = common_times(variable.times, files_.times({variable.name, level}));
    const Field first{variable.name,
                      variable.levels.empty() ? std::nullopt : std::optional(variable.levels.front())};
    ValueRemark remark = remark_on_values(files_, first);
    if (!remark.text.empty()) notices_.push_back(std::move(remark.text));
    if (remark.summed) fields_.summed[variable.name] = *remark.summed;
    changing_.push_back(std::move(variable));
  }

  FileSet& files_;
  std::vector<std::string>& notices_;
  FirstFields fields_;
  std::vector<VariableSummary> changing_;
  std::string first_reason_;
};

/// What the sun gives at the top of the atmosphere is known at all times: given, not predicted.
void give_what_is_known(VariablesByTimes& chosen, std::vector<std::string>& notices) {
  const auto is_known = [](const VariableSummary& variable) {
    return variable.standard_name == "toa_incoming_shortwave_flux";
  };
  if (std::ranges::all_of(chosen.predicted, is_known)) return;
  for (const VariableSummary& variable : chosen.predicted) {
    if (!is_known(variable)) continue;
    chosen.prescribed.push_back(variable);
    notices.push_back(concat(variable.name, " is the sun's radiation at the top of the atmosphere: it is ",
                             "taken as known ahead (data.forcing_variables), and not predicted"));
  }
  std::erase_if(chosen.predicted, is_known);
}

}  // namespace

FirstFields first_fields(FileSet& files, const std::string& path, const std::set<std::string>& bounds,
                         std::vector<std::string>& notices) {
  std::vector<VariableSummary> catalogue = files.catalogue();
  std::erase_if(catalogue, [&](const VariableSummary& variable) { return bounds.contains(variable.name); });
  catalogue = join_by_names(catalogue, notices);
  FieldChoice choice(files, notices);
  // Those that are predicted say which grid it is: first what will be, by its times alone.
  const auto constant =
      std::stable_partition(catalogue.begin(), catalogue.end(),
                            [](const VariableSummary& variable) { return variable.times.size() > 1; });
  std::vector<std::string> untold;
  const VariablesByTimes likely = choose_by_times({catalogue.begin(), constant}, untold);
  std::stable_partition(catalogue.begin(), constant, [&](const VariableSummary& variable) {
    return std::ranges::find(likely.predicted, variable.name, &VariableSummary::name) !=
           likely.predicted.end();
  });
  for (const VariableSummary& variable : catalogue) choice.add(variable);
  FirstFields fields = choice.fields();
  give_what_is_known(fields.changing, notices);
  for (const VariableSummary& variable : catalogue)
    if (variable.standard_name == "cell_area") fields.areas.insert(variable.name);
  if (fields.changing.predicted.empty()) {
    throw DataError(choice.first_reason().empty() ? concat(path, ": no variable changes in time")
                                                  : choice.first_reason());
  }
  return fields;
}

}  // namespace jigsaw::inline init
