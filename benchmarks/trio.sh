#!/usr/bin/env bash
# One training step of a model of the benchmark trio beside PyTorch's, in one run on one machine: seconds per step, and peak
# memory, whole and above parameters and optimizer state, with the ratios. PyTorch is looked for in /usr/bin/python3 (Debian's
# python3-torch, with libopenblas0-openmp); without it only our own line is printed.
#
#   benchmarks/trio.sh MODEL [BUILD_FOLDER]   (mixer or vit; default build/release; needs its target trio_step)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
model=${1:?say which model: mixer or vit}
build=${2-build/release}
ours=$(OMP_NUM_THREADS=2 "$build/benchmarks/trio_step" "$model" --steps 7)
echo "$ours"
OMP_NUM_THREADS=2 "$build/benchmarks/trio_step" "$model" --steps 5 --recompute | sed 's/trio_step/trio_step recompute/'
python=${PYTHON-/usr/bin/python3}
if ! "$python" -c 'import torch' 2> /dev/null; then
  echo "no PyTorch here: no ratio"
  exit
fi
peer=$("$python" benchmarks/peer/torch_trio.py "$model" --steps 7)
echo "$peer"
number() { sed -E "s/.*\"$1\": ?([0-9.e+-]+).*/\1/" <<< "$2"; }
awk -v a="$(number seconds_per_step "$ours")" -v b="$(number seconds_per_step "$peer")" \
  -v m="$(number peak_bytes "$ours")" -v n="$(number peak_memory_bytes "$peer")" \
  -v p="$(number parameters "$ours")" -v q="$(number peak_bytes_above_parameters_and_optimizer "$ours")" 'BEGIN {
    printf "{\"benchmark\":\"ratio to PyTorch\",\"step_time\":%.3f,\"peak_memory\":%.3f,", a / b, m / n
    printf "\"memory_above_parameters_and_optimizer\":%.3f}\n", q / (n - 12 * p) }'
