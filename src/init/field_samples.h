#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "fields/file_set.h"

namespace jigsaw::inline init {

/// Points of a plane that are looked at: those of a 0.25° grid are all of it.
inline constexpr std::int64_t kMostSampled = std::int64_t{1} << 20;
/// As many show that there is a value, and that it changes, nearly always.
inline constexpr std::int64_t kFewSampled = std::int64_t{1} << 14;

/// At a time, of the whole plane where it has at most so many points, else of rows spread over it; NaN where
/// missing.
std::vector<double> sampled_values(FileSet& files, const Field& field, Time time, std::int64_t most);

/// Some of these times, spread over all, and over the hours of the day: a region has no sunshine at night.
std::vector<Time> sampled_times(const std::vector<Time>& times);

/// "at the 13 times that were looked at"
std::string looked_at(const FileSet& files, const Field& field);

}  // namespace jigsaw::inline init
