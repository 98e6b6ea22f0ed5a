#pragma once
#include <string>

#include "fields/file_set.h"

namespace jigsaw::inline init {

/// What a sample of the values of a selected field, which changes in time, lets one say to who is to train on
/// it: that it is 0 at the same points always, as on land; that it is summed up since a fixed hour; that it
/// has ends which predictions are to keep; "" says nothing.
std::string remark_on_values(FileSet& files, const Field& field);

}  // namespace jigsaw::inline init
