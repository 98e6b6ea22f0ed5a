#pragma once
#include <string>
#include <vector>

#include "config/form.h"
#include "samples/data_options.h"

namespace jigsaw::inline samples {

// How values of the section `data` are written in a configuration.

/// A level as a number, or a pressure with its unit, which becomes a number of hPa.
FormPtr<double> level_form();
/// Variables by name, or as sections with levels.
FormPtr<std::vector<VariableOptions>> variables_form();
/// A pair of dates, or slices of images.
FormPtr<DataPart> part_form();
/// @param why_sample  what the dimension "sample" is, for docs.
FormPtr<ImageDim> dim_form(const std::string& why_sample);

}  // namespace jigsaw::inline samples
