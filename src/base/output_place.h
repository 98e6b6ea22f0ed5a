#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace jigsaw::inline base {

/// A file that an option names for output is new, or takes the place of an earlier one of its kind: of other
/// files that are there none is replaced. Links are, and what they lead to stays.
///
/// @param option    "--trace", for the message.
/// @param is_not    what is said of another file: "is no trace".
/// @param is_alike  whether the file at the path is of this kind; an Error says that it is not.
/// @throws ConfigError
void check_output_place(const std::string& option, const std::string& path, const std::string& is_not,
                        const std::function<bool(const std::string& path)>& is_alike);

/// Braces in the name of an output, not in those of its folders, stand around the names of placeholders
/// alone, "fc_{start}.nc".
/// @param option  "--output", for the message. @param known  which placeholders there are: "start".
/// @throws ConfigError  for another one, with those that there are, and for a brace without its other one.
void check_placeholders(const std::string& option, const std::string& path,
                        const std::vector<std::string>& known);

/// Whether a file begins with this text. @throws FileError  when it cannot be read.
bool begins_with(const std::string& path, std::string_view text);

}  // namespace jigsaw::inline base
