#pragma once
#include <set>
#include <string>

#include "base/log.h"
#include "comm/communicator.h"
#include "samples/sample_source.h"

namespace jigsaw::inline train {

/// Says once of each variable in each file that it holds values which are no finite numbers and which it does
/// not declare as missing; they count as missing.
class DataRemarks {
 public:
  DataRemarks(const SampleSource& data, Communicator& world, Log& log)
      : data_(data), world_(world), log_(log) {}

  /// Of what all ranks have read so far. Collective.
  void tell();

 private:
  const SampleSource& data_;
  Communicator& world_;
  Log& log_;
  std::set<std::string> sent_;  ///< that this rank has told the first one
  std::set<std::string> said_;
};

}  // namespace jigsaw::inline train
