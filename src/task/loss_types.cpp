#include "task/loss_types.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <utility>

#include "base/error.h"
#include "config/config.h"

namespace jigsaw::inline task {

enum class LevelWeights : std::uint8_t { kEqual, kPressure };

namespace {

// ---- What single losses have as keys

struct NoParameters {};
struct HuberParameters {
  double delta = 1.0;
};
struct CrpsParameters {
  double alpha = 0.95;
};
struct DiceParameters {
  double smoothing = 1.0;
  bool include_background = true;
};

template <typename Parameters, typename O>
void declare_parameters(Keys<O>& keys) {
  if constexpr (std::is_same_v<Parameters, HuberParameters>) {
    keys.add("delta", &O::delta).above(0).doc("Where squares turn into absolute values, in deviations.");
  } else if constexpr (std::is_same_v<Parameters, CrpsParameters>) {
    keys.add("alpha", &O::alpha)
        .range(0, 1)
        .doc(
            "1: the fair score, which no number of members biases; 0: the score of the members as if there "
            "were no others. A little below 1 keeps a member from being free to be anywhere where all others "
            "are right.");
  } else if constexpr (std::is_same_v<Parameters, DiceParameters>) {
    keys.add("smoothing", &O::smoothing)
        .above(0)
        .doc("Points added to numerator and denominator, so that a class that is nowhere counts as found.");
    keys.add("include_background", &O::include_background)
        .doc(
            "Whether class 0 is among the classes over which dice is the mean, as in MONAI's DiceLoss; "
            "probabilities are of all classes either way, and cross_entropy keeps class 0.");
  }
}

template <typename O>
void declare_area(Keys<O>& keys) {
  keys.add("area_weighted", &O::area_weighted)
      .counts_where(where("data.task").is("forecast") && where("data.dims").is(Json::array()))
      .doc("Whether points count by the area of their cells.");
}

template <typename O>
void declare_variables(Keys<O>& keys) {
  keys.add("variable_weights", &O::variable_weights)
      .at_least(0)
      .doc(
          "Weight of target variables by name, as in t2m, t_850, or t for all its levels; 1 for those not "
          "named.");
  keys.choice("level_weights", &O::level_weights,
              {{"equal", LevelWeights::kEqual, "All levels count alike."},
               {"pressure", LevelWeights::kPressure,
                "A level counts by its pressure over the mean pressure of the variable's levels."}})
      .counts_where(where("data.task").is("forecast") && where("data.dims").is(Json::array()))
      .doc("How levels of a variable count, times variable_weights.");
}

template <typename O>
void declare_classes(Keys<O>& keys) {
  keys.add("class_weights", &O::class_weights, auto_or(form_of<std::vector<double>>(), "frequency"))
      .at_least(0)
      .doc(
          "Weight of each class; []: all alike. \"frequency\": of N points of the training parts with labels "
          "of K classes n_k are of class k, whose weight is N/(K·n_k), 0 where there are none.");
  keys.add("batch", &O::batch)
      .doc(
          "Whether sums over points go through all samples that are computed at once (train.batch_size / "
          "train.accumulate), as torch.nn.functional.cross_entropy and MONAI's DiceLoss with batch=True have "
          "it; else the loss is the mean of the samples' own, as it is in validations.");
}

}  // namespace

/// A loss between numbers that is a single term.
template <typename Parameters>
struct FieldLossType : Parameters {
  bool area_weighted = true;
  std::map<std::string, double> variable_weights;
  LevelWeights level_weights = LevelWeights::kEqual;
};
template <typename Parameters>
void declare(Keys<FieldLossType<Parameters>>& keys) {
  declare_area(keys);
  declare_parameters<Parameters>(keys);
  declare_variables(keys);
}

/// A loss of classes that is a single term.
template <typename Parameters>
struct ClassLossType : Parameters {
  bool area_weighted = true;
  std::optional<std::vector<double>> class_weights = std::vector<double>{};
  bool batch = false;
};
template <typename Parameters>
void declare(Keys<ClassLossType<Parameters>>& keys) {
  declare_area(keys);
  declare_classes(keys);
  declare_parameters<Parameters>(keys);
}

/// The same among the terms of a sum.
template <typename Parameters>
struct TermType : Parameters {
  double weight = 1.0;
};
template <typename Parameters>
void declare(Keys<TermType<Parameters>>& keys) {
  keys.add("weight", &TermType<Parameters>::weight).at_least(0).doc("Factor of the term in the sum.");
  declare_parameters<Parameters>(keys);
}

namespace {

const TagRegistry& term_types();

}  // namespace

struct LossSumType {
  std::vector<Tagged> terms;
  bool area_weighted = true;
  std::map<std::string, double> variable_weights;
  LevelWeights level_weights = LevelWeights::kEqual;
  std::optional<std::vector<double>> class_weights = std::vector<double>{};
  bool batch = false;
};

namespace {

/// The summands that some terms are, of either kind.
struct Summands {
  std::vector<ErrorTerm> fields;
  std::vector<ClassTerm> classes;
};

Summands summands_of(const std::vector<Tagged>& terms);

}  // namespace

void declare(Keys<LossSumType>& keys) {
  using O = LossSumType;
  keys.tagged("terms", &O::terms, term_types)
      .required()
      .not_empty()
      .doc("What is added up: losses between numbers, or losses of classes.");
  declare_area(keys);
  declare_variables(keys);
  declare_classes(keys);
  keys.check([](const O& o, const Place& at) {
    const Summands summands = summands_of(o.terms);
    if (!summands.fields.empty() && !summands.classes.empty())
      at.error("terms", "must all compare numbers, or all compare probabilities of classes with labels");
    if (summands.classes.empty() && !(o.class_weights && o.class_weights->empty()))
      at.error("class_weights", "are for terms that compare probabilities of classes with labels");
    if (summands.classes.empty() && o.batch)
      at.error("batch", "is for terms that compare probabilities of classes with labels");
    if (summands.fields.empty() && !o.variable_weights.empty())
      at.error("variable_weights", "are for terms that compare numbers");
    if (summands.fields.empty() && o.level_weights != LevelWeights::kEqual)
      at.error("level_weights", "are for terms that compare numbers");
    const auto weighs = [](const auto& term) { return term.weight > 0; };
    if (std::none_of(summands.fields.begin(), summands.fields.end(), weighs) &&
        std::none_of(summands.classes.begin(), summands.classes.end(), weighs))
      at.error("terms", "must leave a term a weight above 0");
  });
}

namespace {

/// The losses by name: alone, and as terms of a sum.
class Losses {
 public:
  Losses() : types_("loss", "mse"), terms_("loss term") {
    add<FieldLossType, NoParameters>("mse", "Mean of squared errors.",
                                     [](const NoParameters&, double weight) {
                                       return Summands{{{ErrorNorm::kSquared, weight}}, {}};
                                     });
    add<FieldLossType, NoParameters>("l1", "Mean of absolute errors.",
                                     [](const NoParameters&, double weight) {
                                       return Summands{{{ErrorNorm::kAbsolute, weight}}, {}};
                                     });
    add<FieldLossType, HuberParameters>(
        "huber", "Mean of e²/2 for errors e up to delta, and of delta·(|e| − delta/2) beyond.",
        [](const HuberParameters& huber, double weight) {
          return Summands{{{{ErrorNorm::kHuber, huber.delta}, weight}}, {}};
        });
    add<FieldLossType, NoParameters>(
        "log_cosh", "Mean of ln cosh e: about e²/2 of small errors, |e| − ln 2 of large ones.",
        [](const NoParameters&, double weight) {
          return Summands{{{ErrorNorm::kLogCosh, weight}}, {}};
        });
    add<FieldLossType, CrpsParameters>(
        "crps",
        "Almost fair continuous ranked probability score of ensemble.members at each point: the mean "
        "of |x_j − y| less (1 − (1 − alpha)/M)/(2·M·(M − 1)) times the sum of |x_j − x_k|.",
        [](const CrpsParameters& crps, double weight) {
          return Summands{{{ErrorMeasure::crps(crps.alpha), weight}}, {}};
        });
    add<ClassLossType, NoParameters>(
        "cross_entropy", "Mean of −log of the probability of each point's label; needs data.classes.",
        [](const NoParameters&, double weight) {
          return Summands{{}, {{ClassTerm::Kind::kCrossEntropy, weight}}};
        });
    add<ClassLossType, DiceParameters>(
        "dice",
        "Mean over classes of 1 − (2·Σ p·t + smoothing)/(Σ p + Σ t + smoothing), p the probabilities and t 1 "
        "where the label is the class; needs data.classes.",
        [](const DiceParameters& dice, double weight) {
          return Summands{{}, {{ClassTerm::Kind::kDice, weight, dice.smoothing, dice.include_background}}};
        });
    add<ClassLossType, DiceParameters>(
        "dice_cross_entropy", "The sum of dice and cross_entropy.",
        [](const DiceParameters& dice, double weight) {
          return Summands{{},
                          {{ClassTerm::Kind::kCrossEntropy, weight},
                           {ClassTerm::Kind::kDice, weight, dice.smoothing, dice.include_background}}};
        });
    types_.add<LossSumType>("sum", "A weighted sum of others, its terms.");
    for (TagRegistry* registry : {&types_, &terms_}) {
      for (const char* name : {"mae", "L1", "absolute", "l1_loss"}) registry->suggest_for(name, "l1");
      for (const char* name : {"rmse", "l2", "L2", "squared", "mse_loss"}) registry->suggest_for(name, "mse");
    }
    fields_["sum"] = [](const Tagged& loss) {
      const auto& sum = loss.options<LossSumType>();
      return FieldLossOptions{summands_of(sum.terms).fields, sum.area_weighted, sum.variable_weights,
                              sum.level_weights == LevelWeights::kPressure};
    };
    classes_["sum"] = [](const Tagged& loss) {
      const auto& sum = loss.options<LossSumType>();
      return ClassLossOptions{summands_of(sum.terms).classes,
                              sum.area_weighted,
                              sum.class_weights.value_or(std::vector<double>{}),
                              !sum.class_weights,
                              false,
                              sum.batch};
    };
  }

