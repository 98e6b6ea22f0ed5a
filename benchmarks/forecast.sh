#!/usr/bin/env bash
# Forecasts of a month around the United Kingdom, from every hour of a week, beside PyTorch and xarray with the same
# parameters: steps a second from the first input to the closed NetCDF file, alternating, medians.
#
#   benchmarks/forecast.sh [BUILD_FOLDER]   (default build/release; needs ../shared/data or JIGSAW_REAL_DATA)
#
# ROUNDS (3), STEPS of each forecast (20), TRAINED steps of the model before (20), THREADS (2).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=benchmarks/peer/beside_torch.sh
source benchmarks/peer/beside_torch.sh
train=${1-build/release}/apps/jigsaw-train/jigsaw-train
rounds=${ROUNDS-3} steps=${STEPS-20}
file=$(realpath "${JIGSAW_REAL_DATA-../shared/data}/era5_t2m_uk_2019-03.nc")
output=$(mktemp -d)
trap 'rm -rf "$output"' EXIT
export OMP_NUM_THREADS="${THREADS-2}"
common=(--config configs/era5_uk_mixer.json --set "data.files=[\"$file\"]")
"$train" "${common[@]}" --set output="$output/run" --set train.steps="${TRAINED-20}" --set "data.valid=[]" > "$output/log"
"$train" export --checkpoint "$output/run" --output "$output/parameters.safetensors" >> "$output/log"
predict() {
  "$train" predict "${common[@]}" --checkpoint "$output/run" --output "$output/ours.nc" --overwrite \
    --steps "$steps" --period valid | grep -oE '[0-9.e+]+ steps a second' | cut -d' ' -f1
}
ours=() theirs=()
if ! "$python" -c 'import torch, xarray, netCDF4' 2> /dev/null; then
  echo "ours: $(predict) steps a second"
  echo "no PyTorch with xarray and netCDF4 here: no ratio"
  exit
fi
for ((round = 0; round < rounds; ++round)); do
  ours+=("$(predict)")
  line=$("$python" benchmarks/peer/torch_forecast.py "$file" "$output/parameters.safetensors" "$output/ours.nc" \
    "$output/theirs.nc" --steps "$steps" --threads "$OMP_NUM_THREADS")
  theirs+=("$(number steps_per_second "$line")")
  echo "ours ${ours[-1]}, PyTorch and xarray ${theirs[-1]} steps a second; forecasts apart by $(number largest_difference "$line") K"
done
awk -v a="$(median "${ours[@]}")" -v b="$(median "${theirs[@]}")" \
  'BEGIN { printf "median: ours %s, theirs %s steps a second: %.2f times as many\n", a, b, a / b }'
