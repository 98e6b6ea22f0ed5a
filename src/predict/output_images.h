#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "files/image_output.h"
#include "images/image_axes.h"
#include "images/image_data.h"
#include "predict/image_prediction.h"
#include "predict/output_file.h"
#include "predict/written_axes.h"

namespace jigsaw::inline predict {

/// What is written of a variable: the numbers first … first + count − 1 of each point.
struct ImageResult {
  std::string variable;
  std::int64_t first = 0, count = 1;
  bool has_channels = false;
  std::string channel = "channel";  ///< the dim's name
  OutputImage::Type type = OutputImage::Type::kFloat;
  std::string units;
  bool of_input = false;                    ///< whether the variable is one of the inputs, too
  std::vector<std::int64_t> channels = {};  ///< which of its channels in the file, where it has any

  /// Whether the input's dim of channels is that of the result.
  bool keeps_channels() const { return of_input && has_channels; }
};

/// What is written of images: of each variable of the targets, or of what is denoised, one, as float32 unless
/// a channel needs_double_precision().
std::vector<ImageResult> image_results(const ImageData& data, ClassOutput classes);

/// The part of one rank, as it travels: [box, numbers].
struct ImagePart {
  std::size_t region = 0;
  Box box;
  std::vector<double> values;
};

/// One file that is being written. NIfTI, which holds one image, takes slices of a volume that were samples
/// as its depth, and volumes as its times.
class OutputImages {
 public:
  OutputImages(const ImageData& data, const std::vector<ImageResult>& results, int file, OutputFile& output,
               const std::map<std::string, std::string>& attributes);

  void write(std::int64_t image, const ImagePart& part);
  void finish() {
    file_->finish();
    output_.commit();
  }

 private:
  /// The input variable whose dims a result has: its own, or the first one, beside whose samples all
  /// results stand.
  ImageSource source_of(std::int64_t image, const ImageResult& result) const {
    return data_.files().source(result.of_input ? result.variable : input_, image);
  }
  /// The dims of what is written of an image, and the name of the data set.
  std::vector<ImageDim> dims_of(const ImageSource& source, const ImageResult& result) const;
  std::string name_of(const ImageSource& source, const ImageResult& result) const;
  bool of_nifti() const { return format_ == ImageFormat::kNifti || format_ == ImageFormat::kNiftiGz; }
  /// @param first  of the first input. @param source  source_of() the result.
  OutputImage describe(const ImageSource& first, const ImageSource& source, const ImageResult& result);
  ImageAxes axes_of(const ImageSource& source, const ImageResult& result);

  const ImageData& data_;
  const std::vector<ImageResult>& results_;
  OutputFile& output_;
  ImageFormat format_;
  std::string input_;                        ///< the variable that says where images lie
  std::map<std::string, std::size_t> sets_;  ///< numbers of the data sets by name
  /// Of data sets of the input, by file and name, for a format that has coordinates.
  std::map<std::pair<std::string, std::string>, ImageAxes> read_axes_;
  WrittenAxes axes_;
  std::unique_ptr<ImageOutput> file_;
};

}  // namespace jigsaw::inline predict
