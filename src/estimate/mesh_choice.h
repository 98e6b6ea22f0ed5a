#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "comm/communicator.h"
#include "estimate/mesh_search.h"

namespace jigsaw::inline estimate {

/// A mesh, and why it was chosen.
struct ChosenMesh {
  MeshOptions mesh;
  std::string reason;
};

/// What "auto" stands for: the fastest mesh that fits by find_meshes(), with `zero`, `train.recompute` and
/// `train.accumulate` as configured; where none fits, the one that takes least memory. Depends on the
/// question alone, but for its threads. Nothing where no mesh gives every rank a part of the work.
///
/// @param question  its `kept` and `as_configured` do not count.
std::optional<ChosenMesh> chosen_mesh(MeshQuestion question);

/// Chooses a mesh for a configuration whose mesh is "auto", for a job of so many ranks, and sets it: rank 0
/// looks, with the constants of the section `machine`, else of default_machine(), of GPUs those of
/// machine_of_gpus_here() with as many in a node as there are, and the memory of this machine or its GPUs;
/// the others take what it found. Where data or model cannot be described nothing is chosen, for whoever
/// opens them says why. Collective.
///
/// @return  why it was chosen; "" where nothing was.
///
/// @param folder  that of the configuration, from which relative names start.
/// @param ranks   those of `world`, or as many as are planned for, all on this machine.
std::string choose_mesh(Configuration& configuration, const std::filesystem::path& folder,
                        Communicator& world, int ranks);

}  // namespace jigsaw::inline estimate
