#pragma once
#include <string>
#include <vector>

#include "array/grid.h"
#include "array/shape.h"
#include "init/first_configuration.h"
#include "init/first_levels.h"

namespace jigsaw::inline init {

/// Parts of the text of a first configuration, JSON with comments.

std::string quoted(const std::string& text);
std::string quoted_list(const std::vector<std::string>& texts);

/// The lines of a section, each with what is said of it above.
class Section {
 public:
  void say(const std::string& comment);
  void add(const std::string& key, const std::string& value, const std::string& comment = "");
  /// As an object, its closing brace `depth` steps from the margin.
  std::string text(int depth) const;

 private:
  std::vector<std::string> lines_;
};

/// The files as the configuration names them: from its folder, and by a pattern where one names just these.
/// @param patterns  by which they were found.
std::vector<std::string> names_of(const FirstOptions& options, const std::vector<std::string>& patterns,
                                  const std::vector<std::string>& files);

/// What a model must know of a grid around the globe.
struct GlobeKeys {
  std::vector<std::string>
      padding_mode;       ///< what convolutions read beyond its ends, by dim; empty for other grids
  std::string latitudes;  ///< the rows of spherical harmonics; "" where they are others
};
GlobeKeys globe_keys(const Grid& grid);

/// Sections that say how a model is trained, as text.
struct TrainingText {
  std::string model, loss, optimizer, schedule, train;
  int validate_every = 100, save_every = 200;  ///< steps
};

/// The whole text.
/// @param title     a first line for people.
/// @param space     extents of a sample.
/// @param globe     of globe_keys(); empty for images.
/// @param levels    of a U-Net. @param channels  of a sample's inputs.
/// @throws ConfigError  for a model whose patches do not fit, or which is for other grids.
std::string whole_text(const FirstOptions& options, const std::string& title, const Section& data,
                       const Shape& space, const GlobeKeys& globe, const FirstLevels& levels, double channels,
                       const std::string& loss);
/// The same of sections that are there. @param remark  on `train`.
std::string whole_text(const FirstOptions& options, const std::string& title, const Section& data,
                       const TrainingText& training, const std::string& remark);

}  // namespace jigsaw::inline init
