#include "predict/place_table.h"

#include <fstream>

#include "base/error.h"
#include "base/lower_case.h"
#include "base/output_place.h"
#include "base/text.h"

namespace jigsaw::inline predict {

namespace {

constexpr const char *kStartTitle = "start", *kTimeTitle = "time", *kLeadTitle = "lead_", *kComment = "# ";

}  // namespace

bool is_table_name(const std::string& output) {
  return to_lower(output).ends_with(".csv");
}

std::string comment_of_table(const std::string& path) {
  if (!begins_with(path, concat(kStartTitle, ",", kTimeTitle, ",", kLeadTitle)))
    throw DataError(path + " is no table of forecasts");
  std::ifstream text(path);
  std::string last;
  for (std::string line; std::getline(text, line);) last = std::move(line);
  return last.starts_with(kComment) ? last.substr(std::string_view(kComment).size()) : "";
}

PlaceTable::PlaceTable(FileSet& files, const ForecastContents& contents, const std::string& path,
                       std::int64_t overlap)
    : table_(path),
      places_(*contents.places),
      fields_(contents.fields.size()),
      members_(contents.members),
      overlap_(overlap) {
  const bool of_months = files.of_months();
  const auto ahead = [&](int lead) { return contents.leads.step_of(lead) * contents.lead_time; };
  for (int lead = 0; lead < contents.leads.count(); ++lead)
    leads_.push_back(of_months ? std::to_string(ahead(lead) / kMonth)
                               : TextTableOutput::number(in_hours(contents.begun + ahead(lead))));
  for (const Time start : contents.starts) {
    starts_.push_back(files.text_of(start - contents.begun));
    times_.emplace_back();
    for (int lead = 0; lead < contents.leads.count(); ++lead)
      times_.back().push_back(files.text_of(start + ahead(lead)));
  }
  std::vector<std::string> titles = {kStartTitle, kTimeTitle,
                                     concat(kLeadTitle, of_months ? "months" : "hours")};
  if (members_ > 1) titles.emplace_back("number");
  titles.insert(titles.end(), {"station", "latitude", "longitude"});
  for (const Field& field : contents.fields) {
    const std::string& unit = files.units(field);
    titles.push_back(unit.empty() ? field.name() : concat(field.name(), " [", unit, "]"));
  }
  table_.add_line(titles);
}

void PlaceTable::write(std::int64_t start, std::int64_t lead, std::int64_t member,
                       std::span<const float> values) {
  const auto from = static_cast<std::size_t>(start), ahead = static_cast<std::size_t>(lead);
  std::string lines;
  for (std::size_t place = 0; place < places_.size(); ++place) {
    std::vector<std::string> cells = {starts_[from], times_[from][ahead], leads_[ahead]};
    if (members_ > 1) cells.push_back(std::to_string(member));
    cells.insert(cells.end(), {places_.names[place], TextTableOutput::number(places_.latitudes[place]),
                               TextTableOutput::number(places_.longitudes[place])});
    for (std::size_t field = 0; field < fields_; ++field)
      cells.push_back(TextTableOutput::number(values[field * places_.size() + place]));
    lines += TextTableOutput::line(cells);
  }
  if (overlap_ == 1) return table_.add(lines);
  waiting_[start] += lines;
  if (lead + 1 < std::ssize(leads_) || member + 1 < members_) return;
  table_.add(waiting_[start]);
  waiting_.erase(start);
}

void PlaceTable::close(const std::string& comment) {
  for (const auto& [start, lines] : waiting_) table_.add(lines);
  waiting_.clear();
  if (!comment.empty()) table_.add(kComment + comment + "\n");
  table_.close();
}

}  // namespace jigsaw::inline predict
