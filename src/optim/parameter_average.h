#pragma once
#include <vector>

#include "optim/owned_parameters.h"

namespace jigsaw::inline optim {

/// Exponential moving average of the parameters that this rank owns, see exponential_average().
class ParameterAverage {
 public:
  /// @param decay  0: there is no average, and nothing below does anything.
  ParameterAverage(OwnedParameters& owned, double decay);

  bool kept() const { return !averages_.empty(); }
  /// The average is what the parameters are.
  void begin();
  /// Takes over what an update made of the parameters, where the UpdateNumbers apply.
  void follow(const Array& numbers);
  /// Exchanges the two. Collective.
  void swap();
  /// Of a part of the owned parameters.
  const Array& of(std::size_t part) const { return averages_[part]; }
  std::int64_t bytes() const;

 private:
  OwnedParameters& owned_;
  double decay_;
  std::vector<Array> averages_;  // by part
};

}  // namespace jigsaw::inline optim
