#!/usr/bin/env bash
# Reading a global 0.25 degree data set as 1, 2, 4, 8 ranks do, beside h5py, netCDF4, xarray with zarr and PyTorch's
# DataLoader where $PYTHON (default /usr/bin/python3) has them, on the same hyperslabs, alternating. Each measurement is a
# process of its own; the lines say what was requested over the rank's share (1.1 asked), what was fetched over the
# share of one rank's (1.3 asked, of latitude and channels in a contiguous file and of any cut in patches), GB/s of
# values, and memory over the share of the batches that are read ahead (1.3 asked).
#
#   benchmarks/reading.sh [BUILD_FOLDER]   (default build/release; needs its target reading)
#
# ROWS, COLUMNS, CHANNELS, TIMES: 721, 1440, 69, 4 unless set: 1.1 GB in one piece and half of that in patches.
# SAMPLES: 4. FOLDER: where the files are kept, /tmp/jigsaw-reading unless set. COLD=1: from disk each time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${1-build/release}
folder=${FOLDER-/tmp/jigsaw-reading}
python=${PYTHON-/usr/bin/python3}
samples=${SAMPLES-4}
reading=$build/benchmarks/reading

if [[ ! -e $folder/patches.nc ]]; then
  "$reading" write "$folder" --rows "${ROWS-721}" --columns "${COLUMNS-1440}" --channels "${CHANNELS-69}" --times "${TIMES-4}"
fi

# field NAME LINE: a number of a line of JSON.
field() { sed -E "s/.*\"$1\":([-0-9.e+]+).*/\1/" <<< "$2"; }

cold=()
[[ ${COLD-0} == 1 ]] && cold=(--cold)
for layout in contiguous patches; do
  for cut in latitude longitude channels; do
    whole=
    for ranks in 1 2 4 8; do
      line=$("$reading" read "$folder" --layout "$layout" --cut "$cut" --ranks "$ranks" --rank $((ranks - 1)) \
        --samples "$samples" --workers "${WORKERS-2}" "${cold[@]}")
      fetched=$(field fetched "$line")
      whole=${whole:-$fetched}
      echo "$line"
      awk -v l="$layout" -v c="$cut" -v n="$ranks" -v f="$fetched" -v w="$whole" \
        'BEGIN { printf "%s %s 1/%d: fetched %.3f of its share\n", l, c, n, f / w * n }'
      for reader in h5py netcdf4 zarr loader; do
        "$python" benchmarks/peer/reading.py "$folder" "$layout" "$cut" "$ranks" "$samples" "$reader" 2> /dev/null ||
          echo "{\"reader\":\"$reader\",\"failed\":true}"
      done
    done
  done
done
"$reading" index "$folder/years" --files 40 --channels "${CHANNELS-69}"
