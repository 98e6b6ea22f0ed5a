#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace jigsaw::inline files {

/// The files, and folders that are Zarr stores, that the patterns (`*`, `?`; all other characters are plain)
/// name, sorted, each once: links to a file that is named, too, are that file, and links of one name to one
/// file are one. A file whose name is the pattern itself is taken as it is. A relative pattern is tried in
/// `folder`, then in the working folder.
/// @throws DataError  when a pattern matches nothing, or folders alone; the message names it and where was
/// looked, or what to do with the folder.
std::vector<std::string> expand_patterns(const std::vector<std::string>& patterns,
                                         const std::filesystem::path& folder);

}  // namespace jigsaw::inline files
