#pragma once
#include <map>
#include <string>
#include <vector>

#include "base/log.h"
#include "predict/image_run.h"

namespace jigsaw::inline predict {

/// What is written of classes.
enum class ClassOutput : std::uint8_t {
  kLabels,        ///< the likeliest class
  kProbabilities  ///< one number for each class
};

struct ImageOptions {
  std::string output;  ///< a file, or the folder of a file for each input
  bool overwrite = false;
  WindowOptions windows;
  ClassOutput classes = ClassOutput::kLabels;
  std::map<std::string, std::string> attributes;  ///< of the files
  bool skip_existing = false;                     ///< inputs whose outputs are there are left alone
  std::vector<std::string> unread;  ///< what is to be said of inputs that were left out of the files before
};

/// Runs models over all images of the files and writes what they say of them, averaged by ImageRun:
/// targets in physical units, labels as whole numbers, or probabilities, under the names of the
/// targets, in the order of the input's dims, with its spacing and place: where images have a common
/// spacing, brought back from that by OwnPoints. Each input file has an output of its own.
///
/// Where one of several input files cannot be read, the others are written before that is told.
///
/// One rank writes, on a thread of its own; the others' parts come to it a few rows at a time, so that no
/// rank holds a whole image. Collective: what throws on one rank throws on all.
///
/// @throws ConfigError  for an output that exists, or is a file where several are needed;
/// DataError  also for what was left out before
void write_image_predictions(TrainedModels& models, const ImageOptions& options, Log& log);

}  // namespace jigsaw::inline predict
