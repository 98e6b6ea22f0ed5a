#!/usr/bin/env bash
# Installs what is missing, builds jigsaw-train in build/release, writes a small data set with
# weather-like waves, and trains a WeatherMixer on it with two ranks, in less than a minute after
# the build. Everything it writes lies in demo/; an earlier demo is replaced.
#
#   scripts/demo.sh
#
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

case "${1-}" in
  "") ;;
  -h | --help) usage && exit ;;
  *) die "unknown option $1; see --help" ;;
esac

ranks=2
data=demo/data
output=demo/run  # as configs/demo.json says

scripts/setup.sh
say "building"
cmake --preset release
cmake --build build/release --target jigsaw-train
train=build/release/apps/jigsaw-train/jigsaw-train

say "writing sample data"
rm -rf $data $output
"$train" sample-data --output $data

say "training on $ranks ranks"
threads=$(($(nproc) / ranks))
((threads >= 1)) || threads=1
OMP_NUM_THREADS=${OMP_NUM_THREADS:-$threads} mpirun -n $ranks --bind-to none \
  "$train" --config configs/demo.json --resume never

# One line per variable of the last validation, for example
#   {"kind":"valid","step":300,…,"metrics":{"t2m":{"rmse":0.4,"bias":0.01,"persistence_rmse":1.9},…}}
say "validation after training, in physical units"
awk '
  /^[{]"kind":"valid"/ { last = $0 }
  function number(text, key) {
    if (!match(text, "\"" key "\":[-+.0-9eE]+")) return 0
    return substr(text, RSTART + length(key) + 3, RLENGTH - length(key) - 3)
  }
  END {
    if (last == "") { print "no validation line in metrics.jsonl"; exit 1 }
    printf "   %-12s %12s %12s %8s\n", "variable", "RMSE", "persistence", "ratio"
    sub(/.*"metrics":[{]/, "", last)
    while (match(last, /"[^"]+":[{][^}]*[}]/)) {
      entry = substr(last, RSTART, RLENGTH)
      last = substr(last, RSTART + RLENGTH)
      split(entry, name, "\"")
      rmse = number(entry, "rmse")
      persistence = number(entry, "persistence_rmse")
      ratio = persistence > 0 ? sprintf("%.3f", rmse / persistence) : "-"
      printf "   %-12s %12.4g %12.4g %8s\n", name[2], rmse, persistence, ratio
    }
  }' $output/metrics.jsonl
say "a ratio below 1 beats the forecast \"it stays as it is\""
say "results: $PWD/$output (metrics.jsonl, summary.json, log.txt, checkpoints/)"
