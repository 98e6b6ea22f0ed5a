#include "predict/forecast_stop.h"

#include <array>

#include "base/file_kind.h"
#include "base/text.h"
#include "files/netcdf_text.h"
#include "predict/place_table.h"

namespace jigsaw::inline predict {

namespace {

/// So comments begin of forecasts that a signal ended.
constexpr const char* kStopped = "predict was stopped early";

/// " of the forecasts from A on", where others are whole.
std::string of_the_last(const ForecastsMade& made, const std::vector<std::string>& starts) {
  return made.whole == 0
             ? ""
             : concat(" of the forecasts from ", starts[static_cast<std::size_t>(made.whole)], " on");
}

/// Of the batch that was stopped.
std::string options_of_rest(const ForecastsMade& made, const WrittenLeads& leads,
                            const std::vector<std::string>& starts, const std::string& output) {
  std::string options = concat("--continue ", shell_word(output), " --steps ", leads.last - made.step);
  if (const std::string option = leads.option(); !option.empty()) options += " " + option;
  if (made.whole == 0) return options;  // all states are of one step
  options += " --start";
  for (std::int64_t i = made.whole; i < made.states; ++i)
    options += " " + starts[static_cast<std::size_t>(i)];
  return options;
}

}  // namespace

bool stop_is_asked(const std::atomic<int>* stop, Communicator& world) {
  if (stop == nullptr) return false;
  const double asked = stop->load() != 0 ? 1 : 0;
  return world.all_reduce(std::array{asked}, ReduceOp::kMax)[0] > 0;
}

bool is_cut_short(const std::string& path, std::int64_t lines) {
  try {
    if (is_table_name(path)) return lines_in_table(path) < lines;
    return text_of_netcdf(path, "comment").starts_with(kStopped);
  } catch (const Error& error) {
    throw ConfigError(concat("command line: --output ", path,
                             " is there, and no forecast that --skip-existing could leave alone: ",
                             error.what(), "; name another file, or remove that one first"));
  }
}

std::string stop_comment(const ForecastsMade& made, const WrittenLeads& leads,
                         const std::vector<std::string>& starts) {
  std::string comment =
      made.outside ? "predict ended early, for states left what the model was trained on (--stop-outside)"
                   : kStopped;
  if (made.starts > made.whole)
    comment += concat(", behind step ", made.step, " of ", leads.last, of_the_last(made, starts));
  if (made.whole > 0)
    comment += made.starts > made.whole ? "; those before are whole" : "; all that is here is whole";
  if (made.starts < std::ssize(starts))
    comment +=
        concat("; the forecasts from ", starts[static_cast<std::size_t>(made.starts)], " on were not made");
  return comment;
}

std::string stop_sentence(const ForecastsMade& made, const WrittenLeads& leads,
                          const std::vector<std::string>& starts, const std::string& output, bool there) {
  std::string sentence = made.outside ? "ended by --stop-outside" : "stopped early";
  if (made.step < leads.last)
    sentence += concat(" behind step ", made.step, " of ", leads.last, of_the_last(made, starts));
  if (made.starts == 0) {
    return concat(
        sentence, ": no lead was whole by then, and ",
        there ? concat(output, " still is the file that was there before") : concat("there is no ", output));
  }
  sentence += concat(": ", output, " holds ", made.starts, " of ", counted(std::ssize(starts), "forecast"));
  if (made.starts < std::ssize(starts))
    sentence += concat("; those from ", starts[static_cast<std::size_t>(made.starts)], " on are not in it");
  if (made.step == leads.last) return sentence;
  const bool goes_on = made.kept && made.states > made.whole;
  if (goes_on && leads.count() > leads.count_until(made.step)) {
    sentence += concat("; the rest of those from ", starts[static_cast<std::size_t>(made.whole)],
                       made.states > made.whole + 1
                           ? concat(" to ", starts[static_cast<std::size_t>(made.states - 1)])
                           : std::string(),
                       " is made with ", options_of_rest(made, leads, starts, output));
  } else if (!goes_on && made.starts > made.whole) {
    sentence += "; the last of them are not whole, and no state was kept to go on from";
  }
  return sentence;
}

}  // namespace jigsaw::inline predict
