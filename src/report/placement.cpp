#include "report/placement.h"

#include <algorithm>
#include <map>

namespace jigsaw::inline report {

namespace {

Json list_of(const Shape& shape) {
  return std::vector<std::int64_t>(shape.begin(), shape.end());
}

/// What this rank stores, by the numbers of parameters.
Json stored_here(const Model& model) {
  Json stored = Json::array();
  std::map<const Parameter*, int> numbers;
  int number = 0;
  for (ParameterBlock* block : model.parameters()) {
    for (const auto& parameter : block->parameters()) numbers[parameter.get()] = number++;
    for (const auto& group : block->groups()) {
      for (const Segment& segment : group->stored_segments()) {
        if (segment.count == 0) continue;
        stored.push_back({numbers.at(segment.parameter), list_of(segment.box.begin),
                          list_of(segment.box.extent), segment.first, segment.count});
      }
    }
  }
  return stored;
}

}  // namespace

Json placement_of(OpenedRun& run) {
  const PlacedModel& placed = run.placed();
  const Mesh& mesh = placed.mesh();
  Communicator& world = run.world();
  std::vector<std::string> stored;
  if (world.size() <= kMostRanksShown) stored = world.gather_text(stored_here(placed.model()).dump());
  if (world.rank() != 0) return nullptr;
  Json json = {{"axes", Json::array()},
               {"ranks", world.size()},
               {"space", list_of(run.data().grid().shape())},
               {"field", Json::array()},
               {"parameters", Json::array()},
               {"stored", stored.empty() ? Json(nullptr) : Json::array()}};
  for (int axis = 0; axis < mesh.shape().axes; ++axis)
    json["axes"].push_back({{"name", mesh.axis_name(axis)}, {"size", mesh.size(axis)}});
  const Layout layout = placed.model().input_layout(mesh, placed.forecasts());
  for (int rank = 0; rank < std::min(world.size(), kMostRanksShown); ++rank) {
    const Box box = layout.box(mesh.shape(), mesh.shape().coordinates(rank));
    json["field"].push_back({list_of(box.begin), list_of(box.extent)});
  }
  for (ParameterBlock* block : placed.model().parameters()) {
    for (const auto& parameter : block->parameters()) {
      json["parameters"].push_back({{"name", parameter->name()},
                                    {"shape", list_of(parameter->shape())},
                                    {"layout", parameter->compute_layout().to_string(mesh.shape())}});
    }
  }
  for (const std::string& text : stored) json["stored"].push_back(Json::parse(text));
  return json;
}

}  // namespace jigsaw::inline report
