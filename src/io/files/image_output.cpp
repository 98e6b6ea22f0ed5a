#include "files/image_output.h"

#include <hdf5.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "files/full_disk.h"
#include "files/hdf5_walk.h"
#include "files/io_lock.h"
#include "files/netcdf_output.h"
#include "files/nifti_output.h"

namespace jigsaw::inline files {

namespace {

/// Points of a chunk along each of the last dims, and bytes of chunks that are kept until they are whole.
constexpr std::int64_t kChunk = 64;
constexpr std::size_t kCacheBytes = std::size_t{64} << 20, kCacheSlots = 12421;
constexpr unsigned kHdf5DeflateLevel = 1;

Shape chunk_of(const Shape& shape) {
  Shape chunk = shape;
  for (int d = 0; d < shape.rank(); ++d)
    chunk[d] = std::min(shape[d], d + 3 < shape.rank() ? std::int64_t{1} : kChunk);
  return chunk;
}

/// What is missing among float64.
constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

NetcdfOutput::Type netcdf_type_of(OutputImage::Type type) {
  switch (type) {
    case OutputImage::Type::kFloat:
      return NetcdfOutput::Type::kFloat;
    case OutputImage::Type::kDouble:
      return NetcdfOutput::Type::kDouble;
    case OutputImage::Type::kByte:
      return NetcdfOutput::Type::kByte;
    case OutputImage::Type::kShort:
      break;
  }
  return NetcdfOutput::Type::kShort;
}

hid_t hdf5_type_of(OutputImage::Type type) {
  switch (type) {
    case OutputImage::Type::kFloat:
      return H5T_IEEE_F32LE;
    case OutputImage::Type::kDouble:
      return H5T_IEEE_F64LE;
    case OutputImage::Type::kByte:
      return H5T_STD_U8LE;
    case OutputImage::Type::kShort:
      break;
  }
  return H5T_STD_I16LE;
}

class NetcdfImages : public ImageOutput {
 public:
  using ImageOutput::write;
  NetcdfImages(const std::string& path, const std::vector<OutputImage>& images,
               const std::map<std::string, std::string>& texts,
               const std::vector<OutputCoordinate>& coordinates)
      : file_(path, NetcdfOutput::Format::kNetcdf4) {
    std::set<std::string> names;
    for (const OutputImage& image : images) {
      std::vector<int> dimensions;
      for (int d = 0; d < image.shape.rank(); ++d)
        dimensions.push_back(dimension(image.dimensions[static_cast<std::size_t>(d)], image.shape[d]));
      std::string name = image.name;
      std::replace(name.begin(), name.end(), '/', '_');
      const int variable = file_.add_variable(name.c_str(), netcdf_type_of(image.type), dimensions);
      const Shape chunk = chunk_of(image.shape);
      file_.add_chunks(variable, {chunk.begin(), chunk.end()}, kCacheBytes);
      for (const auto& [key, text] : image.texts) file_.add_text(variable, key.c_str(), text);
      for (const auto& [key, list] : image.numbers) file_.add_numbers(variable, key.c_str(), list);
      if (image.type == OutputImage::Type::kFloat) {
        file_.add_number(variable, "_FillValue", NetcdfOutput::kFill);
      } else if (image.type == OutputImage::Type::kDouble) {
        file_.add_number(variable, "_FillValue", kNoValue);
      }
      variables_.push_back(variable);
      types_.push_back(image.type);
      names.insert(name);
      add_places(variable, image, coordinates);
    }
    for (const auto& [key, text] : texts) file_.add_text(NetcdfOutput::kFile, key.c_str(), text);
    std::vector<std::pair<int, const OutputCoordinate*>> written;
    for (const OutputCoordinate& coordinate : coordinates) {
      if (has_dimensions(coordinate) && names.insert(coordinate.name).second)
        written.emplace_back(define(coordinate), &coordinate);
    }
    file_.end_definitions();
    for (const auto& [variable, coordinate] : written) write(variable, *coordinate);
  }

  void write(std::size_t image, const Box& box, std::span<const double> values) override {
    if (types_[image] == OutputImage::Type::kFloat) {
      std::vector<float> stored(values.begin(), values.end());
      std::replace_if(
          stored.begin(), stored.end(), [](float value) { return !std::isfinite(value); },
          NetcdfOutput::kFill);
      file_.write(variables_[image], box, std::span<const float>(stored));
    } else if (types_[image] == OutputImage::Type::kDouble) {
      std::vector<double> stored(values.begin(), values.end());
      std::replace_if(
          stored.begin(), stored.end(), [](double value) { return !std::isfinite(value); }, kNoValue);
      file_.write(variables_[image], box, std::span<const double>(stored));
    } else {
      std::vector<int> labels(values.size());
      std::transform(values.begin(), values.end(), labels.begin(),
                     [](double value) { return static_cast<int>(std::lround(value)); });
      file_.write(variables_[image], box, std::span<const int>(labels));
    }
  }
  void finish() override { file_.close(); }

