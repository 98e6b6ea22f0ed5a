#!/usr/bin/env bash
# `jigsaw-train verify` of every shipped configuration on 2, 3, 4 and 8 ranks (threads of one process) against one: on the
# mesh that "auto" stands for and on cuts of the domain, of channels and of samples. Models and grids are shrunk by --set to
# what a small machine runs in seconds. Prints a table, for each configuration of how many meshes all
# is within tolerance; a mesh that is not is printed with its report. Exit 1 when there is one.
#
#   benchmarks/verify_shipped.sh [BUILD_FOLDER] [CONFIG…]   (build/release; all of configs/)
#
# STEPS: 2 unless set.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
train=$PWD/${1-build/release}/apps/jigsaw-train/jigsaw-train
shift || true
configs=("$@")
[[ ${#configs[@]} -gt 0 ]] || configs=(configs/*.json)
steps=${STEPS-2}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export OMP_NUM_THREADS=1
"$train" sample-data --months 1 --output "$folder/data" > "$folder/sample.log"

# What lets a configuration run on the sample data (37 × 72 points; as a volume, 124 × 37 × 72), and makes models small.
common="data.files=[\"$folder/data/*.nc\"] data.shape=[37,72] data.train=[\"2021-01-02\",\"2021-01-20\"] data.valid=[]"
fields="data.variables=[\"t2m\",\"u10\",\"v10\",\"z\"] data.static=[]"
small() { # NAME
  case $1 in
    era5_uk_* | demo) echo "$common" ;;
    era5_weathermixer_1b) echo "$common $fields model.embed_dim=24 model.depth=2 model.patch=[1,12]" ;;
    era5_swin) echo "$common $fields model.embed_dim=32 model.depth=2 model.heads=4 model.patch=[4,3] model.window=[5,4]" ;;
    era5_sfno) echo "$common $fields model.embed_dim=16 model.depth=2" ;;
    era5_vit) echo "$common $fields model.embed_dim=32 model.depth=2 model.heads=4 model.patch=[4,6]" ;;
    ct_denoise_unet3d)
      echo "data.files=[\"$folder/data/*.nc\"] data.shape=[124,37,72] data.variables=[\"t2m\"] data.train={\"depth\":[0,99]} data.valid=[]"
      echo "data.noise_sigma=5 data.crop=[16,16,16] model.widths=[8,16]"
      ;;
    *) echo "$0 does not know how to shrink $1" >&2 && exit 2 ;;
  esac
}

meshes() { # RANKS SPACE_DIMS
  local one='' # the other axes of space
  for ((i = 1; i < $2; ++i)); do one+=,1; done
  local two=2${one/,1/,2}
  case $1 in
    2) echo "{\"domain\":[2$one]} {\"tensor\":2} {\"data\":2}" ;;
    3) echo "{\"domain\":[3$one]} {\"tensor\":3}" ;;
    4) echo "{\"domain\":[$two]} {\"domain\":[2$one],\"tensor\":2} {\"data\":2,\"tensor\":2}" ;;
    8) echo "{\"domain\":[$two],\"tensor\":2} {\"data\":2,\"domain\":[2$one],\"tensor\":2}" ;;
  esac
}

failed=0
echo "| configuration | 2 ranks | 3 ranks | 4 ranks | 8 ranks |"
echo "| --- | --- | --- | --- | --- |"
for config in "${configs[@]}"; do
  name=$(basename "$config" .json)
  sets=()
  for set in $(small "$name"); do sets+=(--set "$set"); done
  dims=2
  [[ $name == ct_* ]] && dims=3
  row="| $name |"
  for ranks in 2 3 4 8; do
    right=0 all=0
    for mesh in '"auto"' $(meshes "$ranks" "$dims"); do
      all=$((all + 1))
      if "$train" verify --config "$config" "${sets[@]}" --set "mesh=$mesh" --ranks "$ranks" --steps "$steps" \
        > "$folder/report" 2>&1; then
        right=$((right + 1))
      else
        failed=1
        printf '%s on %d ranks, mesh %s:\n' "$name" "$ranks" "$mesh" >&2
        grep -E 'error|DIFFERS|differs|step ' "$folder/report" >&2 || cat "$folder/report" >&2
      fi
    done
    row+=" $right of $all |"
  done
  echo "$row"
done
exit $failed
