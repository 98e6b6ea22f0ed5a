#!/usr/bin/env bash
# Attention of 12 heads, 4,050 tokens and 64 numbers a head, float32, forward and backward on 2 threads, beside PyTorch's
# (fused from PyTorch 2 on), alternating in one run on one machine: the fastest call of each process, and the ratio of the
# medians. PyTorch is looked for in /usr/bin/python3 (Debian's python3-torch, 1.13), or in $PYTHON.
#
#   benchmarks/attention.sh [BUILD_FOLDER]   (default build/release; needs its target kernels_bench)
#
# ROUNDS: processes of each, 5 unless set.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=benchmarks/peer/beside_torch.sh
source benchmarks/peer/beside_torch.sh
build=${1-build/release}
rounds=${ROUNDS-5}
ours() { "$build/benchmarks/kernels_bench" 2 "attention 4050x12x64" | tail -n 1; }

own=$(ours)
echo "$own"
need_torch
peer=$("$python" benchmarks/peer/torch_attention.py)
echo "$peer"
own_ms=("$(number ms "$own")") peer_seconds=("$(number seconds_per_step "$peer")")
for ((round = 1; round < rounds; ++round)); do
  own=$(ours)
  again=$(tuned_as "$peer" benchmarks/peer/torch_attention.py)
  own_ms+=("$(number ms "$own")") peer_seconds+=("$(number seconds_per_step "$again")")
  echo "round $((round + 1)): ${own_ms[-1]} ms, PyTorch ${peer_seconds[-1]} s"
done
awk -v a="$(median "${own_ms[@]}")" -v b="$(median "${peer_seconds[@]}")" \
  'BEGIN { printf "{\"benchmark\":\"attention\",\"times_as_fast_as_PyTorch\":%.3f}\n", 1000 * b / a }'
