#include "shell_pages.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

#include "base/text.h"

namespace jigsaw {

namespace {

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  std::vector<const CLI::App*> commands;
  for (const CLI::App* command :
       app.get_subcommands([](const CLI::App* each) { return !each->get_name().empty(); }))
    commands.push_back(command);
  return commands;
}

/// Those of the app and of its groups of options, --help among them.
std::vector<const CLI::Option*> options_of(const CLI::App& app) {
  std::vector<const CLI::Option*> options;
  for (const CLI::Option* option : app.get_options()) options.push_back(option);
  for (const CLI::App* group :
       app.get_subcommands([](const CLI::App* each) { return each->get_name().empty(); }))
    for (const CLI::Option* option : group->get_options()) options.push_back(option);
  return options;
}

std::vector<std::string> flags_of(const CLI::Option& option) {
  std::vector<std::string> flags;
  for (const std::string& name : option.get_snames()) flags.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) flags.push_back("--" + name);
  return flags;
}

bool takes_value(const CLI::Option& option) {
  return option.get_items_expected_max() > 0;
}

/// The words that an option takes, where it takes some words only: "{auto,always,never}" of a validator.
std::vector<std::string> words_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t open = type.find('{'), close = type.find('}', open);
  if (open == std::string::npos || close == std::string::npos) return {};
  return split(type.substr(open + 1, close - open - 1), ',');
}

/// Flags of an app, and of the main command where the app shares its options.
std::vector<std::string> all_flags(const CLI::App& app) {
  std::vector<std::string> flags;
  const auto append = [&](const CLI::App& of) {
    for (const CLI::Option* option : options_of(of)) {
      for (const std::string& flag : flags_of(*option))
        if (std::find(flags.begin(), flags.end(), flag) == flags.end()) flags.push_back(flag);
    }
  };
  append(app);
  if (app.get_parent() != nullptr && app.get_fallthrough()) append(*app.get_parent());
  return flags;
}

/// `'` ends, an escaped one follows, and it begins again.
std::string shell_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

/// `case` branches "command:flag" to the words that the flag takes.
std::string word_cases(const CLI::App& app, const std::string& command) {
  std::string cases;
  for (const CLI::Option* option : options_of(app)) {
    const std::vector<std::string> words = words_of(*option);
    if (words.empty()) continue;
    for (const std::string& flag : flags_of(*option))
      cases += concat("    ", command, ":", flag, ") words=", shell_quoted(join(words, " ")), " ;;\n");
  }
  return cases;
}

/// In troff a leading dot or quote begins a request, a backslash an escape, and a minus is a hyphen.
std::string troff(const std::string& text) {
  std::string escaped = text.starts_with('.') || text.starts_with('\'') ? "\\&" : "";
  for (const char c : text)
    escaped += c == '\\' ? std::string("\\e") : c == '-' ? std::string("\\-") : std::string(1, c);
  return escaped;
}

std::string manual_options(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : options_of(app)) {
    std::vector<std::string> names = flags_of(*option);
    if (names.empty()) names.push_back(option->get_name());
    const std::vector<std::string> words = words_of(*option);
    const std::string value = !takes_value(*option) || flags_of(*option).empty() ? std::string()
                              : words.empty() ? std::string(" \\fIVALUE\\fR")
                                              : " " + troff(join(words, "|"));
    text += ".TP\n\\fB" + troff(join(names, ", ")) + "\\fR" + value + "\n" +
            troff(option->get_description()) + "\n";
  }
  return text;
}

}  // namespace

