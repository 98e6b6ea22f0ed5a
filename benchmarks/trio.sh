#!/usr/bin/env bash
# One training step of a model of the benchmark trio beside PyTorch's, alternating in one run on one machine: seconds
# per step, and peak memory, whole and above parameters and optimizer state, with the ratios of the medians. PyTorch is
# looked for in /usr/bin/python3 (Debian's python3-torch, with libopenblas0-openmp), or in $PYTHON; without it only our own
# line is printed.
#
#   benchmarks/trio.sh MODEL [BUILD_FOLDER]   (mixer or vit; default build/release; needs its target trio_step)
#
# ROUNDS: runs of seven steps of each, 3 unless set.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
model=${1:?say which model: mixer or vit}
build=${2-build/release}
rounds=${ROUNDS-3}
ours() { OMP_NUM_THREADS=2 "$build/benchmarks/trio_step" "$model" "$@"; }
number() { sed -E "s/.*\"$1\": ?([0-9.e+-]+).*/\1/" <<< "$2"; }
median() { printf '%s\n' "$@" | sort -g | sed -n "$((($# + 1) / 2))p"; }

own=$(ours --steps 7)
echo "$own"
ours --steps 5 --recompute | sed 's/trio_step/trio_step recompute/'
python=${PYTHON-/usr/bin/python3}
if ! "$python" -c 'import torch' 2> /dev/null; then
  echo "no PyTorch here: no ratio"
  exit
fi
peer_run() { "$python" benchmarks/peer/torch_trio.py "$model" --steps 7 "$@"; }
peer=$(peer_run)
echo "$peer"
# What was found by trial, as variables of the environment and as options.
mapfile -t tuning < <("$python" - "$peer" << 'END'
import json, sys
tuning = json.loads(sys.argv[1])["tuning"]
print("JIGSAW_PEER_TUNED=" + json.dumps(tuning))
options = tuning.pop("options", "")
print(*[f"{name}={value}" for name, value in tuning.items()], sep="\n")
print(*options.split(), sep="\n")
END
)
environment=() options=()
for one in "${tuning[@]}"; do
  if [[ $one == *=* ]]; then environment+=("$one"); else options+=("$one"); fi
done
own_seconds=("$(number seconds_per_step "$own")") peer_seconds=("$(number seconds_per_step "$peer")")
for ((round = 1; round < rounds; ++round)); do
  own_seconds+=("$(number seconds_per_step "$(ours --steps 7)")")
  again=$(export "${environment[@]}" && peer_run "${options[@]}")
  peer_seconds+=("$(number seconds_per_step "$again")")
  echo "round $((round + 1)): ${own_seconds[-1]} s, PyTorch ${peer_seconds[-1]} s"
done
awk -v a="$(median "${own_seconds[@]}")" -v b="$(median "${peer_seconds[@]}")" \
  -v m="$(number peak_bytes "$own")" -v n="$(number peak_memory_bytes "$peer")" \
  -v p="$(number parameters "$own")" -v q="$(number peak_bytes_above_parameters_and_optimizer "$own")" 'BEGIN {
    printf "{\"benchmark\":\"ratio to PyTorch\",\"step_time\":%.3f,\"peak_memory\":%.3f,", a / b, m / n
    printf "\"memory_above_parameters_and_optimizer\":%.3f}\n", q / (n - 12 * p) }'
