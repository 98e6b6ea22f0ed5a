#!/usr/bin/env bash
# What watching costs a training run, as a share of its steps.
#
# trace: every second step of a run is traced, and the median of how much longer these take than the mean of the steps before
# and behind them is set in relation to the median step; at most 2 % is promised. Runs whose order is shuffled cannot show it: two runs of the
# same kind differ by more.
# watchdog: what a step makes of calls, fingerprints and units of work (counted in the trace) times what each costs
# (benchmarks/call_cost), over the median step; at most 0.5 % is promised. Its thread looks once in half a minute.
#
# Prints a line of JSON each; exit 1 where it is more.
#
#   benchmarks/watching_cost.sh [BUILD_FOLDER]   (default build/release; needs its targets jigsaw-train and call_cost)
#
# RANKS: 2 unless set. CONFIG: a configuration whose data is there; configs/demo.json on sample data unless set.
# ROUNDS: 6 unless set. STEPS: of a round, 400 unless set; the first three do not count.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${1-build/release}
train=$PWD/$build/apps/jigsaw-train/jigsaw-train
ranks=${RANKS-2} rounds=${ROUNDS-6} steps=${STEPS-400}
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

# Odd steps are traced in one round, even ones in the next. A validation only behind the last.
for ((round = 0; round < rounds; ++round)); do
  rm -rf "$folder/run"
  first=$((5 + round % 2))
  "${launch[@]}" "${config[@]}" --trace "$folder/trace.json" --trace-steps "$first-$steps:2" --set output="$folder/run" \
    --set train.steps="$steps" --set log_every=1 --set validation.every="$steps" --set checkpoint.every=0 > "$folder/run.log"
  sed -n 's/.*"step":\([0-9]*\),.*"step_seconds":\([0-9.e+-]*\).*/\1 \2/p' "$folder/run/metrics.jsonl" |
    awk '$1 < first - 1 { next }
         ($1 - first) % 2 == 0 { traced = $2; next }
         { print $2 > plain; if (before) print traced - (before + $2) / 2 > added; before = $2 }' \
      first="$first" plain="$folder/plain.$round" added="$folder/added.$round"
done
median() { cat "$folder/$1".* | sort -g | awk '{ each[NR] = $1 } END { print each[int((NR + 1) / 2)] }'; }
# print WHAT SECONDS PROMISED: a line; 1 where it is more.
print() {
  awk -v what="$1" -v seconds="$2" -v promised="$3" -v step="$(median plain)" 'BEGIN {
    printf "{\"benchmark\":\"watching\",\"what\":\"%s\",\"seconds\":%.3g,\"median_step_seconds\":%.6f,", what, seconds, step
    printf "\"share\":%.5f,\"promised\":%s}\n", seconds / step, promised
    exit seconds / step > promised }'
}
failed=0
print trace "$(median added)" 0.02 || failed=1

# Of the last trace: events of rank 0 in a step; every one of them taken for a unit of work.
events() { grep -c "\"ph\":\"X\",\"pid\":0,.*\"cat\":\"$1\"" "$folder/trace.json" || true; }
"$build/benchmarks/call_cost" > "$folder/calls"
nanoseconds() { sed -n "s/.*\"what\":\"$1\",\"nanoseconds\":\([0-9.e+-]*\).*/\1/p" "$folder/calls" | grep .; }
call=$(nanoseconds "a call's entry.*") fingerprint=$(nanoseconds 'the fingerprint')
unit=$(nanoseconds 'a unit of work.*') told=$(nanoseconds 'a step that.*')
watched=$(awk -v steps="$(events step)" -v calls="$(($(events start) + $(events control)))" -v units="$(events '.*')" \
  -v call="$call" -v fingerprint="$fingerprint" -v unit="$unit" -v told="$told" \
  'BEGIN { print 1e-9 * ((calls * call + units * unit) / steps + fingerprint + told) }')
print watchdog "$watched" 0.005 || failed=1
exit $failed
