#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "array/box.h"
#include "comm/communicator.h"
#include "fields/data_options.h"
#include "fields/field.h"
#include "files/nifti_header.h"
#include "files/variable_file.h"

namespace jigsaw::inline files {
class NiftiFile;
}

namespace jigsaw::inline images {

/// Where an image stands in its file, and in the world.
struct ImageSource {
  int file = 0;                        ///< number of its file
  std::string path;                    ///< of it
  std::string data_set;                ///< the data set's name
  std::string group;                   ///< what the * of the variable's name stands for here
  std::int64_t sample = 0;             ///< of the data set's samples
  Shape stored;                        ///< the data set's extents
  Shape extents;                       ///< of the image in the file along depth, height, width
  std::vector<ImageDim> dims;          ///< what they are
  std::vector<std::string> names;      ///< of the data set's dims; none where the file does not name them
  std::vector<double> spacing;         ///< of points in mm along depth, height, width; empty: not known
  std::vector<double> affine;          ///< as NiftiFile gives it; empty: not known
  const NiftiHeader* nifti = nullptr;  ///< of a NIfTI file; lives as long as the files
  /// From one point of the common spacing to the next along depth, height, width, in points of the file;
  /// empty: images stay as they are.
  std::vector<double> step;
  double apart = 0;  ///< of samples that are slices of a volume, in mm; 0: not known
};

/// Where an image stands in the world.
struct ImagePlace {
  std::array<std::array<double, 3>, 8> corners;  ///< in mm
  double edge = 0;                               ///< the shortest of a voxel
};
/// Says how two images do not lie over each other; "" where their corners are less than `alignment` edges
/// apart.
std::string fault_of_places(const ImagePlace& here, const ImagePlace& there, double alignment);

/// How the axes of a file run through the world.
struct ImageOrientation {
  /// As NiftiHeader::world; of other formats, whose dims have names, those of the file as they are.
  std::array<NiftiAxis, 3> axes = {{{0, false}, {1, false}, {2, false}}};
  std::vector<std::int64_t> extents = {};  ///< of NIfTI, along these axes of the file
  bool in_world = false;                   ///< whether the file, or another one of its case, says so
};

/// How the images of several variables belong together.
struct ImagePairing {
  std::vector<std::string> patterns = {};  ///< that name the files of the constructor
  /// So far corners may lie apart in the world, of the shortest edge of the first variable's voxels;
  /// infinite: as far as they like. Nothing: whatever files say of places, points are paired by their indices
  /// in them.
  std::optional<double> alignment = 0.1;
  /// Variables that are not always selected, for nobody predicts of them.
  std::vector<std::string> targets = {};
  /// Of each file of the constructor that of the case it belongs to, in other ImageFiles; or none.
  std::vector<ImageOrientation> beside = {};
};
/// Those of data.files, data.alignment and data.targets.
ImagePairing pairing_of(const DataOptions& options);

/// HDF5, NetCDF or NIfTI files whose data sets are images or volumes, with dims in a configured order. A
/// variable with a * in its name is many data sets, such as one in each group, which hold images of their
/// own. The images of all files have numbers from 0 on: the files in order, in each the data sets by name, in
/// each its samples, of each its states in time. read() may be called from several threads. At most
/// kMostOpenFiles are held open.
///
/// A variable may stand in files of its own, which hold the same images. Where it and the first variable have
/// several files of one image each, or NIfTI files, they are paired by what files are called as cases
/// (images/case_names.h), all or none of which must be alike, else by their numbers. Images that are paired
/// have the same extents and, where both files say it, the same place in the world.
///
/// A NIfTI file that says no place is turned as the first variable of its case that says one, if both have
/// the same extents in the file (or there is a common spacing), so that its points belong to those with the
/// same indices. Where only targets say one, they are turned as the first variable, for whoever reads no
/// targets has inputs as they lie in their files. Without ImagePairing::alignment all are turned as the first
/// one.
///
/// Every error of reading is a DataError that names data set and file.
class ImageFiles {
 public:
  static constexpr std::size_t kMostOpenFiles = 64;
  /// So far the last point of the common spacing may lie beyond that of the file, in its steps: spacings in
  /// files are rounded, and of 512 points 0.99999 mm apart the last one by 1 mm lies 0.005 steps beyond.
  static constexpr double kBeyondLast = 1e-2;

  /// @param dims  of the data sets, in their order in the files.
  /// @param spacing  in mm along depth, height and width, to which all images are brought from their own, by
  /// linear interpolation from the middle of their first point on, extents ⌊(n − 1)·own/common + 0.01⌋ + 1,
  /// those of a case alike; empty: they stay as they are. @param labels  variables whose nearest point counts
  /// instead.
  ImageFiles(const std::vector<std::string>& paths, const std::vector<ImageDim>& dims,
             FileOpener open_file = opener(Dimensions::kByNumber), std::vector<double> spacing = {},
             std::vector<std::string> labels = {}, ImagePairing pairing = {});

