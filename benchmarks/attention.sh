#!/usr/bin/env bash
# Attention, float32, forward and backward on 2 threads, beside PyTorch's (fused from PyTorch 2 on), alternating in one run
# on one machine: the fastest call of each process, and the ratio of the medians, of several numbers of tokens, heads, and
# numbers a head: an image or a field as one sequence, a smaller one, and windows. PyTorch is looked for in /usr/bin/python3
# (Debian's python3-torch, 1.13, with libopenblas0-openmp), or in $PYTHON; without it only our own lines are printed.
#
#   benchmarks/attention.sh [BUILD_FOLDER]   (default build/release; needs its target kernels_bench)
#
# ROUNDS: processes of each, 5 unless set. SHAPES: other shapes, "TOKENSxHEADSxSIZE …".
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=benchmarks/peer/beside_torch.sh
source benchmarks/peer/beside_torch.sh
build=${1-build/release}
rounds=${ROUNDS-5}

# ours SHAPE: our line of forward and backward.
ours() { "$build/benchmarks/kernels_bench" 2 "attention $1" | grep "attention $1 forward and backward"; }

# note OWN_LINE PEER_LINE: one round's times.
note() {
  local ms seconds
  ms=$(number ms "$1")
  seconds=$(number seconds_per_step "$2")
  own_ms+=("$ms") peer_seconds+=("$seconds")
  echo "round ${#own_ms[@]}: $ms ms, PyTorch $seconds s"
}

for shape in ${SHAPES-4050x12x64 1024x8x96 77x96x24}; do
  IFS=x read -r tokens heads size <<< "$shape"
  torch=(benchmarks/peer/torch_attention.py --tokens "$tokens" --heads "$heads" --size "$size")
  own=$(ours "$shape")
  echo "$own"
  has_torch || continue
  peer=$("$python" "${torch[@]}")
  echo "$peer"
  own_ms=() peer_seconds=()
  note "$own" "$peer"
  for ((round = 1; round < rounds; ++round)); do
    own=$(ours "$shape")
    again=$(tuned_as "$peer" "${torch[@]}")
    note "$own" "$again"
  done
  awk -v a="$(median "${own_ms[@]}")" -v b="$(median "${peer_seconds[@]}")" -v shape="$shape" \
    'BEGIN { printf "{\"benchmark\":\"attention %s\",\"times_as_fast_as_PyTorch\":%.3f}\n", shape, 1000 * b / a }'
done
