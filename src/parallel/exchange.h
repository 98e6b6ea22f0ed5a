#pragma once
#include <memory>
#include <vector>

#include "kernels/copy.h"
#include "parallel/index_map.h"
#include "parallel/sharded_tensor.h"

namespace jigsaw::inline parallel {

/// Fetches what pieces of an operation's output read beyond their piece of the input: halos, padding at the
/// grid's ends, and every other index map, for any cut. Compiled once per layout into one message per peer,
/// so corners, several hops, one peer on both sides, uneven and empty pieces need no special case.
///
/// All ranks of the group call the same methods in the same order. Asynchronous: start(), work on what is
/// here, then wait() on the handle. Each of them packs or assembles with one kernel.
class Exchange {
 public:
  /// The exchange for these layouts, compiled at first use.
  /// @param input   of the tensor read.
  /// @param output  of what reads it, cut along the map's dims by the same axes; other dims are the input's.
  static std::shared_ptr<const Exchange> of(const Rank& rank, const IndexMap& map, const Layout& input,
                                            const Layout& output);
  Exchange(const Rank& rank, const IndexMap& map, const Layout& input, const Layout& output);

  const IndexMap& map() const { return map_; }
  /// This rank's piece of the input, and what it wants of the padded input, in padded coordinates.
  const Box& held() const { return held_; }
  const Box& wanted() const { return wanted_; }
  /// The part of `wanted` along each dim that reads nothing but the held piece.
  const Box& inside() const { return inside_; }
  /// What some of this rank's outputs read; named dims are those of `outputs`, the others are whole.
  Box region_of(const Box& outputs) const;
  /// Those of `outputs` that read nothing but what is inside().
  Box outputs_inside(const Box& outputs) const;
  /// Whether there is more than one rank to exchange with.
  bool travels() const { return group_size_ > 1; }
  /// Elements that this rank sends to others, by closed form.
  std::int64_t sent_elements() const;

  /// Sends what others want of this rank's piece. The handle's result is for assemble().
  Pending start(const Rank& rank, const Array& piece) const;
  /// A region of the padded input, in padded coordinates.
  /// @param arrived  may be undefined when the region lies inside().
  Array assemble(const Rank& rank, const Array& piece, const Array& arrived, const Box& region) const;
  /// Several regions at once: views of one workspace.
  std::vector<Array> assemble(const Rank& rank, const Array& piece, const Array& arrived,
                              const std::vector<Box>& regions) const;
  /// All that is wanted.
  Array gather(const Rank& rank, const Array& piece) const {
    return assemble(rank, piece, travels() ? start(rank, piece).wait() : Array(), wanted_);
  }

  /// The adjoint (transposed map): sends the gradients of elements that others hold.
  /// @param gradient  of the whole wanted region.
  Pending start_adjoint(const Rank& rank, const Array& gradient) const;
  /// The gradient of the piece: each element's gradients from all places that read it, in rank order.
  Array finish_adjoint(const Rank& rank, const Array& gradient, const Array& arrived) const;
  Array scatter(const Rank& rank, const Array& gradient) const {
    return finish_adjoint(rank, gradient, travels() ? start_adjoint(rank, gradient).wait() : Array());
  }

 private:
  /// A box of padded coordinates and the box of the input that it reads.
  struct Copy {
    Box to, from;
    bool crossed = false;
  };
  struct PeerCopies {
    int peer = 0;
    std::int64_t first = 0, count = 0;  // in the packed array
    std::vector<Copy> copies;
  };

  Box wanted_by(const MeshShape& mesh, const Layout& output, const Coordinates& at, const Box& held) const;
  std::vector<Copy> sources_of(const Box& wanted) const;
  static std::vector<Copy> held_part(const std::vector<Copy>& copies, const Box& held);
  static void add_peer(std::vector<PeerCopies>& peers, int peer, std::vector<Copy> copies);
  /// How regions are assembled, one after the other.
  struct Assembly {
    std::vector<Box> regions;
    std::vector<std::int64_t> first;
    std::int64_t count = 0;
    BoxTable table;
  };

  void find_inside(const Mesh& mesh, const Layout& input);
  void compile_messages();
  const Assembly& assembly_of(const std::vector<Box>& regions) const;
  std::int64_t channel_of(const Copy& copy, const Box& from) const;
  ChannelChange crossing(const Rank& rank, bool adjoint) const;

  IndexMap map_;
  Shape global_;
  AxisSet axes_ = 0;
  int group_size_ = 1;
  Box held_, wanted_, inside_;
  std::vector<Copy> local_;
  std::vector<PeerCopies> sends_, receives_;
  BoxTable packing_, adjoint_packing_;
  // Compiled at first use.
  mutable std::vector<std::unique_ptr<Assembly>> assemblies_;
  mutable BoxTable sums_;
};

}  // namespace jigsaw::inline parallel