  /// The fields of a variable: itself, or one for each channel (or each of the levels asked for).
  /// @param paths  of the files that hold it, which variable.files names; empty: those of the constructor.
  /// @throws DataError  for a data set that is not in every file, of another rank, in several units or
  /// without a channel that is asked for, or whose images are not of the same cases, or differ in number,
  /// extents or place from those of the first variable.
  std::vector<Field> select(const VariableOptions& variable, const std::vector<std::string>& paths = {});
  /// Those of a variable that is constant in time, behind one that is not: of data sets with the dims of the
  /// others but "time", or without "sample", too, or without space, as a number of each sequence is, or a row
  /// of a table [sample, channel]. An image of it is that of its sample.
  /// @param paths  as select() takes them; of files of its own one, or one for each file of the first
  /// variable, of the same cases where they have such, else in their order. @throws DataError  for data sets
  /// with other dims or extents, also.
  std::vector<Field> select_constant(const VariableOptions& variable,
                                     const std::vector<std::string>& paths = {});
  /// What only opening and selecting needed is forgotten: nothing more can be selected from other files.
  void end_selection();

  /// A run of images that are the states of one sample in time, in order; without the dim "time" one image.
  struct Series {
    std::int64_t first = 0, steps = 1;
  };
  /// Those of the first variable, by their first images, which every variable has.
  const std::vector<Series>& series() const { return series_; }

  std::int64_t count() const { return std::ssize(images_); }
  /// Extents of an image in the order of fields, at the common spacing if there is one.
  const Shape& extents(std::int64_t image) const { return images_[static_cast<std::size_t>(image)].extents; }
  const std::string& path(std::int64_t image) const;
  /// What the image's file is called as a case, or its group where that tells images apart, or both, "a/b".
  /// Slices of a volume have one name.
  const std::string& case_of(std::int64_t image) const { return cases_[static_cast<std::size_t>(image)]; }
  /// What the image's file is called as a case, whatever its group.
  const std::string& file_case(std::int64_t image) const;
  /// Whether a variable's files, several as those of the first one, were paired by their order, for no case
  /// is in both.
  bool paired_by_order(const std::string& variable) const { return known(variable).by_order; }
  /// Of each variable whose images are paired otherwise than in their order: a number of its name, and for
  /// each image the number in its own order. Empty where there is none.
  std::vector<std::int64_t> unordered_pairs() const;
  /// Of each NIfTI file that is turned otherwise than its header says: its number and how each axis runs.
  std::vector<std::int64_t> turned_files() const;
  const std::string& units(const Field& field) const;
  /// Where a variable's image stands: spacing from "spacing" or "element_size_um" of its data set, in the
  /// order of its dims. All is that of the file, whatever the common spacing.
  ImageSource source(const std::string& variable, std::int64_t image) const;

  /// How the file of an image of the first variable is turned; in the world where one of its case is.
  ImageOrientation orientation_of_case(std::int64_t image) const;

  /// Where a variable's image stands in the world; nothing where its file does not say it.
  std::optional<ImagePlace> place_of(const std::string& variable, std::int64_t image) const;

  /// The box [space…] of a field of an image in its physical units, NaN where it is missing: one hyperslab.
  void read(const Field& field, std::int64_t image, const Box& box, std::span<double> out);
  /// The same of a box of the points that the file holds, whatever the common spacing.
  void read_own(const Field& field, std::int64_t image, const Box& box, std::span<double> out);

  /// Elements read so far times their size on disk.
  std::int64_t bytes_read() const;
  /// VariableFile::bytes_fetched() of all files.
  std::int64_t bytes_fetched() const;
  /// Of each variable whose floating-point numbers attributes of an HDF5 file unpack, a sentence: CF allows
  /// it, but who writes HDF5 without NetCDF may mean something else by scale_factor.
  std::vector<std::string> packing_remarks() const;
  /// As FileSet::undeclared().
  std::map<std::string, UndeclaredValues> undeclared() const;

 private:
  struct Image {
    int file = 0;
    std::string group;  ///< what the * of the variable's name stands for here
    std::int64_t sample = 0;
    std::int64_t time = 0;  ///< of the sample's states, which follow one another as images
    Shape extents;
    std::vector<double> step;  ///< from one point to the next, in points of the file; empty: 1
  };

  /// Where a variable stands.
  struct Variable {
    std::string data_set;          ///< its name in the files
    int first = 0, last = 0;       ///< numbers of the files
    std::vector<std::string> own;  ///< the files, where they are its own
    std::vector<Image> images;
    std::vector<std::string> cases = {};  ///< what its files are called
    bool by_order = false;
    std::optional<std::vector<ImageDim>> constant = {};  ///< its dims, where it is constant in time
    int files() const { return last - first; }
  };
  Variable open_variable(const VariableOptions& variable, const std::vector<std::string>& paths);
  const Variable* selected(const VariableOptions& variable, const std::vector<std::string>& paths) const;
  const Variable& place(const VariableOptions& variable, const std::vector<std::string>& paths);
  const Variable& place_constant(const VariableOptions& variable, const std::vector<std::string>& paths);
  std::vector<Field> fields_of(const VariableOptions& variable, const Variable& place) const;
  const Variable& known(const std::string& variable) const;
  int open(const std::string& path);

