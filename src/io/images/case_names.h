#pragma once
#include <string>
#include <vector>

namespace jigsaw::inline images {

/// What the files of a variable are called as cases, each differently: what the wildcards of the pattern that
/// names a file stand for before the ending of its format, several joined by _ and equal ones once. Where one
/// was named without wildcards, or two would have one name, the names of the files less what all begin and
/// end with, or else their paths less the folders and names that all have. Numbers stay whole, and a
/// channel's number that all end with, _0000 to _0099, is left out.
/// @param paths  as expand_patterns() gives them for `patterns`.
std::vector<std::string> case_names(const std::vector<std::string>& paths,
                                    const std::vector<std::string>& patterns);

/// The names of the files, without their folders, the endings of their format and a channel's number that all
/// end with.
std::vector<std::string> file_stems(const std::vector<std::string>& paths);

/// A file's name, without its folder and the ending of its format.
std::string name_of_file(const std::string& path);

/// "a, b, c and 2 more".
std::string first_of(const std::vector<std::string>& names);

}  // namespace jigsaw::inline images
