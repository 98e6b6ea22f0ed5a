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
/// And so the sources of all of them.
constexpr const char* kProgram = "jigsaw-train";

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

/// How the batch that was stopped goes on, where leads of it are left, or that it cannot.
std::string sentence_of_rest(const ForecastsMade& made, const WrittenLeads& leads,
                             const std::vector<std::string>& starts, const std::string& output) {
  const auto start = [&](std::int64_t number) { return starts[static_cast<std::size_t>(number)]; };
  if (leads.count() == leads.count_until(made.step)) return "";
  if (!made.kept || made.states == made.whole) {
    if (made.starts == made.whole) return "";
    return concat("; ", starts.size() > 1 ? "the last of them are not whole, and " : "",
                  "no state was kept to go on from");
  }
  return concat("; the rest of those from ", start(made.whole),
                made.states > made.whole + 1 ? " to " + start(made.states - 1) : "",
                " is made with another --output and ", options_of_rest(made, leads, starts, output));
}

}  // namespace

bool stop_is_asked(const std::atomic<int>* stop, Communicator& world) {
  if (stop == nullptr) return false;
  const double asked = stop->load() != 0 ? 1 : 0;
  return world.all_reduce(std::array{asked}, ReduceOp::kMax)[0] > 0;
}

bool is_cut_short(const std::string& path) {
  try {
    if (is_table_name(path)) return comment_of_table(path).starts_with(kStopped);
    if (!text_of_netcdf(path, "source").starts_with(kProgram)) throw DataError("its source is another one");
    return text_of_netcdf(path, "comment").starts_with(kStopped);
  } catch (const Error& error) {
    throw ConfigError(concat("command line: --output ", path,
                             " is there, and no forecast that --skip-existing could leave alone: ",
                             error.what(), "; name another file, or remove that one first"));
  }
}

std::string stop_comment(const ForecastsMade& made, const WrittenLeads& leads,
                         const std::vector<std::string>& starts) {
  if (!made.outside && made.starts == std::ssize(starts) && leads.count_until(made.step) == leads.count())
    return "";
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
  const std::int64_t all = std::ssize(starts);
  const bool lacks_leads = leads.count() > leads.count_until(made.step);
  const bool anew = !made.outside && (lacks_leads || made.starts < all);
  sentence += concat(": ", output, anew ? " is incomplete" : "");
  if (!anew || all > 1)
    sentence += concat(anew ? " and" : "", " holds ", made.starts, " of ", counted(all, "forecast"));
  if (made.starts < all)
    sentence += concat("; those from ", starts[static_cast<std::size_t>(made.starts)], " on are not in it");
  if (made.step < leads.last) sentence += sentence_of_rest(made, leads, starts, output);
  if (anew)
    sentence +=
        concat("; ", all == 1 ? "it is" : "all are", " made anew with --overwrite or --skip-existing");
  return sentence;
}

}  // namespace jigsaw::inline predict
