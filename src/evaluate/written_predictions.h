#pragma once
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "images/image_data.h"
#include "predict/output_names.h"

namespace jigsaw::inline evaluate {

/// Predictions of images in files of their own, as predict or another program wrote them: NIfTI, HDF5 or
/// NetCDF, one file for each file of the images, which is called as predict calls it (output_names()) or is
/// of the same case (case_names()). It holds the same images in the same order, of the same extents and,
/// where both files say it, at the same place in the world; else points are paired by their indices. Classes
/// are labels, or probabilities as channels.
class WrittenPredictions {
 public:
  /// Opens the files of those images that data.validation_parts() are of. Collective: what throws on one rank
  /// throws on all.
  /// @param data   at the points of its files; outlives this. @param given  files, patterns or a folder.
  /// @param parts  what errors call the parts.
  /// @throws DataError  for images without a prediction, and for files that do not fit
  WrittenPredictions(const ImageData& data, const std::vector<std::string>& given, const std::string& parts,
                     Communicator& world);

  /// The files that are read.
  const std::vector<std::string>& paths() const { return paths_; }
  /// What is predicted of a part of an image: the targets in their units, [box, targets], or of classes the
  /// labels, [box]: NaN where it is missing or data.ignore_index. @throws DataError  for labels that are none
  std::vector<double> read(std::int64_t image, const Box& box);

 private:
  void find(const std::vector<std::string>& patterns, const std::vector<std::string>& found,
            const std::string& parts);
  void open(const FileOpener& open_file);
  std::vector<ImageDim> dims(const VariableFile& file) const;
  std::vector<ImageOrientation> orientations() const;
  void pair();
  void check(std::int64_t image) const;

  const ImageData& data_;
  std::vector<InputFile> inputs_;   ///< those whose images are scored
  std::vector<std::string> paths_;  ///< of each of them
  std::unique_ptr<ImageFiles> files_;
  std::vector<Field> fields_;           ///< of the targets; or of classes the labels, or the probabilities
  bool probabilities_ = false;          ///< the latter; of one region where numbers are floating
  std::vector<std::int64_t> partners_;  ///< of each image: its number in files_, or −1
};

}  // namespace jigsaw::inline evaluate
