#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "fields/data_options.h"

namespace jigsaw::inline predict {

/// Of several images that are to be predicted, leaves out of data.files those whose file cannot be opened,
/// and of variables with files of their own those that stand beside them: so many files in the same order.
/// All stay where none can be opened, or files of variables are of another number. Collective.
/// @return  a sentence for each that is left out. @throws DataError  of patterns that name no file
std::vector<std::string> leave_out_unreadable(DataOptions& data, const std::filesystem::path& folder,
                                              Communicator& world);

}  // namespace jigsaw::inline predict
