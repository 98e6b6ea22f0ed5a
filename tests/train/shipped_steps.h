#pragma once
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "config/config.h"
#include "parallel/cost_model.h"
#include "support/source_dir.h"
#include "train/step_count.h"

/// A function of kernels that the linker puts a test's before (--wrap): NAME_there is the function, NAME_here
/// what is called in its place.
#define JIGSAW_CALL(name, mangled, arguments, result)                     \
  result name##_there arguments asm("__real__ZN6jigsaw7kernels" mangled); \
  result name##_here arguments asm("__wrap__ZN6jigsaw7kernels" mangled);

namespace jigsaw {

/// The properties of an H100, as cuDNN takes them.
inline std::string h100() {
  std::ifstream file(testing::source_dir() + "/tests/kernels/h100.json");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// What was asked of cuDNN, each once, by its text.
template <typename Problem>
std::map<std::string, Problem>& problems() {
  static std::map<std::string, Problem> all;
  return all;
}
template <typename Problem>
void pose(const Problem& problem) {
  problems<Problem>().emplace(problem.text(), problem);
}

/// Training steps of the shipped configurations, on one GPU and with the domain on two.
/// @param use  gets the configuration's name, and what counts the step on a meta device.
inline void for_each_shipped_step(
    const std::vector<std::string>& precisions,
    const std::function<void(const std::string& name, const std::function<void()>& count)>& use) {
  for (const auto& entry : std::filesystem::directory_iterator(testing::source_dir() + "/configs")) {
    for (const std::string& precision : precisions) {
      for (const int domain : {1, 2}) {
        Json json = load_config(entry.path());
        json["train"]["precision"] = precision;
        json["mesh"] = {{"data", 1}, {"domain", {domain, 1}}, {"tensor", 1}};
        if (json["data"].value("task", "") != "") json["mesh"]["domain"].push_back(1);
        const auto configuration = parse<Configuration>(json);
        const DType type =
            configuration.train.precision == Precision::kBfloat16 ? DType::kBfloat16 : DType::kFloat32;
        use(configuration.name, [&] {
          count_step(configuration, describe_data(configuration.data, ""), 0, domain,
                     cost_model(Device::kCuda, type, domain));
        });
      }
    }
  }
}

}  // namespace jigsaw