  const TagRegistry& types() const { return types_; }
  const TagRegistry& terms() const { return terms_; }
  FieldLossOptions fields(const Tagged& loss) const {
    const auto found = fields_.find(loss.type());
    return found == fields_.end() ? FieldLossOptions{{}, true, {}, false} : found->second(loss);
  }
  ClassLossOptions classes(const Tagged& loss) const {
    const auto found = classes_.find(loss.type());
    return found == classes_.end() ? ClassLossOptions{} : found->second(loss);
  }
  Summands summands(const Tagged& term) const { return summands_.at(term.type())(term); }

 private:
  template <template <typename> typename Type, typename Parameters>
  void add(const char* name, const char* doc, Summands (*make)(const Parameters&, double weight)) {
    types_.add<Type<Parameters>>(name, doc);
    terms_.add<TermType<Parameters>>(name, doc);
    if constexpr (std::is_same_v<Type<Parameters>, FieldLossType<Parameters>>) {
      fields_[name] = [make](const Tagged& loss) {
        const auto& options = loss.options<FieldLossType<Parameters>>();
        return FieldLossOptions{make(options, 1).fields, options.area_weighted, options.variable_weights,
                                options.level_weights == LevelWeights::kPressure};
      };
    } else {
      classes_[name] = [make](const Tagged& loss) {
        const auto& options = loss.options<ClassLossType<Parameters>>();
        return ClassLossOptions{make(options, 1).classes,
                                options.area_weighted,
                                options.class_weights.value_or(std::vector<double>{}),
                                !options.class_weights,
                                false,
                                options.batch};
      };
    }
    summands_[name] = [make](const Tagged& term) {
      const auto& options = term.options<TermType<Parameters>>();
      return make(options, options.weight);
    };
  }

