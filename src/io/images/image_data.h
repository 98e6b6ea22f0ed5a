#pragma once
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "images/augmentation.h"
#include "images/image_files.h"
#include "images/label_values.h"
#include "images/sliding_window.h"
#include "images/tiling.h"
#include "samples/data_use.h"
#include "samples/sample_source.h"
#include "samples/statistics_pass.h"

namespace jigsaw::inline images {

/// What becomes of an input's values: (transformed x, cut off at the ends − shift) · scale.
struct InputScale {
  double least = -std::numeric_limits<double>::infinity(), most = std::numeric_limits<double>::infinity();
  double shift = 0, scale = 1;
  bool zero_stays = false;   ///< 0 does not become another number
  Transform transform = {};  ///< ends, shift and scale are of what it gives

  double within(double x) const {
    const double value = transform.forward(x);
    return value < least ? least : value > most ? most : value;
  }
  /// Whether the value is a 0 that stays one.
  bool stays_zero(double x) const { return zero_stays && within(x) == transform.forward(0); }
  /// NaN stays NaN.
  double of(double x) const { return stays_zero(x) ? 0 : (within(x) - shift) * scale; }
};

/// Of an input or a target, transformed.
struct ImageMoments {
  RunningMoments values;
  ValuesBelow below;
};

/// How a sample is taken from an image.
struct ImageSample {
  std::int64_t image = 0;
  Box box;                        ///< in the image
  Box scored;                     ///< the points whose targets count, in the image
  std::vector<bool> mirrored;     ///< along which spatial dims
  RandomPosition noise_position;  ///< noise is that of the image's own points there
  // What data.augment changes of training samples.
  std::shared_ptr<const Warp> warp;  ///< where points lie, mirrored ones too; null: those of the box
  Box part;                          ///< of the image: what lies beyond is not seen, and does not count
  double brightness = 1, shift = 0;  ///< of normalised inputs x: brightness · x + shift, before gamma
  double gamma = 1;                  ///< exponent of gamma_of()
  double noise = 0;                  ///< deviation of the noise of inputs, in deviations of the variable
  double blur = 0;                   ///< deviation of the Gaussian that blurs inputs, in points
};

/// Images and volumes for the tasks denoise and map: crops of training parts at random places, and tiles that
/// cover the validation parts.
///
/// Crops, mirrors and noise are functions of (seed; training step, sample in the step), those of validation
/// of the seed and the image alone, hence equal on every mesh. Noise belongs to the points of the image:
/// element number of point · fields + field.
class ImageData : public SampleSource {
 public:
  /// Opens the files. Collective: when it throws on one rank it throws on all.
  ///
  /// @param overlap  of validation tiles, per spatial dim; empty: 0.
  /// @param use      what goes with the opening, and statistics that are given.
  /// @throws DataError    when the files cannot be used.
  /// @throws ConfigError  when crops, parts or data.shape do not fit what they hold.
  ImageData(const DataOptions& options, const std::filesystem::path& folder, std::uint64_t seed,
            const std::vector<std::int64_t>& overlap, Communicator& communicator, const DataUse& use = {});

  std::vector<std::string> paths() const override { return paths_; }
  const Grid& grid() const override { return grid_; }
  const Channels& channels() const override { return channels_; }
  const Statistics& statistics() const override { return statistics_; }
  /// Training: as many crops as have the volume of the training parts. Validation: tiles.
  std::int64_t count(Split split) const override;
  std::vector<std::int64_t> identity() const override;
  std::unique_ptr<SampleReader> open_reader() override;
  std::int64_t bytes_read() const override { return files_->bytes_read(); }
  std::int64_t bytes_fetched() const override { return files_->bytes_fetched(); }
  std::map<std::string, UndeclaredValues> undeclared() const override { return files_->undeclared(); }
  std::vector<std::string> packing_remarks() const override { return files_->packing_remarks(); }