 private:
  /// Data sets of other extents have dims of their own: "depth", "depth_2", …
  int dimension(const std::string& name, std::int64_t extent) {
    std::string unique = name;
    for (int number = 2;; ++number) {
      const auto known = dimensions_.find(unique);
      if (known != dimensions_.end() && known->second.second == extent) return known->second.first;
      if (known == dimensions_.end()) break;
      unique = concat(name, "_", number);
    }
    const int id = file_.add_dimension(unique.c_str(), static_cast<std::size_t>(extent));
    dimensions_[unique] = {id, extent};
    return id;
  }

  bool has_dimensions(const OutputCoordinate& coordinate) const {
    for (int d = 0; d < coordinate.shape.rank(); ++d) {
      const auto known = dimensions_.find(coordinate.dimensions[static_cast<std::size_t>(d)]);
      if (known == dimensions_.end() || known->second.second != coordinate.shape[d]) return false;
    }
    return true;
  }

  int define(const OutputCoordinate& coordinate) {
    std::vector<int> dimensions;
    for (const std::string& name : coordinate.dimensions) dimensions.push_back(dimensions_.at(name).first);
    const NetcdfOutput::Type type =
        coordinate.single_precision ? NetcdfOutput::Type::kFloat : NetcdfOutput::Type::kDouble;
    const int variable = file_.add_variable(coordinate.name.c_str(), type, dimensions);
    for (const auto& [key, text] : coordinate.texts) file_.add_text(variable, key.c_str(), text);
    for (const auto& [key, list] : coordinate.numbers) file_.add_numbers(variable, key.c_str(), list);
    return variable;
  }

  void write(int variable, const OutputCoordinate& coordinate) {
    if (coordinate.single_precision) {
      file_.write(variable, std::vector<float>(coordinate.values.begin(), coordinate.values.end()));
    } else {
      file_.write(variable, coordinate.values);
    }
  }

  /// CF's `coordinates`: those of a data set's points that do not bear the name of a dim.
  void add_places(int variable, const OutputImage& image, const std::vector<OutputCoordinate>& coordinates) {
    std::vector<std::string> places;
    for (const OutputCoordinate& coordinate : coordinates) {
      const bool of_image =
          std::ranges::find(image.coordinates, coordinate.name) != image.coordinates.end() &&
          std::ranges::all_of(coordinate.dimensions, [&](const std::string& name) {
            return std::ranges::find(image.dimensions, name) != image.dimensions.end();
          });
      if (of_image && has_dimensions(coordinate) && coordinate.dimensions != std::vector{coordinate.name})
        places.push_back(coordinate.name);
    }
    if (!places.empty()) file_.add_text(variable, "coordinates", join(places, " "));
  }

  NetcdfOutput file_;
  std::map<std::string, std::pair<int, std::int64_t>> dimensions_;
  std::vector<int> variables_;
  std::vector<OutputImage::Type> types_;
};

class Hdf5Images : public ImageOutput {
 public:
  using ImageOutput::write;
  Hdf5Images(std::string path, const std::vector<OutputImage>& images,
             const std::map<std::string, std::string>& texts)
      : path_(std::move(path)) {
    const auto lock = lock_io();
    file_ = H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    check(file_ >= 0);
    try {
      for (const auto& [key, text] : texts) add_text(file_, key, text);
      for (const OutputImage& image : images) add(image);
    } catch (...) {
      close();
      throw;
    }
  }
  ~Hdf5Images() override {
    const auto lock = lock_io();
    close();
  }

  void write(std::size_t image, const Box& box, std::span<const double> values) override {
    const std::vector<hsize_t> start(box.begin.begin(), box.begin.end()),
        extent(box.extent.begin(), box.extent.end());
    const auto lock = lock_io();
    const Hdf5Id space(H5Dget_space(sets_[image]), H5Sclose);
    const Hdf5Id memory(H5Screate_simple(box.extent.rank(), extent.data(), nullptr), H5Sclose);
    check(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, extent.data(), nullptr) >=
              0 &&
          H5Dwrite(sets_[image], H5T_NATIVE_DOUBLE, memory.get(), space.get(), H5P_DEFAULT, values.data()) >=
              0);
  }
  void finish() override {
    const auto lock = lock_io();
    check(close());
  }

