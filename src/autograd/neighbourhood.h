#pragma once
#include <functional>
#include <optional>

#include "autograd/field_operations.h"
#include "parallel/exchange.h"

namespace jigsaw::inline autograd {

/// Some outputs and the region of the padded input that they read, in global coordinates.
struct Tile {
  Box outputs, region;
};

/// The index map of a field's spatial dims; dims that read just their own points are left out.
/// @param reads  per spatial dim.
/// @param space  spatial extents of the result.
IndexMap field_map(const Shape& x, const std::vector<Reads>& reads, const Padding& padding,
                   const Shape& space);

/// Letters of a field: b, the spatial ones, and the last dim's.
Letters field_dims(int space, LetterDim last);
/// Sets what the rules that cut space send: halos as wide as the reads overlap.
void set_halos(Signature& signature, const IndexMap& map);

/// A rule with an exchange cuts dims first to last of its input and its result alike.
void require_cut_alike(const Layout& input, const Layout& output, int first, int last);

/// The spatial dims of a box.
Box space_of(const Box& box);

/// Makes a tile's outputs of a region: in `into`, their place in the result, or, where that is undefined or
/// the kernel cannot, in an array of their own. @return  where they stand.
using TileKernel = std::function<Array(const Array& region, const Tile& tile, const Array& into)>;

/// When outputs that read only what is here are made apart from the others.
enum class Splitting : std::uint8_t {
  kWhereInnerIsLarge,  ///< most do: worth kernels of their own, and a copy if not consecutive in the result
  kWhereInPlace,  ///< most do, and are consecutive there, from a multiple of 16 bytes on: for kernels that
                  ///< take no longer than that copy
  kNever
};

/// This rank's outputs: those that read only what is here are made while halos travel, then the others, tile
/// by tile.
/// @param long_work_follows  is called when the halos are under way.
/// @param type               of the outputs.
/// @param arrived            set to what came, for backward.
Array over_tiles(const Rank& rank, const std::function<void()>& long_work_follows, const Exchange& exchange,
                 const Box& outputs, const Array& piece, DType type, Array& arrived, const TileKernel& kernel,
                 Splitting splitting = Splitting::kWhereInnerIsLarge);

/// An operation on one field whose outputs read a neighbourhood, linear or linear in pieces, by its kernels
/// on a region.
class Neighbourhood : public Operation {
 public:
  Neighbourhood(const Shape& input, const Shape& output, IndexMap map);

  std::vector<Array> forward(Frame& frame, Operands& inputs) const final;
  std::vector<Array> rematerialise(Frame& frame, Operands& inputs) const final;
  void backward(const Frame& frame, Operands& saved, Gradients& gradients) const final;

 protected:
  /// @param into   where the outputs go, or undefined, as a TileKernel has it.
  /// @param noted  for what backward reads, of noted_type() and the outputs' shape: written, or set where it
  ///               is undefined; with Signature::keeps_findings.
  virtual Array forward_tile(Context& context, const Array& region, const Tile& tile, const Array& into,
                             Array& noted) const = 0;
  /// None: nothing is noted.
  virtual std::optional<DType> noted_type() const { return std::nullopt; }
  virtual Splitting splitting() const { return Splitting::kWhereInPlace; }
  /// The region's gradient.
  virtual Array backward_tile(Context& context, const Array& dy, const Tile& tile,
                              const Array& noted) const = 0;

  /// Outputs and rules: any dim, spatial ones with halos.
  Signature field_signature(bool linear) const;

  Shape input_, output_;
  IndexMap map_;

 private:
  struct Found {
    Array arrived, noted;
  };
  std::shared_ptr<const Exchange> exchange(const Frame& frame) const;
};

}  // namespace jigsaw::inline autograd
