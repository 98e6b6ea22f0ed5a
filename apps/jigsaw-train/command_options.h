#pragma once
#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace jigsaw {

/// An option that was declared, and what its value must be. What it refuses is an error of the command line,
/// in CLI11's words.
class CommandOption {
 public:
  explicit CommandOption(CLI::Option& option) : option_(&option) {}

  CommandOption& required();
  CommandOption& not_empty();  ///< an empty name of a file is a variable that a script forgot to set
  CommandOption& within(int low, int high);
  CommandOption& within(double low, double high);
  CommandOption& positive();
  CommandOption& not_negative();
  CommandOption& one_of(const std::vector<std::string>& words);
  CommandOption& expected(int least, int most);  ///< so many values
  CommandOption& one_at_a_time();                ///< one value each time that the option stands there
  CommandOption& excludes(const CommandOption& other);
  /// @param check  what is wrong with a value; empty: nothing
  CommandOption& checked(const std::function<std::string(const std::string&)>& check);

 private:
  CLI::Option* option_;
};

/// What a command declares its options to: as much of CLI11 as commands need, so that they do not compile its
/// headers.
class CommandOptions {
 public:
  explicit CommandOptions(CLI::App& app) : app_(&app) {}

  /// @param names  as CLI11 takes them: "-c,--config,configuration"; one without dashes goes by its place
  /// @param value  written when the line is parsed. T is one of those that command_options.cpp instantiates.
  template <typename T>
  CommandOption add_option(const std::string& names, T& value, const std::string& help) const;
  void add_flag(const std::string& names, bool& value, const std::string& help) const;
  /// Options of which at most one may be given.
  CommandOptions add_choice(const std::string& title) const;
  /// The options of the main command may stand behind this one's.
  void fallthrough() const;
  /// The parser of all commands, once this one belongs to it.
  const CLI::App& parent() const;

 private:
  CLI::App* app_;
};

}  // namespace jigsaw
