// Which parts of the images are trained on and validated, in crops and tiles.
#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "images/case_choice.h"
#include "images/image_data.h"

namespace jigsaw::inline images {

namespace {

/// What is read at a time for statistics: of a volume one slice, of an image, whose rows would be many small
/// reads, all.
Shape slice_of(const Shape& extents) {
  Shape slice = extents;
  if (extents.rank() > 2) slice[0] = 1;
  return slice;
}

}  // namespace

std::vector<ImageData::Region> ImageData::regions(const std::vector<DataPart>& parts,
                                                  const std::string& key) const {
  const std::vector<ImageDim> space = options_.space();
  std::vector<Region> result;
  for (const DataPart& part : parts) {
    const auto& ranges = std::get<SliceRanges>(part);
    for (const std::int64_t image : images_of(ranges, *files_, key)) {
      const Shape& extents = files_->extents(image);
      Region region{image, Box::whole(extents), 0};
      for (int d = 0; d < extents.rank(); ++d) {
        const auto range = ranges.of.find(space[static_cast<std::size_t>(d)]);
        if (range == ranges.of.end()) continue;
        const auto& [first, last] = range->second;
        if (last >= extents[d]) {
          throw ConfigError(concat(key, " takes ", name(range->first), " ", first, " to ", last, ", but ",
                                   files_->path(image), " has ", extents[d], "; the last can be at most ",
                                   extents[d] - 1));
        }
        region.box.begin[d] = first;
        region.box.extent[d] = last - first + 1;
      }
      require_memory(slice_of(region.box.extent), "a slice of an image", files_->path(image));
      result.push_back(region);
    }
  }
  return result;
}

/// The extents of the parts of data.train, which are those of the model where data.crop does not say them.
/// The files may be others than those of training: where they have fewer images than a part names, or others,
/// all count.
Shape ImageData::window_of_parts() const {
  const std::vector<ImageDim> space = options_.space();
  std::optional<Shape> window;
  for (const DataPart& part : options_.train) {
    SliceRanges ranges = std::get<SliceRanges>(part);
    const auto samples = ranges.of.find(ImageDim::kSample);
    if (samples != ranges.of.end() && samples->second.second >= files_->count())
      ranges.of.erase(ImageDim::kSample);
    if (!has_cases_of(ranges, *files_)) ranges.cases.clear();
    for (const std::int64_t image : images_of(ranges, *files_, "data.train")) {
      Shape extents = files_->extents(image);
      for (int d = 0; d < extents.rank(); ++d) {
        const auto range = ranges.of.find(space[static_cast<std::size_t>(d)]);
        if (range != ranges.of.end()) extents[d] = range->second.second - range->second.first + 1;
      }
      if (!window) window = extents;
      if (*window == extents) continue;
      throw ConfigError(concat("data.crop must be given, for images differ in extents: ", *window, " and ",
                               extents, " in ", files_->path(image)));
    }
  }
  require(window.has_value(), "data.train names no part");
  return *window;
}

void ImageData::choose_crop(bool of_training) {
  const std::vector<ImageDim> space = options_.space();
  crop_ = !options_.crop.empty() ? Shape(options_.crop)
          : of_training          ? train_.front().box.extent
                                 : window_of_parts();
  std::int64_t crops = 0;
  for (Region& region : train_) {
    const Shape& extent = region.box.extent;
    if (options_.crop.empty() && !(extent == crop_)) {
      throw ConfigError(concat("data.crop must be given, for the parts of data.train differ in extents: ",
                               crop_, " and ", extent));
    }
    const double volumes = static_cast<double>(extent.count()) / static_cast<double>(crop_.count());
    crops += std::max<std::int64_t>(1, std::llround(volumes));
    region.crops_until = crops;
  }
  if (of_training && !options_.pad) check_crop();
  require_memory(crop_, "a crop of an image", files_->path(0));
  grid_ = make_plain_grid(crop_);
  for (std::size_t d = 0; d < space.size(); ++d) grid_.axes[d].name = name(space[d]);
}

/// Of all parts at once, so that one run says how large it may be.
void ImageData::check_crop() const {
  const std::vector<ImageDim> space = options_.space();
  std::vector<std::string> most;
  bool in_training = false;
  for (int d = 0; d < crop_.rank(); ++d) {
    std::int64_t least = crop_[d], image = -1;
    const auto look_at = [&](std::int64_t extent, std::int64_t of, bool training) {
      if (extent >= crop_[d]) return;
      in_training = in_training || training;
      if (extent < least) std::tie(least, image) = std::pair(extent, of);
    };
    for (const Region& region : train_) look_at(region.box.extent[d], region.image, true);
    for (const Region& region : valid_) look_at(files_->extents(region.image)[d], region.image, false);
    if (image >= 0) {
      most.push_back(concat("its ", name(space[static_cast<std::size_t>(d)]), " can be at most ", least,
                            ", as in ", files_->path(image)));
    }
  }
  if (most.empty()) return;
  throw ConfigError(concat("data.crop ", crop_, " is larger than ",
                           in_training ? "a part of data.train" : "an image of data.valid", ": of all ",
                           join(most, ", "), "; or data.pad true fills up what is smaller"));
}

void ImageData::make_tiles(const std::vector<std::int64_t>& overlap) {
  double tiles = 0;
  for (const Region& region : valid_) {
    constexpr std::int64_t kMost = 1 << 22;  // which take some GiB
    double of_region = 1;
    for (int d = 0; d < crop_.rank(); ++d) {
      const auto over = static_cast<double>(overlap.empty() ? 0 : overlap[static_cast<std::size_t>(d)]);
      of_region *= std::max(
          1.0, (static_cast<double>(region.box.extent[d]) - over) / (static_cast<double>(crop_[d]) - over));
    }
    tiles += of_region;
    if (tiles > static_cast<double>(kMost)) {
      throw ConfigError(concat("data.crop ", crop_, " makes more than ", kMost, " tiles of data.valid, ",
                               files_->path(region.image), " alone of ", files_->extents(region.image),
                               " points",
                               options_.spacing.empty() ? "" : " at data.spacing, which is in mm"));
    }
    for (ImageTile& tile : tile_region(files_->extents(region.image), region.box, crop_, overlap)) {
      tile.image = region.image;
      tiles_.push_back(tile);
    }
  }
}

std::vector<ImageData::Slice> ImageData::slices_of(const std::vector<Region>& regions) {
  std::vector<Slice> slices;
  for (const Region& region : regions) {
    const std::int64_t thickness = slice_of(region.box.extent)[0];
    for (std::int64_t i = 0; i < region.box.extent[0]; i += thickness) {
      Box box = region.box;
      box.begin[0] += i;
      box.extent[0] = thickness;
      slices.push_back({region.image, box});
    }
  }
  return slices;
}

std::int64_t ImageData::shared_points() const {
  std::int64_t points = 0;
  for (const Region& train : train_) {
    for (const Region& valid : valid_) {
      if (train.image != valid.image) continue;
      const Box common = intersect(train.box, valid.box);
      if (!common.empty()) points += common.extent.count();
    }
  }
  return points;
}

std::optional<std::string> ImageData::cut_volume() const {
  const std::string& variable = channels_.inputs[0].field.variable;
  std::set<int> files;
  std::set<std::int64_t> images;
  for (const Region& region : train_) {
    files.insert(files_->source(variable, region.image).file);
    images.insert(region.image);
  }
  for (const Region& region : valid_) {
    const ImageSource source = files_->source(variable, region.image);
    if (source.nifti == nullptr || !files.contains(source.file) || images.contains(region.image)) continue;
    return concat(files_->case_of(region.image), " (", source.path, ")");
  }
  return std::nullopt;
}

std::vector<ImageRegion> ImageData::validation_parts() const {
  std::vector<ImageRegion> parts;
  for (const Region& region : valid_) parts.push_back({region.image, region.box});
  return parts;
}

std::vector<ImageRegion> ImageData::whole_images() const {
  std::vector<ImageRegion> images;
  for (std::int64_t image = 0; image < files_->count(); ++image)
    images.push_back({image, Box::whole(files_->extents(image))});
  return images;
}

}  // namespace jigsaw::inline images
