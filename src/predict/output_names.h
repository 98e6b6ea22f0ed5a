#pragma once
#include <string>
#include <vector>

#include "images/image_data.h"

namespace jigsaw::inline predict {

/// A file of the images of the first variable, and what their predictions are called.
struct InputFile {
  int number = 0;  ///< ImageSource::file
  std::string path;
  std::string name;         ///< what it is called as a case
  std::string output;       ///< what the file of its predictions is called, without the ending of a format
  std::int64_t images = 0;  ///< that it holds
};

/// Those files in the order of their images. Where each is of one image (or a NIfTI volume, perhaps of
/// slices) outputs are called as output_names() says, else as the files.
std::vector<InputFile> input_files(const ImageData& data);

/// The names of files, without folder and format, up to the end of their cases: of case_007_0000.nii.gz, the
/// case case_007 or 007, it is case_007. Where the cases do not stand in the names, or two would have one,
/// the cases themselves, a / in them as _.
/// @param cases  of the paths, each differently, as case_names() gives them.
std::vector<std::string> output_names(const std::vector<std::string>& paths,
                                      const std::vector<std::string>& cases);

}  // namespace jigsaw::inline predict
