#pragma once
#include <array>
#include <optional>
#include <vector>

#include "comm/communicator.h"

namespace jigsaw::inline predict {

/// By what finds are put in order: the first number that differs decides.
using FindOrder = std::array<double, 3>;

/// Of each place the least that any rank has there; nothing where none has any. Collective.
/// @param own  what this rank has, of as many places on every rank. Finite.
std::vector<std::optional<FindOrder>> least_of_ranks(Communicator& world,
                                                     const std::vector<std::optional<FindOrder>>& own);

}  // namespace jigsaw::inline predict
