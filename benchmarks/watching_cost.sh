#!/usr/bin/env bash
# What watching costs a training run: steps of a small model with the watchdog on (`watchdog_seconds` 600, the default), and with
# a trace of all steps but the first (`--trace`), over those without either, in turns. Prints medians of `step_seconds` and the share
# that is added, of which less than 0.5 % and 2 % is promised. Nanoseconds of a single call or event: benchmarks/call_cost.
#
#   benchmarks/watching_cost.sh [BUILD_FOLDER]   (default build/release; needs its target jigsaw-train)
#
# RANKS: 2 unless set. CONFIG: a configuration whose data is there; configs/demo.json on sample data unless set.
# ROUNDS: 9 unless set. STEPS: of each kind in a round, 60 unless set; the first three do not count.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
train=$PWD/${1-build/release}/apps/jigsaw-train/jigsaw-train
ranks=${RANKS-2}
rounds=${ROUNDS-9}
steps=${STEPS-60}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if [[ $(id -u) == 0 ]]; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
export OMP_NUM_THREADS=1 OMPI_MCA_mpi_yield_when_idle=1
launch=(mpirun -q --oversubscribe --bind-to none -n "$ranks" "$train")
config=(--config "${CONFIG-configs/demo.json}")
if [[ -z ${CONFIG-} ]]; then
  "$train" sample-data --output "$folder/data" > "$folder/sample.log"
  config+=(--set "data.files=[\"$folder/data/*.nc\"]")
fi

options() { # KIND
  case $1 in
    neither) echo "--set watchdog_seconds=0" ;;
    watchdog) echo "--set watchdog_seconds=600" ;;
    trace) echo "--set watchdog_seconds=0 --trace $folder/trace.json --trace-steps 2-$steps" ;;
  esac
}
for ((round = 0; round < rounds; ++round)); do
  for kind in neither watchdog trace; do
    read -ra more <<< "$(options "$kind")"
    rm -rf "$folder/run"
    "${launch[@]}" "${config[@]}" "${more[@]}" --set output="$folder/run" --set train.steps="$steps" --set log_every=1 \
      --set validation.every=0 --set checkpoint.every=0 > "$folder/run.log"
    sed -n 's/.*"step_seconds":\([0-9.e+-]*\).*/\1/p' "$folder/run/metrics.jsonl" | tail -n +4 >> "$folder/$kind.seconds"
  done
done
median() { sort -g "$folder/$1.seconds" | sed -n "$((($(wc -l < "$folder/$1.seconds") + 1) / 2))p"; }
for kind in watchdog trace; do
  awk -v kind="$kind" -v with="$(median "$kind")" -v without="$(median neither)" 'BEGIN {
    printf "{\"benchmark\":\"watching\",\"what\":\"%s\",\"median_seconds\":%.6f,\"without\":%.6f,", kind, with, without
    printf "\"share\":%.4f,\"promised\":%s}\n", with / without - 1, kind == "trace" ? "0.02" : "0.005" }'
done
