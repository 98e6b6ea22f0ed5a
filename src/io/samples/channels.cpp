#include "samples/channels.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "fields/variable_names.h"

namespace jigsaw::inline samples {

namespace {

std::vector<Field> expand(const std::vector<VariableOptions>& variables) {
  std::vector<Field> fields;
  for (const VariableOptions& variable : variables) {
    if (variable.levels.empty()) fields.push_back({variable.name, std::nullopt});
    for (const double level : variable.levels) fields.push_back({variable.name, level});
  }
  return fields;
}

void append(std::vector<Channel>& channels, const std::vector<Field>& fields, Role role, Time offset) {
  for (const Field& field : fields) channels.push_back({field.name(), role, field, {}, offset, false, false});
}

void set_values_of(std::vector<Channel>& channels, const DataOptions& options) {
  for (Channel& channel : channels) {
    if (channel.role == Role::kForcing || channel.mask) continue;
    channel.transform = options.transform_of(channel.field);
    channel.range = options.range_of(channel.field);
    channel.fill = options.fill_of(channel.field);
  }
}

/// By which keys may name a channel, each once.
void append_names(std::vector<std::string>& names, const Channel& channel) {
  for (const std::string& name : {channel.field.variable, channel.name})
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
}

void require_known(const char* key, const std::string& name, const std::vector<std::string>& known,
                   const char* what) {
  if (std::ranges::find(known, name) != known.end()) return;
  throw ConfigError(concat(key, " names ", name, ", which is no ", what, did_you_mean(name, known),
                           "; known: ", join(known, ", ")));
}

void mark_vector_components(std::vector<Channel>& channels, const DataOptions& options) {
  for (Channel& channel : channels) {
    const std::string& variable = channel.field.variable;
    channel.vector_component =
        !channel.mask && (options.vector_components ? std::find(options.vector_components->begin(),
                                                                options.vector_components->end(),
                                                                variable) != options.vector_components->end()
                                                    : is_vector_component(variable));
  }
}

void append_forcing(std::vector<Channel>& channels, Forcing forcing, Time offset) {
  channels.push_back({name(forcing), Role::kForcing, {}, forcing, offset, false, false});
}

/// Of what is known ahead: at time 0 and at the first target.
std::vector<Time> times_given(const DataOptions& options) {
  return options.of_same_time() ? std::vector<Time>{0} : std::vector<Time>{0, options.lead_time};
}

void append_forcings(std::vector<Channel>& channels, const DataOptions& options, bool periodic) {
  for (const ForcingKind kind : options.forcings) {
    switch (kind) {
      case ForcingKind::kLatitude:
        append_forcing(channels, Forcing::kLatitude, 0);
        break;
      case ForcingKind::kLongitude:
        if (periodic) {
          append_forcing(channels, Forcing::kCosLongitude, 0);
          append_forcing(channels, Forcing::kSinLongitude, 0);
        } else {
          append_forcing(channels, Forcing::kLongitude, 0);
        }
        break;
      case ForcingKind::kSinCosLatitude:
        append_forcing(channels, Forcing::kSinLatitude, 0);
        append_forcing(channels, Forcing::kCosLatitude, 0);
        break;
      case ForcingKind::kSinCosLongitude:
        append_forcing(channels, Forcing::kSinLongitude, 0);
        append_forcing(channels, Forcing::kCosLongitude, 0);
        break;
      case ForcingKind::kCosZenithAngle:
        for (const Time offset : times_given(options))
          append_forcing(channels, Forcing::kCosZenithAngle, offset);
        break;
      case ForcingKind::kInsolation:
        for (const Time offset : times_given(options)) append_forcing(channels, Forcing::kInsolation, offset);
        break;
      case ForcingKind::kLocalSolarTime:
        for (const Time offset : times_given(options)) {
          append_forcing(channels, Forcing::kSinLocalTime, offset);
          append_forcing(channels, Forcing::kCosLocalTime, offset);
        }
        break;
      case ForcingKind::kTimeOfDay:
        for (const Time offset : times_given(options)) {
          append_forcing(channels, Forcing::kSinTimeOfDay, offset);
          append_forcing(channels, Forcing::kCosTimeOfDay, offset);
        }
        break;
      case ForcingKind::kDayOfYear:
        append_forcing(channels, Forcing::kSinDayOfYear, 0);
        append_forcing(channels, Forcing::kCosDayOfYear, 0);
        break;
    }
  }
}

/// For each field of these variables one channel, whatever times it is an input of.
void append_masks(std::vector<Channel>& channels, const std::vector<std::string>& variables) {
  std::vector<Channel> masks;
  for (const std::string& variable : variables) {
    for (const Channel& channel : channels) {
      if (channel.role == Role::kForcing || channel.field.variable != variable || channel.offset != 0)
        continue;
      masks.push_back({channel.name + "_mask", Role::kStatic, channel.field, {}, 0, true, false});
    }
  }
  channels.insert(channels.end(), masks.begin(), masks.end());
}

}  // namespace

Channels make_channels(const DataOptions& options, bool periodic) {
  const std::vector<Field> prognostic = expand(options.variables), diagnostic = expand(options.diagnostic);
  const std::vector<Field> constants = expand(options.constants),
                           prescribed = expand(options.forcing_variables);
  std::set<Field> seen;
  for (const auto& [key, fields] :
       {std::pair{"data.variables", &prognostic}, std::pair{"data.diagnostic", &diagnostic},
        std::pair{"data.static", &constants}, std::pair{"data.forcing_variables", &prescribed}}) {
    for (const Field& field : *fields) {
      if (!seen.insert(field).second) {
        throw ConfigError(
            concat(key, " names ", field.name(), ", which is named before; each field has one role"));
      }
    }
  }
  Channels channels;
  for (const Time offset : options.input_times)
    append(channels.inputs, prognostic, Role::kPrognostic, offset);
  append(channels.inputs, constants, Role::kStatic, 0);
  for (const Time offset : times_given(options))
    append(channels.inputs, prescribed, Role::kPrescribed, offset);
  append_forcings(channels.inputs, options, periodic);
  append_masks(channels.inputs, options.masks);
  if (!options.of_same_time()) append(channels.targets, prognostic, Role::kPrognostic, options.lead_time);
  append(channels.targets, diagnostic, Role::kDiagnostic, options.lead_time);
  mark_vector_components(channels.inputs, options);
  set_values(channels, options);
  return channels;
}

void set_values(Channels& channels, const DataOptions& options) {
  set_values_of(channels.inputs, options);
  if (options.classes == 0) set_values_of(channels.targets, options);
}

void set_known_values(Channels& channels, const DataOptions& options) {
  std::vector<std::string> targets, all;
  for (const Channel& channel : channels.inputs) append_names(all, channel);
  for (const Channel& channel : channels.targets) {
    append_names(targets, channel);
    if (options.classes == 0) append_names(all, channel);
  }
  for (const auto& entry : options.transforms)
    require_known("data.transforms", entry.first, all, "variable or channel");
  for (const auto& entry : options.clamp) require_known("data.clamp", entry.first, targets, "target");
  set_values(channels, options);
}

bool looks_global(const std::vector<std::int64_t>& shape) {
  return shape.size() == 2 && (shape[0] * 2 == shape[1] || (shape[0] - 1) * 2 == shape[1]);
}

bool given_at_leads(const Channels& channels, bool rim) {
  return rim || std::any_of(channels.inputs.begin(), channels.inputs.end(), [](const Channel& channel) {
           return channel.role == Role::kForcing || (channel.role == Role::kPrescribed && !channel.mask);
         });
}

std::vector<Field> fields_of(const std::vector<Channel>& channels, Role role) {
  std::vector<Field> fields;
  for (const Channel& channel : channels) {
    const bool known = std::find(fields.begin(), fields.end(), channel.field) != fields.end();
    if (channel.role == role && !channel.mask && !known) fields.push_back(channel.field);
  }
  return fields;
}

std::vector<Field> fields_in_time(const Channels& channels) {
  std::vector<Field> fields;
  for (const Channel& target : channels.targets) fields.push_back(target.field);
  for (const Role role : {Role::kPrognostic, Role::kPrescribed}) {
    for (const Field& field : fields_of(channels.inputs, role))
      if (std::ranges::find(fields, field) == fields.end()) fields.push_back(field);
  }
  return fields;
}

}  // namespace jigsaw::inline samples
