#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "autograd/tape.h"
#include "kernels/pointwise.h"

namespace jigsaw::inline autograd {

/// Contraction over the index letters that a and b share and the output lacks (torch.einsum), e.g. a linear
/// layer "bhwk,nk->bhwn" or token mixing "bhwc,thw->btc". Sums are formed in f32 (f64 in f64).
///
/// Rule: each letter cut alike in every operand that has it; Partial(sum) if the output lacks it.
/// Gradients: da = contraction of dy and b over the other letters; db likewise.
/// @param units  letters that are cut at multiples only (heads).
Variable contract(Tape& tape, std::string_view spec, const Variable& a, const Variable& b,
                  const Letters& units = {});

/// A factor that nobody learns: a table of numbers that follow from their place (of a Fourier transform,
/// say).
struct FixedFactor {
  std::string name;  ///< tells it from all others
  Shape shape;
  std::function<std::vector<double>(const Box&)> values;  ///< of a box of it, in row-major order
};
/// The contraction of x and a fixed factor, each rank making the part that it needs by itself, once. A
/// bfloat16 x is taken as float32, as the factor is.
///
/// Rule: each letter cut alike in x and the output; Partial(sum) if the output lacks it; letters that the
/// factor brings in are cut in the output, of an x that is whole. Nothing is sent for the factor.
Variable contract_fixed(Tape& tape, std::string_view spec, const Variable& x,
                        std::shared_ptr<const FixedFactor> factor);

/// What pointwise() does to x: y = residual + dropout(activation(x + bias)).
struct Pointwise {
  std::string letters;       ///< of x and the residual, e.g. "bhwn"
  Variable bias;             ///< may be undefined
  std::string bias_letters;  ///< a run of letters: "n", "hw"
  Variable residual;         ///< may be undefined
  Activation activation = Activation::kNone;
  double dropout = 0;          ///< probability; active in training only
  std::string path;            ///< names the dropout mask
  bool whole_samples = false;  ///< dropout keeps or drops each sample as a whole (drop path)
  Letters units = {};          ///< letters that are cut at multiples only (heads)
};
/// Rule: any letter of x cut alike. With an activation and no residual, backward computes the output again
/// rather than keep it.
Variable pointwise(Tape& tape, const Variable& x, const Pointwise& options);

/// torch.nn.PReLU: y = x where x > 0, and slope·x elsewhere, with a learned slope for each value of one
/// letter of x. Rule: any letter of x cut alike. Backward computes the output again rather than keep it.
Variable prelu(Tape& tape, std::string_view letters, const Variable& x, const Variable& slope,
               char slope_letter);

/// x·y, element by element, of one shape. Rule: any letter of both cut alike. Either factor may be a
/// constant, which then needs no gradient.
Variable multiply(Tape& tape, std::string_view letters, const Variable& x, const Variable& y);

/// torch.nn.LayerNorm over the last dim. gamma and beta: [c].
/// Rule: any other letter cut; c cut with an exchange of each row's mean and squared deviations, so that
/// statistics are those of the whole row on every mesh (Chan, Golub and LeVeque 1979). Backward computes the
/// output again rather than keep it.
Variable layer_norm(Tape& tape, std::string_view letters, const Variable& x, const Variable& gamma,
                    const Variable& beta, double eps);

/// torch.nn.RMSNorm over the last dim (Zhang and Sennrich 2019): y = x/√(mean square + eps)·gamma, gamma [c].
/// Rule: as layer_norm.
Variable rms_norm(Tape& tape, std::string_view letters, const Variable& x, const Variable& gamma, double eps);

/// torch.nn.GroupNorm of a field [B, space…, C]: the points of each sample and group of C/groups consecutive
/// channels are normalised together; torch.nn.InstanceNorm where groups is C. gamma and beta: [C]. The
/// activation is of the result, in the same passes over the field.
/// Rule: samples; space and C with an exchange of each channel's mean and squared deviations, so that
/// statistics are those of the whole group on every mesh; C is cut anywhere, inside a group too. Backward
/// computes the output again rather than keep it.
Variable group_norm(Tape& tape, const Variable& x, const Variable& gamma, const Variable& beta,
                    std::int64_t groups, double eps, Activation activation = Activation::kNone);
/// torch.nn.BatchNorm of a field [B, space…, C]: each channel over the points of all samples of the global
/// batch in training (torch.nn.SyncBatchNorm), with the running statistics otherwise. All: [C]. Rule: C;
/// samples and space with an exchange of each channel's mean and squared deviations. The activation as in
/// group_norm. In backward the running
/// statistics, which are parameters with a momentum, get their distance from the batch's (its unbiased
/// variance) as gradient, once for each use.
Variable batch_norm(Tape& tape, const Variable& x, const Variable& gamma, const Variable& beta,
                    const Variable& running_mean, const Variable& running_variance, double eps,
                    Activation activation = Activation::kNone);

/// [B, space…, C] → [B, patches…, C, P]: each patch of `patch` points as a row of P = Π patch numbers,
/// channel by channel (torch.nn.functional.unfold's order). A patch that does not divide the grid reads zeros
/// beyond its end. Rule: samples, channels, and space in units of the patch.
Variable patchify(Tape& tape, const Variable& x, const Shape& patch);
/// The adjoint: [B, patches…, C, P] → [B, space…, C]; what lies beyond the grid is dropped.
/// @param space  extents of the grid.
Variable unpatchify(Tape& tape, const Variable& x, const Shape& patch, const Shape& space);

/// Attention of heads of `head_size` channels each, scaled by 1/√head_size
/// (torch.nn.functional.scaled_dot_product_attention); the matrix of weights never stands in memory.
struct Attention {
  std::int64_t head_size = 0;
  double dropout = 0;  ///< probability for a weight; active in training only
  std::string path;    ///< names the dropout mask
};
/// Of every point to every point of its sample: qkv [B, space…, 3, C] holds queries, keys and values; gives
/// [B, space…, C].
/// Rule: samples; heads, uneven numbers too; and each dim of space: queries stay, keys and values go round
/// among the ranks of all axes that cut space, while each computes. Cutting heads where space was cut is a
/// redistribution (all-to-all); the planner takes what is cheaper.
Variable attention(Tape& tape, const Variable& qkv, const Attention& options);
/// Of every point of one grid to every point of another: q [B, space…, C], kv [B, other space…, 2, C]; gives
/// [B, space…, C]. Rule: samples; heads; q's space with keys and values whole, or a dim of each space cut, as
/// above.
Variable cross_attention(Tape& tape, const Variable& q, const Variable& kv, const Attention& options);

/// Rotary positions (Su et al. 2021, arXiv 2104.09864) of queries and keys in qkv [B, space…, 3, C]: each
/// head's numbers are cut into one section per axis of space, and pairs of a section rotated by the
/// coordinate along it (kernels/attention.h). Rule: samples, space, heads.
Variable rotary(Tape& tape, const Variable& qkv, std::int64_t head_size, double base);

/// Attention inside windows of a grid, with a learned bias by relative position (Swin transformer, Liu et al.
/// 2021).
struct WindowAttention {
  std::int64_t head_size = 0;
  Shape window;   ///< points of a window along each dim of space; the space is whole windows
  Shape wrapped;  ///< points at the end of each dim that were brought there round the other end by a shift,
                  ///< and do not see what stands before them; 0 where the dim closes a circle, or nothing was
                  ///< shifted
  double dropout = 0;  ///< probability for a weight; active in training only
  std::string path;    ///< names the dropout mask
};
/// qkv [B, space…, 3, C], table [Π (2w − 1), heads] (kernels/relative_bias.h); gives [B, space…, C].
/// Rule: samples; space in whole windows; heads.
Variable window_attention(Tape& tape, const Variable& qkv, const Variable& table,
                          const WindowAttention& options);

}  // namespace jigsaw::inline autograd
