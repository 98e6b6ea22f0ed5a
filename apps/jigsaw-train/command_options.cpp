#include "command_options.h"

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>

#include "base/text.h"

namespace jigsaw {

namespace {

/// Not CLI11's own, which shows the largest number that there is in full.
CLI::Validator number_that(const std::function<bool(double)>& holds, const std::string& is,
                           const std::string& name) {
  return {[holds, is](const std::string& text) {
            double number = 0;
            const bool good = CLI::detail::lexical_cast(text, number) && holds(number);
            return good ? std::string() : "must be a number " + is + ", not " + text;
          },
          name};
}

}  // namespace

CommandOption& CommandOption::required() {
  option_->required();
  return *this;
}

CommandOption& CommandOption::not_empty() {
  return checked([](const std::string& text) { return text.empty() ? "must not be empty" : ""; });
}

CommandOption& CommandOption::within(int low, int high) {
  option_->check(CLI::Range(low, high));
  return *this;
}

CommandOption& CommandOption::within(double low, double high) {
  const std::string range = concat(low, " to ", high);
  option_->check(number_that([=](double number) { return low <= number && number <= high; }, "from " + range,
                             concat("in [", range, "]")));
  return *this;
}

CommandOption& CommandOption::positive() {
  option_->check(number_that([](double number) { return number > 0; }, "above 0", "POSITIVE"));
  return *this;
}

CommandOption& CommandOption::not_negative() {
  option_->check(number_that([](double number) { return number >= 0; }, "of at least 0", "NONNEGATIVE"));
  return *this;
}

CommandOption& CommandOption::one_of(const std::vector<std::string>& words) {
  option_->check(CLI::IsMember(words));
  return *this;
}

CommandOption& CommandOption::expected(int least, int most) {
  option_->expected(least, most);
  return *this;
}

CommandOption& CommandOption::one_at_a_time() {
  option_->take_all()->allow_extra_args(false);
  return *this;
}

CommandOption& CommandOption::excludes(const CommandOption& other) {
  option_->excludes(other.option_);
  return *this;
}

CommandOption& CommandOption::checked(const std::function<std::string(const std::string&)>& check) {
  option_->check(check);
  return *this;
}

template <typename T>
CommandOption CommandOptions::add_option(const std::string& names, T& value, const std::string& help) const {
  return CommandOption(*app_->add_option(names, value, help));
}

template CommandOption CommandOptions::add_option(const std::string&, std::string&, const std::string&) const;
template CommandOption CommandOptions::add_option(const std::string&, int&, const std::string&) const;
template CommandOption CommandOptions::add_option(const std::string&, std::uint64_t&,
                                                  const std::string&) const;
template CommandOption CommandOptions::add_option(const std::string&, double&, const std::string&) const;
template CommandOption CommandOptions::add_option(const std::string&, std::optional<std::int64_t>&,
                                                  const std::string&) const;
template CommandOption CommandOptions::add_option(const std::string&, std::optional<double>&,
                                                  const std::string&) const;
template CommandOption CommandOptions::add_option(const std::string&, std::vector<std::string>&,
                                                  const std::string&) const;
template CommandOption CommandOptions::add_option(const std::string&, std::vector<int>&,
                                                  const std::string&) const;
template CommandOption CommandOptions::add_option(const std::string&, std::vector<double>&,
                                                  const std::string&) const;

void CommandOptions::add_flag(const std::string& names, bool& value, const std::string& help) const {
  app_->add_flag(names, value, help);
}

CommandOptions CommandOptions::add_choice(const std::string& title) const {
  CLI::App* const choice = app_->add_option_group(title);
  choice->require_option(0, 1);
  return CommandOptions(*choice);
}

void CommandOptions::fallthrough() const {
  app_->fallthrough();
}

const CLI::App& CommandOptions::parent() const {
  return *app_->get_parent();
}

}  // namespace jigsaw
