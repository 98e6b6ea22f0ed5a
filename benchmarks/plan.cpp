// Seconds that planning a production configuration takes on a mesh of many ranks. Prints one JSON line per
// mesh, and the slowest at the end.
//
//   plan CONFIG [--ranks N] [--mesh DATA,DOMAIN0,DOMAIN1,TENSOR]   without --mesh: every mesh of N ranks
//   (1,024)
#include <chrono>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "autograd/tape.h"
#include "base/error.h"
#include "comm/record/record.h"
#include "config/config.h"
#include "layers/model.h"
#include "layers/registry.h"
#include "samples/channels.h"

namespace {

using namespace jigsaw;

/// What of a configuration says which model is planned.
struct Configuration {
  DataOptions data;
  Tagged model;
};
void declare(Keys<Configuration>& keys) {
  keys.add("data", &Configuration::data).required().doc("Files and what is made of them.");
  keys.tagged("model", &Configuration::model, model_types).required().doc("The network.");
}

struct Planned {
  double seconds = 0;
  std::string mesh;
};

Planned plan(const Configuration& configuration, const std::vector<int>& sizes) {
  const DataOptions& data = configuration.data;
  const Channels channels = make_channels(data, looks_global(data.shape));
  Context context = Context::make_meta();
  const auto world = make_record_communicator(context, 0, sizes[0] * sizes[1] * sizes[2] * sizes[3]);
  Mesh mesh(*world, sizes[0], {sizes[1], sizes[2]}, sizes[3]);
  const Rank rank{context, mesh};
  const std::unique_ptr<Model> model =
      build_model(configuration.model, {Shape(data.shape), static_cast<std::int64_t>(channels.inputs.size()),
                                        static_cast<std::int64_t>(channels.targets.size())});
  PlanBook plans;
  const auto begin = std::chrono::steady_clock::now();
  plan_and_materialise(*model, rank, plans, sizes[0], Zero::kNone, DType::kFloat32, DType::kFloat32, 1);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  Planned planned{seconds.count(), nlohmann::json(sizes).dump()};
  std::cout
      << nlohmann::ordered_json{{"benchmark", "plan"}, {"mesh", sizes}, {"seconds", planned.seconds}}.dump()
      << std::endl;
  return planned;
}

Configuration configuration_of(const Json& all) {
  return parse<Configuration>(Json{{"data", all.at("data")}, {"model", all.at("model")}});
}

/// Every way to write `ranks` as a product of four.
std::vector<std::vector<int>> meshes(int ranks) {
  std::vector<std::vector<int>> all;
  for (int data = 1; data <= ranks; ++data) {
    for (int lat = 1; ranks % data == 0 && lat <= ranks / data; ++lat) {
      for (int lon = 1; ranks / data % lat == 0 && lon <= ranks / data / lat; ++lon) {
        if (ranks / data / lat % lon == 0) all.push_back({data, lat, lon, ranks / data / lat / lon});
      }
    }
  }
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "plan CONFIG [--ranks N] [--mesh DATA,DOMAIN0,DOMAIN1,TENSOR]" << std::endl;
    return 2;
  }
  int ranks = 1024;
  std::vector<std::vector<int>> chosen;
  for (int i = 2; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--ranks") == 0) ranks = std::stoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--mesh") == 0) {
      std::istringstream text(argv[i + 1]);
      std::vector<int> sizes;
      for (std::string part; std::getline(text, part, ',');) sizes.push_back(std::stoi(part));
      sizes.resize(4, 1);
      chosen.push_back(sizes);
    }
  }
  if (chosen.empty()) chosen = meshes(ranks);
  const auto configuration = configuration_of(load_config(argv[1]));
  Planned slowest;
  for (const std::vector<int>& sizes : chosen) {
    try {
      const Planned one = plan(configuration, sizes);
      if (one.seconds > slowest.seconds) slowest = one;
    } catch (const Error& error) {
      std::cout
          << nlohmann::ordered_json{{"benchmark", "plan"}, {"mesh", sizes}, {"refused", error.what()}}.dump()
          << std::endl;
    }
  }
  std::cout << nlohmann::ordered_json{{"benchmark", "slowest plan"},
                                      {"mesh", slowest.mesh},
                                      {"seconds", slowest.seconds}}
                   .dump()
            << std::endl;
}
