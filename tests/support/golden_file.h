#pragma once
#include <memory>
#include <string>
#include <vector>

#include "array/shape.h"

namespace jigsaw::testing {

/// One file of tests/goldens, open for reading. Errors are Error, with the path inside the file.
class GoldenFile {
 public:
  struct Tensor {
    Shape shape;
    std::vector<double> values;
  };

  /// @param name  such as "layers.h5".
  explicit GoldenFile(const std::string& name);
  ~GoldenFile();
  GoldenFile(const GoldenFile&) = delete;
  GoldenFile& operator=(const GoldenFile&) = delete;

  /// A data set, whole.
  Tensor read(const std::string& path) const;
  std::vector<double> values(const std::string& path) const { return read(path).values; }
  /// Row `index` of a data set.
  std::vector<double> row(const std::string& path, int index) const;
  /// Names of what a group holds.
  std::vector<std::string> names(const std::string& group) const;
  /// A numeric attribute of a group or data set ("/" for the file).
  std::vector<double> attribute(const std::string& path, const std::string& name) const;
  double number(const std::string& path, const std::string& name) const {
    return attribute(path, name).at(0);
  }

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace jigsaw::testing
