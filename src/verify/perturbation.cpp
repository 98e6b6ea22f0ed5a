#include "verify/perturbation.h"

#include <vector>

#include "array/transfer.h"
#include "verify/random_bits.h"

namespace jigsaw::inline verify {

void Perturbation::move(const Context& context, const Array& array, double rounding, std::uint64_t place) {
  const auto pair = static_cast<std::uint64_t>(number_ - 1) / 2;
  const std::uint64_t key = random_bits(random_bits(random_bits(pair) + arrays_++) + place);
  const bool opposite = number_ % 2 == 0;
  const double by = roundings() * rounding;
  std::vector<double> values = download_values(context, array);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool up = (random_bits(key + i) >> 63 != 0) != opposite;
    values[i] *= 1 + (up ? by : -by);
  }
  write_values(context, array, values);
}

}  // namespace jigsaw::inline verify
