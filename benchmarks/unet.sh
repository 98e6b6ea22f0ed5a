#!/usr/bin/env bash
# One training step of the benchmark U-Net beside PyTorch's, in one run on one machine: seconds per step, and activation
# memory, with the ratios. PyTorch is looked for in /usr/bin/python3 (Debian's python3-torch, with libopenblas0-openmp);
# without it only our own lines are printed: with and without recompute, and activation per rank on 1, 2, 4 and 8 ranks.
#
#   benchmarks/unet.sh [BUILD_FOLDER]   (default build/release; needs its target unet_step)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=benchmarks/peer/beside_torch.sh
source benchmarks/peer/beside_torch.sh
build=${1-build/release}
ours=$(OMP_NUM_THREADS=2 "$build/benchmarks/unet_step" --steps 9)
echo "$ours"
recomputed=$(OMP_NUM_THREADS=2 "$build/benchmarks/unet_step" --steps 5 --recompute)
echo "$recomputed"
for ranks in 1 2 4 8; do
  OMP_NUM_THREADS=1 "$build/benchmarks/unet_step" --steps 1 --ranks "$ranks"
done
need_torch
peer=$("$python" benchmarks/peer/torch_unet.py --steps 9)
echo "$peer"
awk -v a="$(number seconds_per_step "$ours")" -v b="$(number seconds_per_step "$peer")" \
  -v m="$(number peak_bytes_above_parameters_and_optimizer "$ours")" \
  -v r="$(number peak_bytes_above_parameters_and_optimizer "$recomputed")" \
  -v n="$(number peak_memory_bytes "$peer")" -v p="$(number parameters "$ours")" 'BEGIN {
    printf "{\"benchmark\":\"unet ratio to PyTorch\",\"step_time\":%.3f,\"memory_above_parameters_and_optimizer\":%.3f,\"recomputed\":%.3f}\n",
      a / b, m / (n - 12 * p), r / (n - 12 * p) }'
