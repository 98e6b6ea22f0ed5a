#include "report/page.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/output_place.h"
#include "base/text.h"
#include "report/figures.h"
#include "report/run_overview.h"
#include "report/score_file.h"
#include "report/svg.h"

namespace jigsaw::inline report {

namespace {

constexpr const char* kBegin = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>";
constexpr const char* kStyle =
    "body{font:15px/1.45 sans-serif;color:#222;background:#fff;max-width:1080px;margin:24px auto;padding:0 "
    "16px}"
    "h1{font-size:26px;margin:0}h2{font-size:19px;border-bottom:1px solid #ccc;margin-top:32px}"
    "figure{display:inline-block;margin:10px 14px 10px 0;vertical-align:top;max-width:100%}"
    "figcaption{font-size:12px;color:#555;max-width:900px}svg{max-width:100%;height:auto}"
    ".row{display:flex;flex-wrap:wrap;gap:14px}"
    "table{border-collapse:collapse;font-size:13px}td,th{padding:2px 10px;border-bottom:1px solid "
    "#ddd;text-align:left}"
    ".time{white-space:nowrap}"
    ".wide{overflow-x:auto}details summary{cursor:pointer}.note{color:#555}"
    "h1,h2{break-after:avoid}figure,tr{break-inside:avoid}";

class Page {
 public:
  void section(const std::string& title, const Figures& figures) {
    if (figures.empty()) return;
    body_ += concat("<h2>", escaped(title), "</h2>\n");
    for (const Figure& figure : figures) {
      std::string id = figure.id;
      for (char& c : id) c = std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' ? c : '_';
      while (!ids_.insert(id).second) id += "_";
      body_ += concat("<figure id=\"", id, "\">", figure.body, "<figcaption>", escaped(figure.caption),
                      "</figcaption></figure>\n");
    }
  }
  void note(const std::string& text) { body_ += concat("<p class=\"note\">", escaped(text), "</p>\n"); }
  void html(const std::string& text) { body_ += text; }

  std::string finish(const std::string& title) const {
    return concat(kBegin, escaped(title),
                  "</title>\n<meta name=\"viewport\" content=\"width=device-width\">"
                  "<meta name=\"color-scheme\" content=\"only light\"><style>",
                  kStyle, "</style></head><body>\n<h1>", escaped(title), "</h1>\n", body_,
                  "</body></html>\n");
  }

 private:
  std::string body_;
  std::set<std::string> ids_;
};

void add_configurations(const std::vector<RunRecord>& runs, Page& page) {
  page.html("<h2>Configuration</h2>\n");
  for (const RunRecord& run : runs) {
    if (!run.config.is_object()) continue;
    page.html(concat("<details><summary>", escaped(run.name), ": ",
                     escaped(text_at(run.config, {"command_line"})), "</summary><pre>"));
    for (const std::string& line :
         split(run.config.dump(2, ' ', false, Json::error_handler_t::replace), '\n'))
      page.html(escaped(line) + "\n");
    page.html("</pre></details>\n");
  }
}

/// What is to be known of a run beside its figures.
void add_notes(const RunRecord& run, Page& page) {
  if (!run.error.empty()) {
    page.note(concat(run.name, " ended with an error: ", run.error));
  } else if (!run.stopped.empty()) {
    page.note(concat(run.name, " was ", run.stopped, "."));
  } else if (!run.over()) {
    page.note(concat(run.name, " has not ended: this is what it has written so far."));
  }
  if (const Json cause = run.over() ? run.summary.value("ended_by", Json()) : Json(); cause.is_string()) {
    page.note(concat(run.name, " ended at step ", text_at(run.summary, {"steps"}), " by ",
                     cause.get<std::string>(), ": its validations no longer improved ",
                     text_at(run.config, {"checkpoint", "best"}), "."));
  }
  if (run.foreign_lines > 0) {
    page.note(concat(run.name,
                     ": lines of metrics.jsonl that are no JSON and are left out: ", run.foreign_lines, "."));
  }
  if (!run.examples)
    page.note(concat(run.name,
                     " holds no maps or slices; a run with \"report\": true and validations keeps some."));
}

/// Runs of one name all go by their paths.
void tell_apart(std::vector<RunRecord>& runs) {
  std::map<std::string, int> counts;
  for (const RunRecord& run : runs) ++counts[run.name];
  for (RunRecord& run : runs) {
    if (counts[run.name] == 1) continue;
    run.name = run.path;
    while (run.name.size() > 1 && run.name.ends_with('/')) run.name.pop_back();
  }
}

}  // namespace

std::string report_page(const ReportOptions& options) {
  std::vector<RunRecord> runs;
  for (const std::string& path : options.runs) runs.push_back(read_run(path));
  tell_apart(runs);
  std::vector<std::string> names;
  for (const RunRecord& run : runs) names.push_back(run.name);
  if (!options.scores.empty()) {
    runs.front().scores = read_scores(options.scores);
    runs.front().scores_path = options.scores;
  }
  Page page;
  page.html(run_overview(runs));
  page.note(concat("Written ", utc_stamp(), "."));
  for (const RunRecord& run : runs) add_notes(run, page);
  page.section("Training and validation", curve_figures(runs));
  for (const RunRecord& run : runs) {
    const std::string suffix = runs.size() == 1 ? "" : "-" + run.name,
                      of = runs.size() == 1 ? "" : ": " + run.name;
    Figures figures = example_figures(run, suffix);
    for (Figure& figure : score_figures(run, suffix)) figures.push_back(std::move(figure));
    page.section("Predictions beside the truth" + of, figures);
  }
  if (!options.maps.empty()) page.section("Maps of scores", map_figures(options.maps));
  if (!options.forecast.empty()) page.section("Forecasts", forecast_figures(options.forecast));
  page.section("Time, memory and traffic", machine_figures(runs));
  for (const RunRecord& run : runs) {
    const std::string suffix = runs.size() == 1 ? "" : "-" + run.name,
                      of = runs.size() == 1 ? "" : ": " + run.name;
    page.section("The mesh" + of, mesh_figures(run, suffix));
  }
  add_configurations(runs, page);
  return page.finish(runs.size() == 1 ? runs.front().name : "Runs " + join(names, ", "));
}

bool is_report_page(const std::string& path) {
  return begins_with(path, kBegin);
}

void write_report(const ReportOptions& options) {
  write_text_atomically(options.output, report_page(options));
}

}  // namespace jigsaw::inline report
