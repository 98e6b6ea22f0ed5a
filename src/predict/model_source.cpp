#include "predict/model_source.h"

#include <vector>

#include "base/text.h"

namespace jigsaw::inline predict {

std::string source_of(std::span<const TrainedModel> models) {
  std::vector<std::string> sources;
  for (const TrainedModel& model : models) {
    const std::string& digest = model.digest();
    sources.push_back(concat(model.description(), digest.empty() ? "" : " (digest " + digest + ")"));
  }
  return "jigsaw-train, " + join(sources, "; ");
}

}  // namespace jigsaw::inline predict
