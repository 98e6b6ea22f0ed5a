#pragma once

#include "images/sequence_data.h"

namespace jigsaw::inline images {

/// Reads the pieces of batches of sequences: for each sample, field and state the box that the rank holds,
/// one hyperslab; what inputs and targets share is read once. See Batch. For one thread.
class SequenceReader : public SampleReader {
 public:
  /// @param data  outlives the reader.
  explicit SequenceReader(const SequenceData& data) : data_(data) {}

  /// @throws DataError
  Batch read(const SampleRequest& request, const Context& context) override;
  /// The same of any windows. @param request  whose times are numbers of states.
  Batch read(const BatchRequest& request, const Context& context) const;

 private:
  class States;
  void fill_inputs(const BatchRequest& request, States& states, Batch& batch) const;
  void fill_targets(const BatchRequest& request, int channel, States& states, Batch& batch) const;

  const SequenceData& data_;
};

}  // namespace jigsaw::inline images
