#include "fields/augment_options.h"

#include "base/text.h"
#include "config/config.h"

namespace jigsaw::inline fields {

namespace {

bool is_range(const std::vector<double>& ends) {
  return ends.empty() || (ends.size() == 2 && ends[0] <= ends[1]);
}

/// What may have a probability, and whether it is asked for.
std::map<std::string, bool> changes_of(const AugmentOptions& o) {
  return {{"rotation", !o.rotation.empty()},
          {"scale", !o.scale.empty()},
          {"elastic", o.elastic > 0},
          {"brightness", !o.brightness.empty()},
          {"shift", o.shift > 0},
          {"gamma", !o.gamma.empty()},
          {"noise", o.noise > 0},
          {"blur", o.blur > 0}};
}

}  // namespace

void declare(Keys<AugmentOptions>& keys) {
  using O = AugmentOptions;
  keys.add("probability", &O::probability)
      .range(0, 1)
      .idle_unless(here("rotation").is_given() || here("scale").is_given() || here("elastic").above(0) ||
                   here("brightness").is_given() || here("shift").above(0) || here("gamma").is_given() ||
                   here("noise").above(0) || here("blur").above(0))
      .doc(
          "With which each of rotation, scale, elastic, brightness, shift, gamma, noise and blur is applied "
          "to a sample.");
  keys.add("probabilities", &O::probabilities)
      .range(0, 1)
      .doc("Those of single ones, where they are others: {\"rotation\": 0.2, \"noise\": 0.1}.");
  keys.add("foreground", &O::foreground)
      .range(0, 1)
      .doc(
          "The part of the crops, at random, that hold a point of a class above 0: one of those that the "
          "image has, each as likely. Needs data.classes.");
  keys.add("rotation", &O::rotation, one_or_list<double>())
      .range(0, 180)
      .doc(
          "Largest angle in degrees by which samples are turned either way, about the axes of depth, height "
          "and width in turn: one number for all or three; one of images in the plane. []: none. Distances "
          "are those of the file's spacing where it says one.")
      .must("be [], one number, or three",
            [](const auto& angles) { return angles.size() < 2 || angles.size() == 3; });
  keys.add("scale", &O::scale)
      .above(0)
      .doc("Least and largest factor by which what samples show is enlarged; []: none.")
      .must("be [] or [least, largest]", is_range);
  keys.add("elastic", &O::elastic)
      .at_least(0)
      .doc(
          "Standard deviation in points of random displacements, between which cubic B-splines pass; 0: "
          "none.");
  keys.add("elastic_spacing", &O::elastic_spacing)
      .at_least(2)
      .idle_unless(here("elastic").above(0))
      .doc("Points from one random displacement to the next along each dim.");
  keys.add("brightness", &O::brightness)
      .above(0)
      .doc(
          "Least and largest factor of the normalised inputs, drawn evenly, one for all inputs of a sample; "
          "[]: none. Task map only.")
      .must("be [] or [least, largest]", is_range);
  keys.add("shift", &O::shift)
      .at_least(0)
      .doc(
          "Largest number that is added to the inputs or taken from them, in standard deviations of the "
          "variable, drawn evenly, one for all inputs of a sample; 0: none. Task map only.");
  keys.add("gamma", &O::gamma)
      .above(0)
      .doc(
          "Least and largest exponent γ, drawn evenly in its logarithm: values up to three deviations from "
          "the mean are taken for 0 to 1 and become their γ-th power; []: none. Task map only.")
      .must("be [] or [least, largest]", is_range);
  keys.add("noise", &O::noise)
      .at_least(0)
      .doc(
          "Largest standard deviation of normal noise on the inputs, in standard deviations of the variable, "
          "drawn evenly from 0 on; 0: none. Task map only.");
  keys.add("blur", &O::blur)
      .range(0, 10)
      .doc(
          "Largest standard deviation in points of a Gaussian by which inputs are blurred, drawn evenly from "
          "0 on; 0: none. Task map only.");
  keys.check([](const O& o, const Place& at) {
    const std::map<std::string, bool> changes = changes_of(o);
    std::vector<std::string> known;
    for (const auto& [change, asked] : changes) known.push_back(change);
    for (const auto& [name, probability] : o.probabilities) {
      const auto change = changes.find(name);
      if (change == changes.end())
        at.error("probabilities", concat("names ", quote(name), ", which is no change",
                                         did_you_mean(name, known), "; known: ", join(known, ", ")));
      if (!change->second)
        at.error("probabilities", concat("names ", name, ", which is not asked for; leave it out"));
    }
  });
}

}  // namespace jigsaw::inline fields