  VariableFile& use(int file);
  /// The data set of this name, in which * stands for `group`.
  const FileVariable& find(int file, const std::string& data_set, const std::string& group) const;
  /// What * stands for in the data sets of a file, by name; "" alone for a variable without one.
  std::vector<std::string> groups(int file, const std::string& data_set) const;
  [[noreturn]] void refuse_unknown(int file, const std::string& variable) const;
  void read_stored(const Variable& place, const Field& field, const Image& image, const Box& box,
                   std::span<double> out);
  void resample(const Variable& place, const FileVariable& variable, Image& image) const;
  /// The dims of a data set; without "channel" where it has one dim less.
  std::vector<ImageDim> dims_of(const Variable& place, int file, const FileVariable& variable) const;
  std::vector<ImageDim> dims_of_constant(const Image& like, const FileVariable& variable) const;
  std::vector<std::vector<ImageDim>> dims_of_constants() const;
  static bool fits_constant(const Image& like, const FileVariable& variable,
                            const std::vector<ImageDim>& dims);
  std::int64_t samples_beside(const Image& like) const;
  std::vector<Image> images_of(const Variable& variable) const;
  static std::vector<Series> series_of(const std::vector<Image>& images);
  void check_units(const Variable& variable) const;
  std::int64_t channels_of(const Variable& variable) const;

  void begin_images(const std::string& name, const Variable& place);
  void pair_with_first(const std::string& name, Variable& place);
  bool has_cases(const Variable& variable) const;
  std::vector<std::string> cases_of(const VariableOptions& variable, const Variable& place) const;
  bool are_of_cases(const std::string& name, const Variable& place, const std::vector<std::string>& firsts,
                    const std::vector<std::string>& own) const;
  std::vector<std::string> paths_of(const Variable& place) const;
  void order_by_case(const std::string& name, Variable& place) const;
  /// Files of two variables that belong together, by an image in each.
  struct FilePair {
    Image first, other;
  };
  std::vector<FilePair> pairs_of_files(const Variable& place) const;
  NiftiFile* nifti(int file) const;
  ImageOrientation orientation(const Variable& variable, const Image& image) const;
  bool are_paired_by_index(const ImageOrientation& of_case, const ImageOrientation& its) const;
  void turn_as_their_cases();
  void turn(int file, const ImageOrientation& wanted, const Image& beside, std::map<int, int>& turned);
  void turn_cases(const std::map<int, FilePair>& leading, const Variable& place, std::map<int, int>& turned);
  void orient(const std::string& name, Variable& place);
  void orient_constant(const Variable& place, const Image& own, const Image& beside,
                       std::map<int, int>& turned);
  void find_images_again(Variable& variable) const;
  Shape stored_extents(const Variable& variable, const Image& image) const;
  void take_grid_of_case(const Image& first, const Variable& place, Image& own) const;
  void take_grids_of_cases(Variable& place) const;
  void check_images(const std::string& name, const Variable& place) const;
  void check_same_files(const Variable& place) const;
  void check_places(const std::string& name, const Variable& place) const;
  std::optional<ImagePlace> placement(const Variable& variable, const Image& image) const;
  std::string where(const std::string& name, const Variable& variable, const Image& image) const;
  const std::string& path_of(const Image& image) const {
    return files_[static_cast<std::size_t>(image.file)]->path();
  }

  std::vector<ImageDim> dims_;
  FileOpener opener_;  ///< until all is selected
  std::vector<double> spacing_;
  std::vector<std::string> labels_;
  ImagePairing pairing_;
  std::vector<std::unique_ptr<VariableFile>> files_;
  int common_ = 0;                             ///< so many files are those of the constructor
  std::map<std::string, Variable> variables_;  ///< those selected
  std::vector<Image> images_;
  std::vector<Series> series_;      ///< of them
  std::vector<std::string> cases_;  ///< of the images
  std::string first_variable_;
  std::set<int> in_world_;  ///< files of the first variable of whose cases a file says its place
  std::deque<int> open_;    ///< least recently used first
  std::mutex mutex_;        ///< guards open_ and the handles behind it
};

/// Files of variables by the patterns that name them.
using OwnFiles = std::map<std::vector<std::string>, std::vector<std::string>>;
/// Those of the variables that have files of their own, which are added to `all`. Collective: what throws on
/// one rank throws on all.
OwnFiles expand_own_files(const std::vector<VariableOptions>& variables, const std::filesystem::path& folder,
                          Communicator& communicator, std::vector<std::string>& all);
/// The files that hold a variable; empty where they are those of data.files.
std::vector<std::string> own_files(const VariableOptions& variable, const std::filesystem::path& folder);

}  // namespace jigsaw::inline images
