#pragma once
#include "config/keys.h"

namespace jigsaw::inline config {

/// Any JSON value, as it is.
class AnyForm final : public FormOf<Json> {
 public:
  std::string text(Wording wording) const override { return noun("a value", wording); }
  bool accepts(const Json& /*json*/) const override { return true; }
  Json schema(const Json& /*default_value*/, SchemaDefinitions& /*definitions*/) const override {
    return Json::object();
  }
  void read(const Json& json, Json& value, const Place& /*at*/) const override { value = json; }
  Json write(const Json& value) const override { return value; }
};

/// The usual form of a Json member; see form_of().
inline FormPtr<Json> form_for(TypeTag<Json> /*tag*/) {
  return std::make_unique<AnyForm>();
}

}  // namespace jigsaw::inline config
