#include "report/run_files.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>

#include "base/file.h"
#include "base/text.h"
#include "config/config.h"
#include "report/page.h"
#include "report/placement.h"
#include "report/png.h"

namespace jigsaw::inline report {

namespace {

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// As Markdown shows what is indented: as it is.
std::string indented(const Json& json) {
  std::string text;
  for (const std::string& line : split(json.dump(2, ' ', false, Json::error_handler_t::replace), '\n'))
    text += concat("    ", line, "\n");
  return text;
}

}  // namespace

void RunFiles::try_to(const std::string& what, const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& error) {
    if (std::ranges::find(warned_, what) != warned_.end()) return;
    warned_.push_back(what);
    log_.warn(concat(what, " cannot be written: ", error.what(), "; the run goes on"));
  }
}

void RunFiles::begin(OpenedRun& run, const RunDirectory& directory, std::int64_t step) {
  folder_ = directory.path();
  origin_ = !run.configuration().data.of_images();
  if (run.validates()) collector_ = std::make_unique<ExampleCollector>(run);
  if (options_.report) {
    const Json placement = placement_of(run);
    if (log_.speaks()) {
      try_to("placement.json",
             [&] { write_text_atomically(folder_ + "/placement.json", placement.dump() + "\n"); });
    }
  }
  if (!options_.tensorboard || !log_.speaks()) return;
  try_to("tensorboard", [&] {
    const std::string folder = folder_ + "/tensorboard";
    std::filesystem::create_directories(folder);
    events_ = std::make_unique<EventFile>(folder, seconds_since_1970());
    events_->begin_session(step + 1, seconds_since_1970());
    events_->add_text("configuration", step, indented(to_json(run.configuration())), seconds_since_1970());
  });
}

void RunFiles::add_scalars(const std::string& prefix, const Json& values, std::int64_t step,
                           const std::string& ending) {
  for (const auto& [key, value] : values.items()) {
    if (key == "step") continue;
    if (value.is_number()) {
      events_->add_scalar(concat(prefix, "/", key, ending), step, value.get<double>(), seconds_since_1970());
    } else if (value.is_object()) {
      add_scalars(concat(prefix, "/", key), value, step, ending);
    }
  }
}

void RunFiles::metrics(const Json& line) {
  if (!events_) return;
  try_to("tensorboard", [&] {
    const auto step = line.at("step").get<std::int64_t>();
    const std::string kind = line.at("kind").get<std::string>();
    Json rest = line;
    if (kind == "valid") {
      rest.erase("metrics");
      rest.erase("leads");
      add_scalars(kind, line.at("metrics"), step, "");
      if (line.contains("leads")) {
        for (const auto& [lead, metrics] : line.at("leads").items())
          add_scalars(kind, metrics, step, concat("_", lead, "h"));
      }
    }
    add_scalars(kind, rest, step, "");
  });
}

void RunFiles::predicted(std::int64_t batch, int lead, const ShardedTensor& prediction, const Batch& truth) {
  if (collector_) collector_->add(batch, lead, prediction, truth);
}

/// Prediction, truth and difference beside each other.
void RunFiles::add_images(const Examples& examples) {
  const std::int64_t width =
      std::max<std::int64_t>(1, std::llround(fitted_width(Projection(examples.grid), 300)));
  for (const ExamplePlane& plane : examples.planes) {
    std::vector<float> both = plane.truth, error = plane.predicted;
    both.insert(both.end(), plane.predicted.begin(), plane.predicted.end());
    std::ranges::transform(error, plane.truth, error.begin(), std::minus<>());
    const Colouring colours = colouring_of(both, examples.colours());
    const auto raster = [&](const std::vector<float>& values, const Colouring& colouring) {
      return raster_of(examples.grid, values, colouring, width, true);
    };
    const Raster all = beside({raster(plane.predicted, colours), raster(plane.truth, colours),
                               raster(error, colouring_of_difference(error))});
    events_->add_image("maps/" + plane.name, examples.step, all.width, all.height,
                       png_of(all.width, all.height, all.rgb), seconds_since_1970());
  }
}

void RunFiles::validated(std::int64_t step, ValidationResult& /*result*/) {
  if (!collector_) return;
  const Examples examples = collector_->finish(step);
  if (!log_.speaks()) return;
  if (options_.report) try_to("examples.nc", [&] { write_examples(examples, folder_); });
  if (events_) try_to("tensorboard", [&] { add_images(examples); });
}

void RunFiles::end() {
  if (!options_.report || !log_.speaks()) return;
  try_to("report.html", [&] {
    write_report({{folder_}, folder_ + "/report.html", "", ""});
    log_.info(concat("report: ", folder_, "/report.html"));
  });
}

}  // namespace jigsaw::inline report
