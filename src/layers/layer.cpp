#include "layers/layer.h"

#include "base/error.h"
#include "base/text.h"
#include "layers/limits.h"

namespace jigsaw::inline layers {

std::string FieldShape::to_string() const {
  return concat(space, " × ", channels, " channels");
}

std::string contradiction(const FieldShape& a, const FieldShape& b) {
  if (!a.rows || !b.rows || *a.rows == *b.rows) return "";
  return concat("rows that are \"", name(*a.rows), "\", where they began with \"", name(*b.rows), "\"");
}

std::string space_letters(int space) {
  require(space >= 1 && space <= 3, "fields have 1 to 3 spatial dims");
  return std::string("dhw").substr(static_cast<std::size_t>(3 - space));
}

std::string field_letters(int space, char channel) {
  return "b" + space_letters(space) + channel;
}

Variable LayerSite::parameter(const std::string& name, const Shape& shape, Initial initial) const {
  if (shape.count() > kMostElements)
    throw ConfigError(concat(key, " makes a parameter of ", shape, ", more than any machine holds"));
  return Variable(parameters.add(path.empty() ? name : path + "." + name, shape, initial));
}

Variable LayerSite::weight(const std::string& name, const Shape& shape, Initial initial, int dim) const {
  Variable made = parameter(name, shape, initial);
  made.parameter()->set_noise({dim, input.noise});
  return made;
}

Variable LayerSite::statistic(const std::string& name, std::int64_t channels, double start,
                              double momentum) const {
  return Variable(parameters.add(path.empty() ? name : path + "." + name, {channels},
                                 Initial::constant(start), momentum));
}

LayerSite LayerSite::inner(const std::string& name, const FieldShape& shape) const {
  return {parameters, path.empty() ? name : path + "." + name, shape, key};
}

LayerSite LayerSite::at_root(const std::string& name, const FieldShape& shape) const {
  return {parameters, name, shape, key};
}

void LayerSite::error(const std::string& name, const std::string& sentence) const {
  throw ConfigError(concat(key, ".", name, " ", sentence));
}

void Layer::keep_rows(const FieldShape& input) {
  if (!output_.rows && output_.space == input.space) output_.rows = input.rows;
}

Variable add_residual(Tape& tape, const Variable& y, const Variable& residual) {
  if (!residual.defined()) return y;
  Pointwise sum;
  sum.letters = std::string("bdhwcpq").substr(0, static_cast<std::size_t>(y.shape().rank()));
  sum.residual = residual;
  return pointwise(tape, y, sum);
}

}  // namespace jigsaw::inline layers
