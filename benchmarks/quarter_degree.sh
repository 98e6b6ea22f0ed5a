#!/usr/bin/env bash
# A step of a production configuration at 0.25° on this machine, on 1 and 4 ranks, with made-up data of its shape: what
# `plan` says of each rank's memory, what the run then took, seconds of the fastest step but the first, and bytes read. Prints a
# JSON line for each number of ranks.
#
#   benchmarks/quarter_degree.sh [CONFIG] [BUILD_FOLDER]   (configs/era5_weathermixer_1b.json, build/release)
#
# PRECISION: bf16 unless set. STEPS: 3 unless set. RANKS: "1 4" unless set. DATA: a folder for the data (1.2 GB), kept if set. MORE: further
# arguments, such as "--set model.embed_dim=2160". Needs the targets jigsaw-train and write_fields.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
config=${1-configs/era5_weathermixer_1b.json}
build=$PWD/${2-build/release}
train=$build/apps/jigsaw-train/jigsaw-train
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
data=${DATA-$folder}
mkdir -p "$data"
if [[ $(id -u) == 0 ]]; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
[[ -s $data/fields.nc ]] || "$build/benchmarks/write_fields" "$config" "$data/fields.nc" 4
read -ra more <<< "${MORE-}"
sets=(--config "$config" --set "data.files=[\"$data/fields.nc\"]" --set 'data.train=["2020-01-01","2020-01-01"]'
  --set 'data.valid=[]' --set validation.every=0 --set train.epochs=null --set checkpoint.every=0 --set train.batch_size=1 --set "train.steps=${STEPS-3}"
  --set "train.precision=${PRECISION-bf16}" --set train.recompute=block "${more[@]}")
failed=0
for ranks in ${RANKS-1 4}; do
  # What a rank has of this machine.
  memory=$(awk -v n="$ranks" '/^MemTotal:/ { print int($2 * 1024 / n) }' /proc/meminfo)
  launch=()
  [[ $ranks == 1 ]] || launch=(mpirun -q --oversubscribe --bind-to none -n "$ranks")
  "$train" plan "${sets[@]}" --ranks "$ranks" --memory "$memory" --json > "$folder/plan.json"
  # Of the configured mesh, which the run then takes: "auto" stands for another where memory is another.
  configured=$(sed -n '/"configured"/,$p' "$folder/plan.json" | tr -d ' \n')
  planned=$(sed -E 's/.*"memory_bytes":([0-9]+).*/\1/' <<< "${configured%%,\"flops\"*}")
  mesh=$(sed -E 's/"configured":\{"mesh":(\{[^}]*\}).*/\1/' <<< "$configured")
  if ! "${launch[@]}" "$train" "${sets[@]}" --set "mesh=$mesh" --set "output=$folder/run$ranks" > "$folder/log" 2>&1; then
    tail -3 "$folder/log" >&2
    failed=1
    continue
  fi
  numbers() { # KEY of summary.json, of each rank
    grep -o "\"$1\": *[0-9]*" "$folder/run$ranks/summary.json" | grep -o '[0-9]*$'
  }
  peak=$(numbers peak_memory_bytes | sort -n | tail -1)
  bytes=$(numbers file_bytes_read | sort -n | tail -1)
  seconds=$(sed -n 's/.*"step_seconds":\([^,]*\),.*/\1/p' "$folder/run$ranks/metrics.jsonl" | tail -n +2 | sort -g | head -1)
  printf '{"benchmark":"quarter degree","config":"%s","ranks":%d,"mesh":%s,"planned_memory_bytes":%s,"peak_memory_bytes":%s,"step_seconds":%s,"file_bytes_read":%s}\n' \
    "$(basename "$config" .json)" "$ranks" "$mesh" "$planned" "$peak" "$seconds" "$bytes"
done
exit $failed
