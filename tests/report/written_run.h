// A run directory with all that a report reads, written by hand, and what pages of it are looked through for.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "io/netcdf_writer.h"
#include "report/examples.h"
#include "report/run_record.h"
#include "report/svg.h"
#include "support/temporary_folder.h"

namespace jigsaw::testing {

/// A run as files: three steps of an increasing loss, two validations, maps on a globe, two ranks.
struct WrittenRun {
  TemporaryFolder folder;
  std::string path = folder.path() + "/first";

  explicit WrittenRun(bool over = true) {
    std::filesystem::create_directories(path);
    const Json config = {{"name", "run"},
                         {"command_line", "jigsaw-train <x>"},
                         {"model", {{"type", "weathermixer"}}},
                         {"data", {{"lead_hours", 6}}}};
    put_text(path + "/config.json", config.dump());
    std::string lines;
    for (int step = 1; step <= 3; ++step) {
      const Json line = {{"kind", "train"},
                         {"step", step},
                         {"loss", 1.0 / step},
                         {"learning_rate", 1e-3},
                         {"grad_norm", 2.0},
                         {"step_seconds", 0.5},
                         {"data_wait_seconds", 0.1},
                         {"communication_seconds", 0.2},
                         {"samples_per_second", 8.0},
                         {"peak_share", 0.25},
                         {"time", "2026-01-02T03:04:05.678Z"}};
      lines += line.dump() + "\n";
      if (step == 1) continue;
      const auto scores = [&](double rmse) {
        return Json{{"rmse", rmse}, {"bias", 0.0}, {"persistence_rmse", 4.0}};
      };
      const Json valid = {
          {"kind", "valid"},
          {"step", step},
          {"loss", 0.25},
          {"metrics", {{"t2m", scores(4.0 - step)}, {"t_500", scores(2)}, {"t_850", scores(3)}}},
          {"leads", {{"12", {{"t2m", scores(3)}, {"t_500", scores(3)}, {"t_850", scores(3)}}}}},
          {"validation_seconds", 0.3}};
      lines += valid.dump() + "\n";
    }
    put_text(path + "/metrics.jsonl", lines + "{\"kind\":\"train\",\"step\":4,\"lo");
    put_text(path + "/placement.json", placement().dump());
    write_examples(examples(), path);
    if (over) put_text(path + "/summary.json", summary().dump());
  }

  static Json placement() {
    return {{"axes", {{{"name", "data"}, {"size", 1}}, {{"name", "domain0"}, {"size", 2}}}},
            {"ranks", 2},
            {"space", {19, 36}},
            {"field", {{{0, 0, 0, 0}, {1, 10, 36, 1}}, {{0, 10, 0, 0}, {1, 9, 36, 1}}}},
            {"parameters", {{{"name", "encoder.weight"}, {"shape", {4, 6}}, {"layout", "[R, S(0)]"}}}},
            {"stored", {{{0, {0, 0}, {2, 6}, 0, 12}}, {{0, {2, 0}, {2, 6}, 0, 12}}}}};
  }
  static Json summary() {
    Json ranks = Json::array();
    for (int rank = 0; rank < 2; ++rank)
      ranks.push_back({{"rank", rank},
                       {"parameter_bytes", 1 << 20},
                       {"optimizer_bytes", 2 << 20},
                       {"peak_activation_bytes", 4 << 20},
                       {"peak_memory_bytes", 64 << 20},
                       {"file_bytes_read", 1000},
                       {"sent_bytes", {{"all_gather", 512}, {"exchange", 1024}}}});
    return {{"steps", 3}, {"seconds", 4.0}, {"ranks", ranks}};
  }
  static Examples examples() {
    Examples examples;
    examples.step = 3;
    examples.lead_time = 6 * kHour;
    examples.grid = {true, true, {}, {}};
    for (int i = 0; i < 19; ++i) examples.grid.rows.push_back(90.0 - 10 * i);
    for (int i = 0; i < 36; ++i) examples.grid.columns.push_back(10.0 * i);
    ExamplePlane plane{"t2m", "K", {}, {}, {}};
    for (int i = 0; i < 19 * 36; ++i) {
      plane.truth.push_back(280 + static_cast<float>(std::sin(0.3 * i)));
      plane.predicted.push_back(plane.truth.back() + 3);
    }
    plane.truth[5] = plane.predicted[5] = NAN;
    examples.planes.push_back(plane);
    examples.targets = {"t2m"};
    examples.rmse_by_row = {std::vector<double>(19, 3.0)};
    return examples;
  }
};

/// Names of elements that are open when others close, or that nothing closes; ids that stand twice.
inline std::vector<std::string> faults_of(const std::string& html) {
  static const std::set<std::string> kAlone = {"meta", "!DOCTYPE"};
  std::vector<std::string> open, faults;
  std::set<std::string> ids;
  for (std::size_t at = html.find('<'); at != std::string::npos; at = html.find('<', at + 1)) {
    const std::size_t end = html.find('>', at);
    const std::string tag = html.substr(at + 1, end - at - 1);
    const std::string name =
        tag.substr(tag[0] == '/' ? 1 : 0, tag.find_first_of(" />", 1) - (tag[0] == '/' ? 1 : 0));
    if (const std::size_t id = tag.find(" id=\""); id != std::string::npos) {
      const std::string value = tag.substr(id + 5, tag.find('"', id + 5) - id - 5);
      if (!ids.insert(value).second) faults.push_back("twice " + value);
    }
    if (kAlone.contains(name) || tag.ends_with("/")) continue;
    if (tag[0] != '/') {
      open.push_back(name);
    } else if (open.empty() || open.back() != name) {
      faults.push_back("closes " + name);
    } else {
      open.pop_back();
    }
  }
  faults.insert(faults.end(), open.begin(), open.end());
  return faults;
}

inline int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace jigsaw::testing
