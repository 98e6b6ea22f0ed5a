#pragma once
#include <limits>
#include <string>

#include "config/keys.h"

namespace jigsaw::inline fields {

/// What is done to the values of a field before mean and deviation are taken out of them.
enum class TransformKind {
  kStandard,  ///< nothing
  kMinMax,    ///< nothing; least value and range in place of mean and deviation
  kNone,      ///< nothing, and nothing is taken out
  kLog,
  kSqrt,
  kBoxCox
};

/// A monotone function of values in the unit of the files, and its inverse. Values below its domain count as
/// its lower end: packed fields of rain hold numbers a little below 0.
struct Transform {
  TransformKind kind = TransformKind::kStandard;
  double epsilon = 1e-5;  ///< ε of log and Box-Cox, in the unit of the files
  double lambda = 0.25;   ///< λ of Box-Cox

  bool operator==(const Transform&) const = default;

  /// Whether forward() is the identity, so that errors of normalised values are errors of values but for a
  /// factor.
  bool linear() const { return kind <= TransformKind::kNone; }
  /// log(max(x, 0) + ε); √max(x, 0); ((max(x, 0) + ε)^λ − 1)/λ; x. NaN stays.
  double forward(double x) const;
  /// Not below 0 unless the transform is linear.
  double inverse(double value) const;
  /// "" for standard, "log(x + 1e-05)", …: by which statistics are known to be of the same values.
  std::string name() const;
};

void declare(Keys<Transform>& keys);
FormPtr<Transform> form_for(TypeTag<Transform>);

/// An interval of values in the unit of the files; infinite ends are open.
struct ValueRange {
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();

  bool operator==(const ValueRange&) const = default;
  bool bounded() const { return *this != ValueRange(); }
};
/// [low, high], null for an end that is open.
FormPtr<ValueRange> form_for(TypeTag<ValueRange>);

}  // namespace jigsaw::inline fields
