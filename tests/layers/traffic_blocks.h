#pragma once
#include <functional>
#include <string>
#include <vector>

#include "config/json.h"

namespace jigsaw::testing {

/// A mesh of a × b ranks on `domain` and p on `tensor`.
struct MeshSizes {
  std::vector<int> domain;
  int tensor = 1;

  int q() const { return domain[0] * domain[1]; }
  int p() const { return tensor; }
  int ranks() const { return p() * q(); }
  std::string to_string() const;
};

/// A square of tokens, and channels of one sample.
struct Sizes {
  double side = 0, channels = 0;
  double tokens() const { return side * side; }
};

/// Elements that the busiest rank sends, by the axes along which they go; along all of them counts as domain.
struct Elements {
  double tensor = 0, domain = 0;
  double gathered = 0;  ///< of domain: by gathers and reductions

  double total() const { return tensor + domain; }
  Elements operator+(const Elements& other) const {
    return {tensor + other.tensor, domain + other.domain, gathered + other.gathered};
  }
};

/// A block whose traffic is known. Closed forms (docs/traffic.md) give elements that the busiest rank sends
/// in a step; kNone where there is none.
struct TrafficBlock {
  using ClosedForm = std::function<double(const Sizes&, const MeshSizes&)>;

  std::string name;
  std::vector<Sizes> sizes;
  std::function<Json(const Sizes&)> model;
  std::function<double(const Sizes&)> parameters;
  std::function<Elements(const Sizes&, const MeshSizes&)> best_known;
  ClosedForm original;  ///< Jigsaw's own exchange
  /// Never above gathering everything, where values inside are no wider than what enters and leaves; else
  /// each rank's doing all the work may send less.
  bool below_gathered = true;
};
inline constexpr double kNone = -1;

/// All that the table of docs/traffic.md has.
std::vector<TrafficBlock> traffic_blocks();

/// Every rank gathers the block's input and parameters, both again for the backward, and its result's
/// gradient; gradients of the parameters are scattered.
double gathered(const TrafficBlock& block, const Sizes& sizes, const MeshSizes& mesh);

/// Halos of a convolution whose kernel reads `reach` points to each side: what a rank with the most
/// neighbours sends of C channels, forward.
double halo(const Sizes& field, double reach, const MeshSizes& mesh);

}  // namespace jigsaw::testing