  const DataOptions& options() const { return options_; }
  ImageFiles& files() const { return *files_; }
  const std::vector<ImageTile>& tiles() const { return tiles_; }
  /// Sample `number` of a split, at this position of the training.
  ImageSample sample(Split split, std::int64_t number, const RandomPosition& position) const;
  /// Normal noise of deviation 1 of validation or training.
  const RandomStream& noise(Split split) const {
    return split == Split::kTrain ? train_noise_ : valid_noise_;
  }
  /// How an input of an image is normalised (data.intensity, data.intensities).
  InputScale scale_of(std::int64_t image, std::size_t input) const;
  /// Normal noise of deviation 1 that data.augment adds to a point of a crop.
  const RandomStream& added_noise() const { return added_noise_; }
  /// How many points of the training parts have each label. Collective.
  std::vector<double> label_counts(Communicator& communicator) const;
  /// A number of a label file as the loss takes it: its class, or NaN where it is data.ignore_index.
  /// @throws DataError  when it is none.
  double checked_label(double value, const Channel& channel, std::int64_t image) const;
  /// How an error goes on that names a label which is none.
  std::string known_labels() const;
  const LabelValues& labels() const { return labels_; }
  /// Slices of the training and validation parts, as many calls of check_labels() look at all of them.
  std::int64_t slices() const { return std::ssize(slices_of_all_); }
  /// Reads the labels of a slice. @param seen  by class: gets 1 for those that it has, of a training part.
  /// @throws DataError  when one is none. From any thread.
  void check_labels(std::int64_t slice, std::vector<double>& seen) const;
  /// Points of images that are both in a training and in a validation part.
  std::int64_t shared_points() const;
  /// The first volume, by its case and file, of which some slices are images of training and others of
  /// validation.
  std::optional<std::string> cut_volume() const;
  /// The lowest and the highest value of each target in all validation parts. Collective.
  std::vector<std::pair<double, double>> target_ranges(Communicator& communicator) const;
  /// The validation parts, and all images whole.
  std::vector<ImageRegion> validation_parts() const;
  std::vector<ImageRegion> whole_images() const;

 private:
  struct Region {
    std::int64_t image = 0;
    Box box;
    std::int64_t crops_until = 0;  ///< in an epoch, those of the regions before included
    /// Some points of each class that it has, as numbers of points of the image; none unless asked for.
    std::map<std::int64_t, std::vector<std::int64_t>> foreground = {};
  };
  /// What is read at a time.
  struct Slice {
    std::int64_t image = 0;
    Box box;
  };
  static std::vector<Slice> slices_of(const std::vector<Region>& regions);

  void open(const FileOpener& open_file, const DataUse& use);
  void make_channels(const DataUse& use);
  void check_intensities() const;
  void check_normalised_once() const;
  void check_shape() const;
  std::vector<Region> regions(const std::vector<DataPart>& parts, const std::string& key) const;
  Shape window_of_parts() const;
  void choose_crop(bool of_training);
  void check_crop() const;
  void make_tiles(const std::vector<std::int64_t>& overlap);
  void find_scales(Communicator& communicator);
  InputScale clipping(const Field& input) const;
  /// Of which values of a field statistics are, "clip(x, 0, 8), log(x + 1e-05)"; "" of those of the files.
  std::string values_of(const Field& field) const;
  InputScale scale_of_statistics(const Field& input) const;
  InputScale own_scale(const Field& field, const Region& image, Communicator& communicator) const;
  void find_foreground(Communicator& communicator);
  void keep_foreground(const std::vector<std::int64_t>& found, Region& region) const;
  void move_to_foreground(const Region& region, const RandomPosition& position, Box& box) const;
  void augment(const RandomPosition& position, ImageSample& sample) const;
  Statistics compute_statistics(Communicator& communicator, const Statistics* known,
                                const std::function<void(double)>& progress) const;
  /// Puts what data.intensities gives of inputs in place of their statistics.
  void take_given(Statistics& statistics) const;
  Json decides_statistics() const;
  /// The channels that statistics are of.
  std::vector<Channel> normalised() const;
  /// @param spared  whether some stand for those that were not computed.
  void check_statistics(bool of_targets, bool spared) const;
  /// Calls of(values) for each slice of the regions, shared out over the ranks; its results in order.
  template <typename Result, typename F, typename M>
  Result over_slices(const Field& field, const std::vector<Region>& regions, Communicator& communicator,
                     const F& of, Result nothing, const M& merge,
                     const std::function<void(double)>& did = {}) const;

  DataOptions options_;
  LabelValues labels_;
  std::unique_ptr<ImageFiles> files_;
  Channels channels_;
  Statistics statistics_;
  std::vector<InputScale> scales_;  ///< [images, inputs] where each image has its own
  Shape crop_;
  Grid grid_;
  std::vector<std::string> paths_;
  /// Of variables that stand in files of their own, by their patterns.
  OwnFiles own_paths_;
  std::vector<Region> train_, valid_;
  std::vector<Slice> slices_of_all_;  ///< those of training first
  std::int64_t training_slices_ = 0;
  std::vector<ImageTile> tiles_;
  RandomStream places_, mirrors_, train_noise_, valid_noise_, draws_, displacements_, added_noise_;
};

}  // namespace jigsaw::inline images
