#pragma once
#include <optional>
#include <string>

#include "fields/file_set.h"

namespace jigsaw::inline init {

struct ValueRemark {
  std::string text;                   ///< "" says nothing
  std::optional<SummedSince> summed;  ///< what data.deaccumulate has to say of the variable
};

/// What a sample of the values of a selected field, which changes in time, lets one say to who is to train on
/// it: that it is 0 at the same points always, as on land; that it is a running sum; that it has ends which
/// predictions are to keep.
ValueRemark remark_on_values(FileSet& files, const Field& field);

}  // namespace jigsaw::inline init
