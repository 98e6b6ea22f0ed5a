#pragma once
#include <cstdint>
#include <optional>

#include "config/keys.h"
#include "times/time_axis.h"

namespace jigsaw::inline fields {

/// Which members of an ensemble are read.
struct MemberChoice {
  std::optional<double> number = {};  ///< the one of this number in the files
  bool all = false;                   ///< each is a series of samples of its own

  bool operator==(const MemberChoice&) const = default;
};
FormPtr<MemberChoice> form_for(TypeTag<MemberChoice>);

/// A time, and which of the members that are read, from 0 on.
struct Moment {
  Time time = 0;
  std::int32_t member = 0;

  Moment(Time time_, std::int32_t member_ = 0) : time(time_), member(member_) {}
  auto operator<=>(const Moment&) const = default;
  Moment operator+(Time seconds) const { return {time + seconds, member}; }
};

}  // namespace jigsaw::inline fields