 private:
  void check(bool done) const {
    if (!done) refuse_unwritten(path_, "HDF5 fails");
  }

  bool close() {
    bool closed = true;
    for (const hid_t set : sets_) closed = H5Dclose(set) >= 0 && closed;
    sets_.clear();
    if (file_ >= 0) closed = H5Fclose(file_) >= 0 && closed;
    file_ = -1;
    return closed;
  }

  void add(const OutputImage& image) {
    const std::vector<hsize_t> extents(image.shape.begin(), image.shape.end());
    const Shape chunk = chunk_of(image.shape);
    const std::vector<hsize_t> chunks(chunk.begin(), chunk.end());
    const Hdf5Id space(H5Screate_simple(image.shape.rank(), extents.data(), nullptr), H5Sclose);
    const Hdf5Id links(H5Pcreate(H5P_LINK_CREATE), H5Pclose), layout(H5Pcreate(H5P_DATASET_CREATE), H5Pclose),
        access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose);
    check(H5Pset_create_intermediate_group(links.get(), 1) >= 0 &&
          H5Pset_chunk(layout.get(), image.shape.rank(), chunks.data()) >= 0 &&
          H5Pset_shuffle(layout.get()) >= 0 && H5Pset_deflate(layout.get(), kHdf5DeflateLevel) >= 0 &&
          H5Pset_chunk_cache(access.get(), kCacheSlots, kCacheBytes, 1.0) >= 0);
    const hid_t set = H5Dcreate2(file_, image.name.c_str(), hdf5_type_of(image.type), space.get(),
                                 links.get(), layout.get(), access.get());
    check(set >= 0);
    sets_.push_back(set);
    for (const auto& [key, text] : image.texts) add_text(set, key, text);
    for (const auto& [key, list] : image.numbers) add_numbers(set, key, list);
    add_text(set, "dimensions", join(image.dimensions, " "));
  }

  void add_text(hid_t object, const std::string& key, const std::string& text) const {
    const Hdf5Id type(H5Tcopy(H5T_C_S1), H5Tclose), space(H5Screate(H5S_SCALAR), H5Sclose);
    check(H5Tset_size(type.get(), text.size() + 1) >= 0 && H5Tset_cset(type.get(), H5T_CSET_UTF8) >= 0);
    const Hdf5Id attribute(H5Acreate2(object, key.c_str(), type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT),
                           H5Aclose);
    check(attribute.valid() && H5Awrite(attribute.get(), type.get(), text.c_str()) >= 0);
  }

  void add_numbers(hid_t object, const std::string& key, const std::vector<double>& list) const {
    const auto count = static_cast<hsize_t>(list.size());
    const Hdf5Id space(H5Screate_simple(1, &count, nullptr), H5Sclose);
    const Hdf5Id attribute(
        H5Acreate2(object, key.c_str(), H5T_IEEE_F64LE, space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
    check(attribute.valid() && H5Awrite(attribute.get(), H5T_NATIVE_DOUBLE, list.data()) >= 0);
  }

  std::string path_;
  hid_t file_ = -1;
  std::vector<hid_t> sets_;
};

}  // namespace

std::optional<ImageFormat> image_format(const std::string& path) {
  if (path.ends_with(".h5") || path.ends_with(".hdf5")) return ImageFormat::kHdf5;
  if (path.ends_with(".nc")) return ImageFormat::kNetcdf;
  if (path.ends_with(".nii.gz")) return ImageFormat::kNiftiGz;
  if (path.ends_with(".nii")) return ImageFormat::kNifti;
  return std::nullopt;
}

std::unique_ptr<ImageOutput> create_image_output(ImageFormat format, const std::string& path,
                                                 const std::vector<OutputImage>& images,
                                                 const std::map<std::string, std::string>& texts,
                                                 const NiftiHeader* like,
                                                 const std::vector<OutputCoordinate>& coordinates) {
  if (format == ImageFormat::kHdf5) return std::make_unique<Hdf5Images>(path, images, texts);
  if (format == ImageFormat::kNetcdf) return std::make_unique<NetcdfImages>(path, images, texts, coordinates);
  if (images.size() != 1) {
    throw DataError(concat(path, " cannot be written: NIfTI holds one image, not ", images.size(),
                           "; name an output of .h5 or .nc"));
  }
  const auto title = texts.find("title");
  return std::make_unique<NiftiOutput>(path, format == ImageFormat::kNiftiGz, images[0],
                                       title == texts.end() ? "" : title->second, like);
}

}  // namespace jigsaw::inline files
