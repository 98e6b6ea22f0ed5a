#pragma once
#include <string>
#include <utility>
#include <vector>

#include "images/image_axes.h"

namespace jigsaw::inline predict {

/// The dims and coordinates of the data sets of one file that is written, which has no groups: their names
/// are those of the inputs without groups. One whose name another one of other values has gets its groups
/// before it ("b_x"), and a number where that is there, too.
class WrittenAxes {
 public:
  /// @return  the same under the names that they are written by.
  ImageAxes add(ImageAxes axes);
  /// All that were added, each once, of names that differ; grid mappings among them.
  const std::vector<OutputCoordinate>& all() const { return all_; }

 private:
  struct Dimension {
    std::string name;
    std::int64_t extent = 0;
    std::vector<double> values;  ///< of its coordinate, if it has one
  };
  std::string add_dimension(const std::string& name, std::int64_t extent, const std::vector<double>& values,
                            const std::vector<std::string>& others);
  void add_coordinate(OutputCoordinate& coordinate);
  bool is_coordinate(const std::string& name) const;

  std::vector<Dimension> dimensions_;
  std::vector<OutputCoordinate> all_;
};

}  // namespace jigsaw::inline predict
