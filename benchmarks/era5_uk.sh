#!/usr/bin/env bash
# The shipped ERA5-UK configuration beside the same model in PyTorch: seconds for 600 steps, and RMSE over persistence.
#
#   benchmarks/era5_uk.sh [BUILD_FOLDER]   (default build/release; needs ../shared/data or JIGSAW_REAL_DATA)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=benchmarks/peer/beside_torch.sh
source benchmarks/peer/beside_torch.sh
build=${1-build/release}
file=$(realpath "${JIGSAW_REAL_DATA-../shared/data}/era5_t2m_uk_2019-03.nc")
output=$(mktemp -d)
trap 'rm -rf "$output"' EXIT
OMP_NUM_THREADS=2 "$build/apps/jigsaw-train/jigsaw-train" --config configs/era5_uk_mixer.json \
  --set "data.files=[\"$file\"]" --set output="$output/run" | grep -E 'step 600  validation|^done'
need_torch
"$python" benchmarks/peer/torch_era5_uk_mixer.py "$file"
