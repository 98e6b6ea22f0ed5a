#!/usr/bin/env bash
# One training step of the benchmark mixer beside PyTorch's, in one run on one machine: seconds per step, and peak memory
# above parameters and optimizer state, with the ratios. PyTorch is looked for in /usr/bin/python3 (Debian's
# python3-torch, with libopenblas0-openmp); without it only our own line is printed.
#
#   benchmarks/mixer.sh [BUILD_FOLDER]   (default build/release; needs its target mixer_step)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${1-build/release}
ours=$(OMP_NUM_THREADS=2 "$build/benchmarks/mixer_step" --steps 7)
echo "$ours"
OMP_NUM_THREADS=2 "$build/benchmarks/mixer_step" --steps 5 --recompute | sed 's/mixer_step/mixer_step recompute/'
python=${PYTHON-/usr/bin/python3}
if ! "$python" -c 'import torch' 2> /dev/null; then
  echo "no PyTorch here: no ratio"
  exit
fi
peer=$("$python" benchmarks/peer/torch_mixer.py --steps 7)
echo "$peer"
number() { sed -E "s/.*\"$1\": ?([0-9.e+-]+).*/\1/" <<< "$2"; }
awk -v a="$(number seconds_per_step "$ours")" -v b="$(number seconds_per_step "$peer")" \
  -v m="$(number peak_bytes_above_parameters_and_optimizer "$ours")" -v n="$(number peak_memory_bytes "$peer")" \
  -v p="$(number parameters "$ours")" 'BEGIN {
    printf "{\"benchmark\":\"mixer ratio to PyTorch\",\"step_time\":%.3f,\"memory_above_parameters_and_optimizer\":%.3f}\n",
      a / b, m / (n - 12 * p) }'
