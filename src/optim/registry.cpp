#include "optim/registry.h"

#include <functional>
#include <map>

#include "optim/adamw.h"
#include "optim/sgd.h"

namespace jigsaw::inline optim {

namespace {

class Optimizers {
 public:
  Optimizers() : types_("optimizer", "adamw") {
    add<AdamWOptions>("adamw", "AdamW, as torch.optim.AdamW, or Adam (decoupled_weight_decay).");
    add<SgdOptions>("sgd",
                    "Gradient descent with momentum, as torch.optim.SGD but that its decay is decoupled "
                    "(decoupled_weight_decay).");
  }

  struct Entry {
    std::function<const OptimizerOptions&(const Tagged&)> common;
    std::function<std::unique_ptr<UpdateRule>(const Tagged&)> make;
  };
  const TagRegistry& types() const { return types_; }
  const Entry& at(const std::string& name) const { return entries_.at(name); }

 private:
  template <typename Options>
  void add(const char* name, const char* doc) {
    types_.add<Options>(name, doc);
    entries_[name] = {
        [](const Tagged& tagged) -> const OptimizerOptions& { return tagged.options<Options>(); },
        [](const Tagged& tagged) { return make_rule(tagged.options<Options>()); }};
  }

  TagRegistry types_;
  std::map<std::string, Entry> entries_;
};

class Schedules {
 public:
  using Make = std::function<std::unique_ptr<Schedule>(const Tagged&, double)>;

  Schedules() : types_("schedule", "cosine") {
    add<CosineOptions>("cosine", "Half a cosine from the learning rate to the final one.");
    add<PolyOptions>("poly", "A power of the part of the steps still to come, from the learning rate to 0.");
    add<StepsOptions>("steps", "The learning rate, smaller by a factor from each of some steps on.");
    add<ConstantOptions>("constant", "The learning rate throughout, but for its warm-up and cooldown.");
  }
  const TagRegistry& types() const { return types_; }
  const Make& at(const std::string& name) const { return makes_.at(name); }

 private:
  template <typename Options>
  void add(const char* name, const char* doc) {
    types_.add<Options>(name, doc);
    makes_[name] = [](const Tagged& tagged, double rate) {
      return make_schedule(tagged.options<Options>(), rate);
    };
  }

  TagRegistry types_;
  std::map<std::string, Make> makes_;
};

const Optimizers& optimizers() {
  static const Optimizers instance;
  return instance;
}

const Schedules& schedules() {
  static const Schedules instance;
  return instance;
}

}  // namespace

const TagRegistry& optimizer_types() {
  return optimizers().types();
}
const OptimizerOptions& common_options(const Tagged& optimizer) {
  return optimizers().at(optimizer.type()).common(optimizer);
}
std::unique_ptr<UpdateRule> make_rule(const Tagged& optimizer) {
  return optimizers().at(optimizer.type()).make(optimizer);
}

const TagRegistry& schedule_types() {
  return schedules().types();
}
std::unique_ptr<Schedule> make_schedule(const Tagged& schedule, double learning_rate) {
  return schedules().at(schedule.type())(schedule, learning_rate);
}

}  // namespace jigsaw::inline optim
