#!/usr/bin/env bash
# A small model on many MPI processes of this machine against one process: the largest relative difference of losses and
# gradient norms over the steps, in float64, of which 1e-9 is promised; and how long it took. Exit 1 when they differ more.
#
#   benchmarks/many_ranks.sh [RANKS] [BUILD_FOLDER]   (64, a multiple of 8; build/release, needs its target jigsaw-train)
#
# STEPS: 20 unless set. A rank takes about 60 MB of memory.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
ranks=${1-64}
train=$PWD/${2-build/release}/apps/jigsaw-train/jigsaw-train
steps=${STEPS-20}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if [[ $(id -u) == 0 ]]; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
export OMP_NUM_THREADS=1 OMPI_MCA_mpi_yield_when_idle=1
"$train" sample-data --output "$folder/data" > "$folder/sample.log"
cat > "$folder/config.json" << CONFIG
{
  "data": {"files": ["data/*.nc"], "variables": ["t2m"], "train": ["2021-01-02", "2021-01-20"]},
  "model": {"type": "weathermixer", "patch": [5, 7], "embed_dim": 16, "depth": 1},
  "train": {"steps": $steps, "batch_size": $((ranks / 8)), "precision": "fp64"},
  "validation": {"every": 0},
  "checkpoint": {"every": 0},
  "watchdog_seconds": 0
}
CONFIG
"$train" --config "$folder/config.json" --set output="$folder/one" > "$folder/one.log"
begin=$(date +%s)
mpirun -q --oversubscribe --bind-to none -n "$ranks" "$train" --config "$folder/config.json" --set output="$folder/many" \
  --set "mesh={\"data\":$((ranks / 8)),\"domain\":[2,2],\"tensor\":2}" > "$folder/many.log"
seconds=$(($(date +%s) - begin))
numbers() { # RUN: loss and gradient norm of each step
  sed -n 's/.*"loss":\([^,]*\),.*"grad_norm":\([^,]*\),.*/\1 \2/p' "$folder/$1/metrics.jsonl"
}
paste -d ' ' <(numbers one) <(numbers many) | awk -v ranks="$ranks" -v seconds="$seconds" -v steps="$steps" '
  function apart(a, b) { return (a > b ? a - b : b - a) / (a < 0 ? -a : a) }
  { if (apart($1, $3) > worst) worst = apart($1, $3); if (apart($2, $4) > worst) worst = apart($2, $4) }
  END {
    printf "{\"benchmark\":\"many ranks\",\"ranks\":%d,\"steps\":%d,\"worst_relative_difference\":%.1e,\"seconds\":%d}\n", ranks, NR, worst, seconds
    exit !(NR == steps && worst <= 1e-9)
  }'
