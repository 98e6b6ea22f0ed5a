#include "fields/transform.h"

#include <cmath>

#include "base/text.h"
#include "config/config.h"

namespace jigsaw::inline fields {

namespace {

/// NaN stays.
double at_least_0(double x) {
  return x < 0 ? 0.0 : x;
}

}  // namespace

double Transform::forward(double x) const {
  switch (kind) {
    case TransformKind::kLog:
      return std::log(at_least_0(x) + epsilon);
    case TransformKind::kSqrt:
      return std::sqrt(at_least_0(x));
    case TransformKind::kBoxCox:
      return (std::pow(at_least_0(x) + epsilon, lambda) - 1) / lambda;
    case TransformKind::kStandard:
    case TransformKind::kMinMax:
    case TransformKind::kNone:
      break;
  }
  return x;
}

double Transform::inverse(double value) const {
  switch (kind) {
    case TransformKind::kLog:
      return at_least_0(std::exp(value) - epsilon);
    case TransformKind::kSqrt:
      return at_least_0(value) * at_least_0(value);
    case TransformKind::kBoxCox:
      return at_least_0(std::pow(at_least_0(lambda * value + 1), 1 / lambda) - epsilon);
    case TransformKind::kStandard:
    case TransformKind::kMinMax:
    case TransformKind::kNone:
      break;
  }
  return value;
}

std::string Transform::name() const {
  switch (kind) {
    case TransformKind::kLog:
      return concat("log(x + ", epsilon, ")");
    case TransformKind::kSqrt:
      return "sqrt(x)";
    case TransformKind::kBoxCox:
      return concat("((x + ", epsilon, ")^", lambda, " - 1)/", lambda);
    case TransformKind::kMinMax:
      return "min_max";
    case TransformKind::kNone:
      return "none";
    case TransformKind::kStandard:
      break;
  }
  return "";
}

namespace {

FormPtr<TransformKind> kind_form() {
  return choice<TransformKind>(
      {{"standard", TransformKind::kStandard, "(x − mean)/deviation."},
       {"min_max", TransformKind::kMinMax, "(x − least)/(largest − least) over the training period."},
       {"none", TransformKind::kNone, "x as it is."},
       {"log", TransformKind::kLog, "log(x + epsilon), then standard; what is below 0 counts as 0."},
       {"sqrt", TransformKind::kSqrt, "√x, then standard; what is below 0 counts as 0."},
       {"box_cox", TransformKind::kBoxCox,
        "((x + epsilon)^lambda − 1)/lambda, then standard; what is below 0 counts as 0."}});
}

}  // namespace

void declare(Keys<Transform>& keys) {
  keys.add("type", &Transform::kind, kind_form()).required().doc("What is done to the values.");
  keys.add("epsilon", &Transform::epsilon)
      .above(0)
      .doc("Of log and box_cox: what is added before the logarithm or power, in the unit of the files.");
  keys.add("lambda", &Transform::lambda).above(0).at_most(1).doc("Of box_cox: the power.");
  keys.check([](const Transform& transform, const Place& at) {
    const Transform plain{transform.kind};
    const bool box_cox = transform.kind == TransformKind::kBoxCox;
    if (transform.epsilon != plain.epsilon && !box_cox && transform.kind != TransformKind::kLog)
      at.error("epsilon", "has no effect but for the types log and box_cox; leave it out");
    if (transform.lambda != plain.lambda && !box_cox)
      at.error("lambda", "has no effect but for the type box_cox; leave it out");
  });
}

FormPtr<Transform> form_for(TypeTag<Transform>) {
  return shorthand<Transform, TransformKind>(
      section<Transform>(), kind_form(), [](const TransformKind& kind) { return Transform{kind}; },
      [](const Transform& transform) {
        const bool plain = transform == Transform{transform.kind};
        return plain ? std::optional(transform.kind) : std::nullopt;
      });
}

FormPtr<ValueRange> form_for(TypeTag<ValueRange>) {
  const auto read = [](const Json& json, const Place& at) -> std::optional<ValueRange> {
    const auto is_end = [](const Json& end) { return end.is_null() || end.is_number(); };
    if (!json.is_array() || json.size() != 2 || !is_end(json[0]) || !is_end(json[1])) return std::nullopt;
    ValueRange range;
    if (json[0].is_number()) range.low = json[0].get<double>();
    if (json[1].is_number()) range.high = json[1].get<double>();
    if (!(range.low < range.high)) at.error("must have a lower end below its upper one");
    return range;
  };
  const auto write = [](const ValueRange& range) {
    const auto end = [](double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); };
    return Json::array({end(range.low), end(range.high)});
  };
  const Json schema = {
      {"type", "array"}, {"items", {{"type", {"number", "null"}}}}, {"minItems", 2}, {"maxItems", 2}};
  return custom<ValueRange>({"a range such as [0, 1] or [0, null]", schema, read, write});
}

}  // namespace jigsaw::inline fields
