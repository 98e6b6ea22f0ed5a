#pragma once
#include "config/tagged.h"
#include "samples/channels.h"
#include "task/class_loss.h"

namespace jigsaw::inline task {

/// The losses that configurations may name, with their keys: each is a sum of terms, "sum" of several. A new
/// one between numbers or of class sums is a line in loss_types.cpp.
const TagRegistry& loss_types();

/// What a loss between numbers is a sum of.
/// @throws ConfigError  when it compares class probabilities with labels.
FieldLossOptions field_loss_options(const Tagged& loss);
/// The same with the weight of every target: that of its name in variable_weights, else of its variable, else
/// 1; by pressure, times the level over the mean level of the variable's targets.
FieldLossOptions field_loss_options(const Tagged& loss, const std::vector<Channel>& targets);
/// Whether a loss has a term of some weight that compares the members of an ensemble.
bool has_crps(const Tagged& loss);
/// The same as field_loss_options(loss, targets) of images, which have no members.
/// @throws ConfigError  for one that compares them, too.
FieldLossOptions image_loss_options(const Tagged& loss, const std::vector<Channel>& targets);
/// What a loss of classes is. @throws ConfigError  when it compares numbers.
/// @param regions  whether it is of data.regions, which have neither weights nor a background.
ClassLossOptions class_loss_options(const Tagged& loss, bool regions = false);

}  // namespace jigsaw::inline task
