#!/usr/bin/env bash
# Reading a global 0.25 degree data set as the last of 1, 2, 4, 8 ranks does, beside h5py, netCDF4, xarray with zarr and
# PyTorch's DataLoader where $PYTHON (default /usr/bin/python3) has them, on the same hyperslabs, alternating. Each
# measurement is a process of its own. A line says, of each cut: what was requested over the rank's share (at most
# 1.1), what the system was asked for over the share of one rank's (at most 1.3, of latitude and channels in a
# contiguous file and of any cut in patches), memory over the share of the batches that are read ahead or in use (at most 1.3);
# medians of GB/s of values, and ours beside the fastest of the others. Then what it brings that ranks of one machine
# share decoded chunks. Exit 1 where one of the first three is more.
#
#   benchmarks/reading.sh [BUILD_FOLDER]   (default build/release; needs its target reading)
#
# ROWS, COLUMNS, CHANNELS: 721, 1440, 69 unless set: 4 GB in one piece and half of that in patches, for 4 SAMPLES behind
# three that the clock does not count, two states each. RANKS: "1 2 4 8". ROUNDS: 3. WORKERS: 2, threads of ours. BESIDE: "1 4", the ranks that are measured beside others. FOLDER: where the files are
# kept, /tmp/jigsaw-reading unless set. COLD=1: from disk each time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=benchmarks/peer/beside_torch.sh
source benchmarks/peer/beside_torch.sh
build=${1-build/release}
samples=${SAMPLES-4} rounds=${ROUNDS-3}
extents=(--rows "${ROWS-721}" --columns "${COLUMNS-1440}" --channels "${CHANNELS-69}" --times "$((2 * (samples + 3)))")
folder=${FOLDER-/tmp/jigsaw-reading}/$(tr -dc '0-9 ' <<< "${extents[*]}" | xargs | tr ' ' x)
reading=$build/benchmarks/reading

# Files that are there are kept.
"$reading" write "$folder" "${extents[@]}"

cold=()
[[ ${COLD-0} == 1 ]] && cold=(--cold)
failed=0
# most LIMIT VALUE WHAT…: says it where it is more.
most() {
  awk -v limit="$1" -v value="$2" 'BEGIN { exit !(value > limit) }' || return 0
  echo "more than $1: ${*:3}: $2" >&2
  failed=1
}

for layout in contiguous patches; do
  for cut in latitude longitude channels; do
    whole=$(number rchar "$("$reading" read "$folder" --layout "$layout" --cut "$cut" --ranks 1 --samples "$samples")")
    for ranks in ${RANKS-1 2 4 8}; do
      others=()
      [[ " ${BESIDE-1 4} " != *" $ranks "* ]] || others=(h5py netcdf4 zarr loader)
      declare -A speeds=()
      for ((round = 0; round < rounds; ++round)); do
        line=$("$reading" read "$folder" --layout "$layout" --cut "$cut" --ranks "$ranks" --rank $((ranks - 1)) \
          --samples "$samples" --workers "${WORKERS-2}" "${cold[@]}")
        speeds[ours]+=" $(number gigabytes_per_second "$line")"
        for reader in "${others[@]}"; do
          other=$("$python" benchmarks/peer/reading.py "$folder" "$layout" "$cut" "$ranks" $((ranks - 1)) "$samples" \
            "$reader" 2> /dev/null) || continue
          [[ $other != *gigabytes* ]] || speeds[$reader]+=" $(number gigabytes_per_second "$other")"
        done
      done
      asked=$(number rchar "$line")
      ratio=$(awk -v a="$asked" -v w="$whole" -v n="$ranks" 'BEGIN { printf "%.3f", a / w * n }')
      requested=$(number requested_over_share "$line") memory=$(number memory_over_share "$line")
      where="$layout, $cut, 1 of $ranks"
      most 1.1 "$requested" "requested over its share: $where"
      most 1.3 "$memory" "memory over its share: $where"
      [[ $layout,$cut == contiguous,longitude ]] || most 1.3 "$ratio" "asked for over its share: $where"
      text="$where: requested $requested, asked for $ratio, memory $memory; GB/s:" fastest=0
      for reader in ours "${others[@]}"; do
        [[ ${speeds[$reader]-} ]] || continue
        read -ra each <<< "${speeds[$reader]}"
        speed=$(median "${each[@]}")
        text+=$(printf ' %s %.2f' "$reader" "$speed")
        if [[ $reader == ours ]]; then
          ours=$speed
        else
          fastest=$(awk -v a="$fastest" -v b="$speed" 'BEGIN { print (a > b ? a : b) }')
        fi
      done
      awk -v t="$text" -v o="$ours" -v f="$fastest" 'BEGIN { if (f > 0) t = t sprintf(": %.2f of the fastest", o / f); print t }'
    done
  done
done
# Ranks of one machine that need the same chunks, which hold the whole grid at a time: together, or each its own.
for ranks in 2 4 8; do
  declare -A seconds=()
  for ((round = 0; round < rounds; ++round)); do
    for how in '' --apart; do
      line=$("$reading" together "$folder" --layout planes --cut latitude --ranks "$ranks" --samples "$samples" \
        --workers "${WORKERS-2}" ${how:+"$how"} 2> /dev/null)
      seconds[x$how]+=" $(number seconds "$line")"
    done
  done
  read -ra together <<< "${seconds[x]}"
  read -ra apart <<< "${seconds[x--apart]}"
  awk -v n="$ranks" -v a="$(median "${together[@]}")" -v b="$(median "${apart[@]}")" \
    'BEGIN { printf "planes, %d ranks of one machine: together %.2f s, apart %.2f s: %.2f times as fast\n", n, a, b, b / a }'
done
"$reading" index "$folder/years" --files 40 --channels "${CHANNELS-69}"
exit $failed