  TagRegistry types_, terms_;
  std::map<std::string, std::function<FieldLossOptions(const Tagged&)>> fields_;
  std::map<std::string, std::function<ClassLossOptions(const Tagged&)>> classes_;
  std::map<std::string, std::function<Summands(const Tagged&)>> summands_;
};

const Losses& losses() {
  static const Losses instance;
  return instance;
}

const TagRegistry& term_types() {
  return losses().terms();
}

Summands summands_of(const std::vector<Tagged>& terms) {
  Summands all;
  for (const Tagged& term : terms) {
    const Summands each = losses().summands(term);
    all.fields.insert(all.fields.end(), each.fields.begin(), each.fields.end());
    all.classes.insert(all.classes.end(), each.classes.begin(), each.classes.end());
  }
  return all;
}

}  // namespace

const TagRegistry& loss_types() {
  return losses().types();
}

FieldLossOptions field_loss_options(const Tagged& loss) {
  FieldLossOptions options = losses().fields(loss);
  if (!options.terms.empty()) return options;
  throw ConfigError(
      "loss.type compares classes, and the targets are numbers; set data.classes, or loss.type \"mse\"");
}

FieldLossOptions field_loss_options(const Tagged& loss, const std::vector<Channel>& targets) {
  FieldLossOptions options = field_loss_options(loss);
  const std::map<std::string, double> given = std::exchange(options.variable_weights, {});
  std::map<std::string, std::vector<double>> levels;
  for (const Channel& target : targets) {
    if (target.field.level) levels[target.field.variable].push_back(*target.field.level);
  }
  std::set<std::string> variables;
  for (const Channel& target : targets) {
    const std::string& variable = target.field.variable;
    if (target.name != variable) variables.insert(variable);
    double weight = 1;
    for (const std::string& name : {variable, target.name}) {
      if (const auto found = given.find(name); found != given.end()) weight = found->second;
    }
    if (options.by_pressure && target.field.level) {
      const std::vector<double>& all = levels.at(variable);
      if (*target.field.level <= 0) {
        throw ConfigError(concat("loss.level_weights is \"pressure\", and the level ", *target.field.level,
                                 " of ", variable, " is no pressure; \"equal\" counts all levels alike"));
      }
      weight *= *target.field.level * static_cast<double>(all.size()) /
                std::accumulate(all.begin(), all.end(), 0.0);
    }
    options.variable_weights[target.name] = weight;
  }
  // What names neither a target nor a variable is refused with the others.
  for (const auto& [name, weight] : given) {
    if (!variables.contains(name)) options.variable_weights.emplace(name, weight);
  }
  return options;
}

bool has_crps(const Tagged& loss) {
  const std::vector<ErrorTerm> terms = losses().fields(loss).terms;
  return std::any_of(terms.begin(), terms.end(), [](const ErrorTerm& term) {
    return term.measure.norm == ErrorNorm::kCrps && term.weight > 0;
  });
}

FieldLossOptions image_loss_options(const Tagged& loss, const std::vector<Channel>& targets) {
  if (has_crps(loss))
    throw ConfigError(
        "loss has a term \"crps\", which compares members of forecasts, and data.task is of images");
  return field_loss_options(loss, targets);
}

ClassLossOptions class_loss_options(const Tagged& loss, bool regions) {
  ClassLossOptions options = losses().classes(loss);
  options.regions = regions;
  if (regions && (options.by_frequency || !options.class_weights.empty()))
    throw ConfigError("loss.class_weights must be [] with data.regions, which all count alike");
  const auto leaves_out = [](const ClassTerm& term) { return term.first() > 0; };
  if (regions && std::any_of(options.terms.begin(), options.terms.end(), leaves_out))
    throw ConfigError("loss.include_background must be true with data.regions, none of which is background");
  if (!options.terms.empty()) return options;
  throw ConfigError(
      "loss.type compares numbers, but data.classes says that targets are labels; set it to "
      "\"cross_entropy\", \"dice\" or \"dice_cross_entropy\"");
}

}  // namespace jigsaw::inline task
