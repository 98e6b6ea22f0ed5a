#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "fields/data_options.h"

namespace jigsaw::inline predict {

/// Of several images that are to be predicted, leaves out of data.files those whose file cannot be opened
/// or read to its end, and of variables with files of their own those that belong to them: so many files. All
/// stay where none can be read, or files of variables are of another number. Collective.
/// @return  a sentence for each that is left out. @throws DataError  of patterns that name no file
std::vector<std::string> leave_out_unreadable(DataOptions& data, const std::filesystem::path& folder,
                                              Communicator& world);

}  // namespace jigsaw::inline predict
