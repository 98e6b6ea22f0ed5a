#!/usr/bin/env bash
# One training step of a model of the benchmark trio beside PyTorch's, alternating in one run on one machine: seconds
# per step, and peak memory, whole and above parameters and optimizer state, with the ratios of the medians. PyTorch is
# looked for in /usr/bin/python3 (Debian's python3-torch, with libopenblas0-openmp), or in $PYTHON; without it only our own
# line is printed.
#
#   benchmarks/trio.sh MODEL [BUILD_FOLDER]   (mixer, vit or sfno; default build/release; needs its target trio_step)
#
# ROUNDS: runs of seven steps of each, 3 unless set.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=benchmarks/peer/beside_torch.sh
source benchmarks/peer/beside_torch.sh
model=${1:?say which model: mixer, vit or sfno}
build=${2-build/release}
rounds=${ROUNDS-3}
ours() { OMP_NUM_THREADS=2 "$build/benchmarks/trio_step" "$model" "$@"; }

own=$(ours --steps 7)
echo "$own"
ours --steps 5 --recompute | sed 's/trio_step/trio_step recompute/'
need_torch
peer=$("$python" benchmarks/peer/torch_trio.py "$model" --steps 7)
echo "$peer"
own_seconds=("$(number seconds_per_step "$own")") peer_seconds=("$(number seconds_per_step "$peer")")
for ((round = 1; round < rounds; ++round)); do
  own_seconds+=("$(number seconds_per_step "$(ours --steps 7)")")
  again=$(tuned_as "$peer" benchmarks/peer/torch_trio.py "$model" --steps 7)
  peer_seconds+=("$(number seconds_per_step "$again")")
  echo "round $((round + 1)): ${own_seconds[-1]} s, PyTorch ${peer_seconds[-1]} s"
done
awk -v a="$(median "${own_seconds[@]}")" -v b="$(median "${peer_seconds[@]}")" \
  -v m="$(number peak_bytes "$own")" -v n="$(number peak_memory_bytes "$peer")" \
  -v p="$(number parameters "$own")" -v q="$(number peak_bytes_above_parameters_and_optimizer "$own")" 'BEGIN {
    printf "{\"benchmark\":\"ratio to PyTorch\",\"step_time\":%.3f,\"peak_memory\":%.3f,", a / b, m / n
    printf "\"memory_above_parameters_and_optimizer\":%.3f}\n", q / (n - 12 * p) }'
