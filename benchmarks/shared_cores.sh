#!/usr/bin/env bash
# What runs cost each other that share the cores of a machine, each with a thread on every core: how much longer two take
# together than one alone, as threads wait by default (apps/jigsaw-train/short_waits.h), as GNU's OpenMP waits by itself
# (300 000 looks) and without any look (OMP_WAIT_POLICY=passive). Two runs that hinder each other in nothing take twice as
# long; at most 3 times is promised of the default.
#
# Prints a line of JSON for each way of waiting, of medians of ROUNDS (3 unless set) in turns; exit 1 where it is more.
#
#   benchmarks/shared_cores.sh [BUILD_FOLDER]   (default build/release; needs its target jigsaw-train)
#
# STEPS: of a run, 60 unless set. CONFIG: a configuration whose data is there; configs/demo.json on sample data unless set.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
train=$PWD/${1-build/release}/apps/jigsaw-train/jigsaw-train
rounds=${ROUNDS-3} steps=${STEPS-60}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if [[ $(id -u) == 0 ]]; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
unset OMP_NUM_THREADS OMP_WAIT_POLICY GOMP_SPINCOUNT
config=(--config "${CONFIG-configs/demo.json}")
if [[ -z ${CONFIG-} ]]; then
  "$train" sample-data --output "$folder/data" > "$folder/sample.log"
  config+=(--set "data.files=[\"$folder/data/*.nc\"]")
fi

# runs HOW COUNT: so many at once; appends the seconds until the last has ended.
runs() {
  local how=$1 count=$2 before=$EPOCHREALTIME i pids=()
  for ((i = 0; i < count; ++i)); do
    env "$how" "$train" "${config[@]}" --quiet --set output="$folder/run$i" --set train.steps="$steps" \
      --set validation.every="$steps" --set checkpoint.every=0 > "$folder/log$i" 2>&1 &
    pids+=($!)
  done
  for i in "${pids[@]}"; do wait "$i"; done
  awk -v before="$before" -v after="$EPOCHREALTIME" 'BEGIN { print after - before }' >> "$folder/$how.$count"
  rm -rf "$folder"/run*
}
ways=(DEFAULT=1 GOMP_SPINCOUNT=300000 OMP_WAIT_POLICY=passive)
for ((round = 0; round < rounds; ++round)); do
  for way in "${ways[@]}"; do
    for count in 1 2; do runs "$way" "$count"; done
  done
done
median() { sort -g "$folder/$1" | awk '{ each[NR] = $1 } END { print each[int((NR + 1) / 2)] }'; }
failed=0
for way in "${ways[@]}"; do
  awk -v way="$way" -v alone="$(median "$way.1")" -v together="$(median "$way.2")" 'BEGIN {
    printf "{\"benchmark\":\"shared_cores\",\"waits\":\"%s\",\"alone_seconds\":%.2f,\"two_seconds\":%.2f,", way, alone, together
    printf "\"ratio\":%.2f}\n", together / alone
    exit way == "DEFAULT=1" && together / alone > 3 }' || failed=1
done
exit $failed
