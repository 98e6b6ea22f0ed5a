#include "predict/least_of_ranks.h"

#include <cmath>
#include <limits>

namespace jigsaw::inline predict {

std::vector<std::optional<FindOrder>> least_of_ranks(Communicator& world,
                                                     const std::vector<std::optional<FindOrder>>& own) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  std::vector<FindOrder> least(own.size());
  std::vector<bool> mine(own.size());  // whether this rank has the least so far
  for (std::size_t place = 0; place < own.size(); ++place) mine[place] = own[place].has_value();
  for (std::size_t i = 0; i < FindOrder().size(); ++i) {
    std::vector<double> numbers;
    for (std::size_t place = 0; place < own.size(); ++place)
      numbers.push_back(mine[place] ? (*own[place])[i] : kNone);
    numbers = world.all_reduce(numbers, ReduceOp::kMin);
    for (std::size_t place = 0; place < own.size(); ++place) {
      least[place][i] = numbers[place];
      mine[place] = mine[place] && (*own[place])[i] == numbers[place];
    }
  }
  std::vector<std::optional<FindOrder>> found(own.size());
  for (std::size_t place = 0; place < own.size(); ++place)
    if (std::isfinite(least[place][0])) found[place] = least[place];
  return found;
}

}  // namespace jigsaw::inline predict
