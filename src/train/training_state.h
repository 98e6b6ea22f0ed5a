#pragma once
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "optim/adamw.h"
#include "samples/sample_source.h"

namespace jigsaw {

// What checkpoints hold of a run: its tensors are "<kind>/<parameter>", of the kinds of AdamW::State.

/// The arrays that this rank saves or loads, as boxes of whole tensors. They share the optimizer's memory.
std::vector<CheckpointPiece> checkpoint_pieces(const AdamW& optimizer, AdamW::Share share);

/// All tensors of a run, in the order of the model.
/// @param average  whether parameters are averaged.
std::vector<TensorRecord> expected_tensors(const std::vector<ParameterBlock*>& blocks, DType master,
                                           bool average);

/// Placements of the parameters along the mesh's axes, by name.
Json layouts_json(const std::vector<ParameterBlock*>& blocks, const Mesh& mesh);

/// What must be alike for a run to go on with the same batches: grid, channels, number of samples, digests of
/// their times or places and of the statistics.
Json data_fingerprint(const SampleSource& data);
/// The first key in which two fingerprints differ, or "".
std::string first_difference(const Json& before, const Json& now);

/// Takes the parameters of a checkpoint, by name, into a run that has made no step.
///
/// @param skip  patterns of names that stay as they were initialised.
/// @return      a report of what matched.
/// @throws CheckpointError  when a parameter has another shape there or none is there; ConfigError naming
///                          init.skip when a pattern matches nothing.
std::string initialise_from(const FoundCheckpoint& found, const std::vector<ParameterBlock*>& blocks,
                            AdamW& optimizer, const std::vector<std::string>& skip, Communicator& world);

}  // namespace jigsaw
