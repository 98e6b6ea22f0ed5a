#pragma once
#include "config/keys.h"
#include "layers/layer.h"

namespace jigsaw::inline layers {

/// What bends the numbers inside a layer, by its name in the configuration.
enum class ActivationKind : std::uint8_t {
  kNone,
  kGelu,
  kRelu,
  kSilu,
  kTanh,
  kSigmoid,
  kMish,
  kLeakyRelu,
  kPrelu
};

std::vector<ChoiceForm<ActivationKind>::Entry> activation_choices();

/// The key "activation" of a layer's options. @param where  of its doc: "behind the first map".
template <typename Options, typename Owner>
void declare_activation(Keys<Options>& keys, ActivationKind Owner::*member, const char* where) {
  keys.choice("activation", member, activation_choices()).doc(concat("What is applied ", where, "."));
}

/// An activation inside a layer, with its parameter if it has one: of "prelu" slope [C] of 0.25
/// (torch.nn.PReLU with a slope for each channel).
class InnerActivation {
 public:
  /// @param site      of the activation.
  /// @param channels  numbers of the dim that has slopes of its own.
  InnerActivation(const LayerSite& site, ActivationKind kind, std::int64_t channels);

  /// The last pass of a layer: residual + dropout(activation(x + bias)), as `rest` says but for the
  /// activation.
  /// @param channel  letter of the dim that has slopes.
  Variable run(Tape& tape, const Variable& x, Pointwise rest, char channel) const;
  /// residual + activation(x) of a field; the residual may be undefined.
  Variable run(Tape& tape, const Variable& x, const Variable& residual) const;

  bool none() const { return kind_ == ActivationKind::kNone; }
  /// The activation for an operation that applies it to its own result; of "prelu", which has a parameter,
  /// none.
  Activation function() const;
  /// residual + what function() leaves to do behind that operation.
  Variable run_behind(Tape& tape, const Variable& x, const Variable& residual) const;

 private:
  ActivationKind kind_;
  Variable slope_;  ///< may be undefined
};

}  // namespace jigsaw::inline layers
