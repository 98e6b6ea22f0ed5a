// The keys of images and of sequences of them, and what these have to fulfil together with others.
#include <algorithm>
#include <set>

#include "base/text.h"
#include "config/config.h"
#include "fields/data_forms.h"
#include "fields/data_options.h"

namespace jigsaw::inline fields {

namespace {

Condition of_images() {
  return here("task").is_one_of({"denoise", "map"});
}

void check_augment(const DataOptions& o, const Place& at) {
  const AugmentOptions& augment = o.augment;
  const std::size_t axes = o.space().size();
  if (augment.rotation.size() > 1 && augment.rotation.size() != (axes == 3 ? 3U : 1U))
    at.error("augment.rotation", "must be one number for images in the plane");
  if (augment.foreground > 0 && o.classes == 0)
    at.error("augment.foreground", "needs labels, with data.classes");
  if (augment.foreground > 0 && o.crop.empty()) at.error("augment.foreground", "needs data.crop");
  if (augment.changes_inputs() && o.task != Task::kMap)
    at.error("augment", "has brightness, shift, gamma, noise or blur, which are for the task map");
}

void require_one_per_axis(const DataOptions& o, std::size_t size, const char* key, const Place& at) {
  const std::size_t axes = o.space().size();
  if (size == 0 || size == axes) return;
  at.error(key, concat("must have one number per spatial dimension of data.dims, ", axes, ", not ", size));
}

void check_labels(const DataOptions& o, const Place& at) {
  if (o.labels.empty() || o.classes == 0) return;
  if (std::ssize(o.labels) != o.classes) {
    at.error("labels", concat("must have an entry for each class, ", o.classes, " by data.classes, and has ",
                              o.labels.size()));
  }
  std::set<std::int64_t> seen;
  for (const std::vector<std::int64_t>& numbers : o.labels) {
    if (numbers.empty()) at.error("labels", "must name a number for each class, and an entry is []");
    for (const std::int64_t number : numbers) {
      if (!seen.insert(number).second) at.error("labels", concat("names the number ", number, " twice"));
      if (number == o.ignore_index)
        at.error("labels", concat("names the number ", number, ", which is data.ignore_index"));
    }
  }
}

void check_regions(const DataOptions& o, const Place& at) {
  for (std::size_t r = 0; r < o.regions.size() && o.classes > 0; ++r) {
    const std::vector<std::int64_t>& region = o.regions[r];
    if (region.empty()) at.error("regions", "must name a class for each region, and an entry is []");
    if (!distinct(region)) at.error("regions", concat("names a class twice in region ", r));
    for (const std::int64_t k : region) {
      if (k < o.classes) continue;
      at.error("regions", concat("names the class ", k, ", and those of classes ", o.classes, " are 0 to ",
                                 o.classes - 1));
    }
  }
  // A point is written as the first class of the last region that it is in.
  for (std::size_t r = 0; r < o.regions.size(); ++r) {
    for (std::size_t later = r + 1; later < o.regions.size() && !o.regions[r].empty(); ++later) {
      if (std::ranges::find(o.regions[later], o.regions[r].front()) == o.regions[later].end()) continue;
      at.error("regions",
               concat("must begin each region with a class that no later one has, for as that its "
                      "points are written: region ",
                      r, " begins with ", o.regions[r].front(), ", which region ", later, " has, too"));
    }
  }
}

}  // namespace

void declare_images(Keys<DataOptions>& keys) {
  const std::string sample = "Images, volumes or sequences of their own; without it each file holds one.";
  keys.add("dims", &DataOptions::dims, std::make_unique<ListForm<ImageDim>>(dim_form(sample)))
      .doc(
          "What the dimensions of the data sets of images are, in their order in the files. A data set may "
          "lack \"channel\". Required by the tasks denoise and map. With the task forecast: those of "
          "sequences of "
          "states, with \"time\", as [\"sample\", \"time\", \"depth\", \"height\", \"width\"], or "
          "[\"time\", \"width\"] along a line, which have neither dates nor latitudes and longitudes "
          "(docs/data.md); [] for fields that do.")
      .must("name nothing twice", distinct<ImageDim>)
      .must("hold \"width\", or \"height\" and \"width\", or all of [\"depth\", \"height\", \"width\"]",
            [](const auto& dims) {
              const auto has = [&](ImageDim dim) {
                return std::find(dims.begin(), dims.end(), dim) != dims.end();
              };
              return dims.empty() ||
                     (has(ImageDim::kWidth) && (has(ImageDim::kHeight) || !has(ImageDim::kDepth)));
            });
  keys.add("targets", &DataOptions::targets, variables_form())
      .counts_where(here("task").is("map"))
      .doc("The targets of the task map.");
  keys.add("crop", &DataOptions::crop)
      .counts_where(of_images())
      .range(1, kLongestAxis)
      .doc(
          "Extents of the crops that images are trained on, [depth, height, width] or [height, width], each "
          "from a random place of a training part; [] to train on whole parts. Validation covers its parts "
          "with tiles of this size.");
  keys.add("pad", &DataOptions::pad)
      .counts_where(of_images() && here("crop").is_given())
      .doc(
          "Whether images and parts may be smaller than data.crop: they lie in its middle, beyond them "
          "inputs are 0, the mean, and targets do not count, as where `predict` meets a small image. Else "
          "they "
          "are refused.");
  keys.add("alignment", &DataOptions::alignment)
      .counts_where(of_images())
      .changeable()
      .at_least(0)
      .doc(
          "So far apart the corners of an image may lie in the world from those of the first variable's "
          "image of the same case, of the shortest edge of a voxel, where both files say where they lie "
          "(NIfTI's sform or qform, an attribute affine). null: places are not compared, and points are "
          "paired by their indices in the files, those of NIfTI turned as the first variable's.");
  keys.add("spacing", &DataOptions::spacing)
      .counts_where(of_images())
      .above(0)
      .doc(
          "Distance of points in mm, [depth, height, width] or [height, width], to which all images are "
          "brought from that of their files, linearly, labels by the nearest point; crops and slices count "
          "the new points, and predict brings its results back to those of the files. []: they stay as they "
          "are.");
  keys.add("flips", &DataOptions::flips, std::make_unique<ListForm<ImageDim>>(dim_form(sample)))
      .counts_where(of_images())
      .doc("Spatial dimensions along which every second training sample, at random, is mirrored.")
      .must("name spatial dimensions, each once", [](const auto& flips) {
        return distinct(flips) && std::all_of(flips.begin(), flips.end(), is_spatial);
      });
  keys.add("noise_sigma", &DataOptions::noise_sigma)
      .counts_where(here("task").is("denoise"))
      .above(0)
      .doc("Standard deviation of the normal noise of the task denoise, in the unit of the variables.");
  keys.add("classes", &DataOptions::classes)
      .counts_where(here("task").is("map"))
      .at_least(0)
      .doc(
          "How many classes the labels name, 0 to classes − 1, where the target of map is labels; 0: it is "
          "numbers.");
  keys.add("labels", &DataOptions::labels,
           std::make_unique<ListForm<std::vector<std::int64_t>>>(one_or_list<std::int64_t>()))
      .counts_where(here("classes").above(0))
      .range(0, 32767)
      .doc(
          "Of each class in turn the number, or numbers, that label files have for it, where they are not 0 "
          "to "
          "classes − 1, or are to be one: [0, [1, 2], 4]. predict writes the first number of a class.");
  keys.add("regions", &DataOptions::regions,
           std::make_unique<ListForm<std::vector<std::int64_t>>>(one_or_list<std::int64_t>()))
      .counts_where(here("classes").above(0))
      .at_least(1)
      .doc(
          "Regions that the model predicts in place of the classes, each of one or several of them, which "
          "may "
          "overlap: [[1, 2, 3], [2, 3], 3]. Each is a channel of its own behind a sigmoid. predict writes "
          "the "
          "first class of the last region that a point is in, and class 0 where it is in none.");
  keys.add("ignore_index", &DataOptions::ignore_index)
      .counts_where(here("classes").above(0))
      .doc("The label of points that do not count; null: none.");
  keys.choice(
          "intensity", &DataOptions::intensity,
          {{"data_set", ImageIntensity::kDataSet,
            "Mean and standard deviation over the training parts (data.normalization)."},
           {"zscore", ImageIntensity::kZScore, "Mean and standard deviation of each image of its own."},
           {"zscore_nonzero", ImageIntensity::kZScoreNonzero,
            "The same of its points that are not 0, and these stay 0, as around a brain that was cut out."},
           {"percentiles", ImageIntensity::kPercentiles,
            "Two percentiles of each image, between which values become −1 to 1; those beyond are cut off."}})
      .counts_where(here("task").is("map"))
      .doc("What the inputs of images are normalised by.");
  keys.add("percentiles", &DataOptions::percentiles)
      .counts_where(here("intensity").is("percentiles"))
      .range(0, 100)
      .doc("The lower and the upper percentile of data.intensity.")
      .must("be two numbers, the lower one first",
            [](const auto& ends) { return ends.size() == 2 && ends[0] < ends[1]; });
  keys.add("intensities", &DataOptions::intensities)
      .counts_where(here("task").is("map"))
      .doc(
          "What becomes of the values of an input, by the name of its variable, or of one of its channels, "
          "as image_0, before or in place of data.intensity: {\"ct\": {\"clip\": [-1000, 400]}}.");
  keys.add("augment", &DataOptions::augment)
      .counts_where(of_images())
      .doc("How training samples are changed at random: the same on every mesh, by step and sample.");
}

void check_sequences(const DataOptions& o, const Place& at) {
  require_one_per_axis(o, o.shape.size(), "shape", at);
  for (const auto& [key, parts] : {std::pair{"train", &o.train}, std::pair{"valid", &o.valid}}) {
    for (const DataPart& part : *parts) {
      for (const auto& [dim, range] : std::get<SliceRanges>(part).of) {
        if (is_spatial(dim))
          at.error(key, concat("takes slices of ", name(dim),
                               ", and forecasts are of whole fields; name \"sample\", \"time\" or \"case\""));
      }
    }
  }
}

void check_images(const DataOptions& o, const Place& at) {
  check_augment(o, at);
  if (o.dims.empty())
    at.error("dims", "must say what the dimensions are, as [\"depth\", \"height\", \"width\"]");
  if (std::ranges::find(o.dims, ImageDim::kTime) != o.dims.end())
    at.error("dims",
             "must not name \"time\" but where data.task is \"forecast\"; here each state of a "
             "sequence is an image of its own, a \"sample\"");
  const std::vector<ImageDim> space = o.space();
  if (space.size() == 1)
    at.error("dims",
             "must hold \"height\" and \"width\"; fields along a line are for data.task \"forecast\"");
  require_one_per_axis(o, o.crop.size(), "crop", at);
  require_one_per_axis(o, o.spacing.size(), "spacing", at);
  require_one_per_axis(o, o.shape.size(), "shape", at);
  for (const ImageDim dim : o.flips) {
    if (std::find(space.begin(), space.end(), dim) == space.end()) {
      at.error("flips", concat("names ", name(dim), ", which data.dims lacks"));
    }
  }
  for (const auto& [key, parts] : {std::pair{"train", &o.train}, std::pair{"valid", &o.valid}}) {
    for (const DataPart& part : *parts) {
      for (const auto& [dim, range] : std::get<SliceRanges>(part).of) {
        if (dim == ImageDim::kTime) at.error(key, "takes slices of time, which images have not");
        if (is_spatial(dim) && std::find(space.begin(), space.end(), dim) == space.end()) {
          at.error(key, concat("takes slices of ", name(dim), ", which data.dims lacks"));
        }
      }
    }
  }
  if (o.task == Task::kDenoise) {
    if (!o.noise_sigma) at.error("noise_sigma", "must be given for the task denoise, such as 200.0");
  } else if (o.targets.empty()) {
    at.error("targets", "must name the targets of the task map");
  }
  for (const VariableOptions& target : o.classes > 0 ? o.targets : std::vector<VariableOptions>{}) {
    if (!o.transforms.contains(target.name)) continue;
    at.error("transforms", concat("names ", target.name,
                                  ", which are labels of data.classes; only numbers are transformed"));
  }
  check_labels(o, at);
  check_regions(o, at);
  if (o.classes == 1) at.error("classes", "must be at least 2, or 0 for targets that are numbers");
  if (o.classes > 0 && o.targets.size() != 1)
    at.error("targets", "must be one variable of labels with data.classes");
}

}  // namespace jigsaw::inline fields
