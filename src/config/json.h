#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

// Compiled once, in json.cpp.
extern template class nlohmann::basic_json<nlohmann::ordered_map>;
extern template class nlohmann::detail::serializer<nlohmann::ordered_json>;

namespace jigsaw::inline config {

/// JSON whose objects keep the order in which their keys were written.
using Json = nlohmann::ordered_json;

/// Objects and lists may be nested this deep; what is deeper is refused, so that no input exhausts the stack.
inline constexpr int kMaxJsonDepth = 100;

/// The JSON value of a text, in which // and /* */ comments are allowed.
///
/// @param source  names the text in errors: a file or an option of the command line.
/// @throws ConfigError  with line and column when the text is malformed; when an object gives a key
///                      twice; when it is nested deeper than kMaxJsonDepth.
Json parse_json(std::string_view text, const std::string& source);

/// The object in a configuration file, by parse_json().
/// @param what  the file is, where it is no configuration, for errors: "machine".
/// @throws ConfigError  also when the file cannot be read, is larger than 16 MiB or holds no object.
Json load_config(const std::string& path, const std::string& what = "configuration");

/// What is wrong, without the number that the library gives each kind of error.
std::string sentence_of(const Json::exception& error);

/// A value as error messages name it: `the string "ten"`, `the number 6.5`, `a list of 3`, `null`.
/// Long strings are cut.
std::string describe(const Json& json);

/// A text in quotes, escaped and cut, so that it stands in one line: "a\nb".
std::string quote(std::string_view text);

/// The parts of a dotted path: both `groups.0.match` and `groups[0].match` are {"groups", "0", "match"}.
std::vector<std::string> split_path(std::string_view path);

}  // namespace jigsaw::inline config