std::string bash_completion(const CLI::App& app) {
  std::vector<std::string> names;
  std::string flags, words = word_cases(app, "");
  for (const CLI::App* command : commands_of(app)) {
    names.push_back(command->get_name());
    flags += concat("    ", command->get_name(), ") flags=", shell_quoted(join(all_flags(*command), " ")),
                    " ;;\n");
    words += word_cases(*command, command->get_name());
    if (command->get_fallthrough()) words += word_cases(app, command->get_name());
  }
  return concat(R"(# Completion of jigsaw-train for bash; made by: jigsaw-train completion bash
_jigsaw_train() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
  local commands=)",
                shell_quoted(join(names, " ")), R"( command='' flags words='' word
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    if [[ " $commands " == *" $word "* ]]; then command=$word && break; fi
  done
  case "$command" in
)",
                flags, "    *) flags=", shell_quoted(join(all_flags(app), " ")), R"( ;;
  esac
  case "$command:$previous" in
)",
                words, R"(    *) ;;
  esac
  local found
  if [[ -n $words ]]; then
    found=$(compgen -W "$words" -- "$current")
  elif [[ $current == -* ]]; then
    found=$(compgen -W "$flags" -- "$current")
  else
    found=$(compgen -f -- "$current"; [[ -n $command ]] || compgen -W "$commands" -- "$current")
    compopt -o filenames 2> /dev/null
  fi
  COMPREPLY=()
  [[ -z $found ]] || mapfile -t COMPREPLY <<< "$found"
}
complete -F _jigsaw_train jigsaw-train
)");
}

std::string zsh_completion(const CLI::App& app) {
  // "--flag[what it does]:value:(words)" of an option; brackets and colons in its text are escaped.
  const auto specs = [](const CLI::App& of) {
    std::string text;
    for (const CLI::Option* option : options_of(of)) {
      std::string what;
      for (const char c : option->get_description())
        what += c == '[' || c == ']' || c == ':' ? std::string("\\") + c : std::string(1, c);
      const std::vector<std::string> words = words_of(*option);
      const std::string value = !takes_value(*option) ? std::string()
                                : words.empty()       ? std::string(":value:_files")
                                                      : concat(":value:(", join(words, " "), ")");
      for (const std::string& flag : flags_of(*option))
        text += " \\\n      " + shell_quoted(concat("*", flag, "[", what, "]", value));
    }
    return text;
  };
  std::string names, cases;
  for (const CLI::App* command : commands_of(app)) {
    std::string what;
    for (const char c : command->get_description()) what += c == ':' ? std::string("\\:") : std::string(1, c);
    names += "    " + shell_quoted(command->get_name() + ":" + what) + "\n";
    cases +=
        concat("    ", command->get_name(), ") _arguments", specs(*command),
               command->get_fallthrough() ? specs(app) : std::string(), " \\\n      '*:file:_files' ;;\n");
  }
  return concat("#compdef jigsaw-train\n# Made by: jigsaw-train completion zsh\nlocal -a commands=(\n", names,
                R"()
local command
for command in ${words[2,CURRENT-1]}; do
  if (( ${commands[(I)$command:*]} )); then break; fi
  command=''
done
if [[ -z $command && $PREFIX != -* ]]; then
  _describe command commands
fi
case $command in
)",
                cases, "    *) _arguments", specs(app), R"( \
      '*:file:_files' ;;
esac
)");
}

std::string manual_page(const CLI::App& app, const std::string& version) {
  std::string text = concat(".TH JIGSAW\\-TRAIN 1 \"\" \"jigsaw-train ", version, "\" \"User Commands\"\n",
                            ".SH NAME\njigsaw\\-train \\- ", troff(app.get_description()),
                            "\n.SH SYNOPSIS\n.B jigsaw\\-train\n[\\fIOPTION\\fR]... [\\fB\\-\\-config\\fR] "
                            "\\fIFILE\\fR\n.br\n.B jigsaw\\-train\n\\fICOMMAND\\fR [\\fIOPTION\\fR]...\n"
                            ".SH OPTIONS\nWithout a command it trains.\n",
                            manual_options(app), ".SH COMMANDS\n");
  for (const CLI::App* command : commands_of(app)) {
    text += concat(".SS ", troff(command->get_name()), "\n", troff(command->get_description()), ".\n",
                   manual_options(*command));
  }
  return text + R"(.SH EXIT STATUS
.TP
0
Done.
.TP
1
Internal error.
.TP
2
The command line or the configuration cannot be used.
.TP
3
The data cannot be used.
.TP
4
A checkpoint cannot be used or written.
.TP
5
The loss or a gradient is not finite.
.TP
75
Stopped early with a checkpoint; the same command goes on.
)";
}

}  // namespace jigsaw
