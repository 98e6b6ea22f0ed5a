#!/usr/bin/env bash
# Compiles CUDA's kernels and says which of them keep registers in memory (spills, as ptxas counts them), which none of
# them should. Needs nvcc; takes minutes. (In scripts/test.sh --cuda auto spills are errors of the build.)
#
#   scripts/check_spills.sh [--arch 90,80] [--verbose] [FILE…]
#
#   --arch A,B   compute capabilities (default: 90)
#   --verbose    also prints registers and shared memory of each kernel
#   FILE…        of src/kernels/cuda (default: all)
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

architectures=90 verbose=false files=()
while (($#)); do
  case "$1" in
    --arch)
      (($# > 1)) || die "$1 needs a value; see --help"
      architectures=$2 && shift
      ;;
    --verbose) verbose=true ;;
    -h | --help) usage && exit ;;
    -*) die "unknown option $1; see --help" ;;
    *) files+=("$1") ;;
  esac
  shift
done
((${#files[@]})) || files=(src/kernels/cuda/*.cu)
nvcc=${CUDACXX-$(PATH=$PATH:/usr/local/cuda/bin command -v nvcc)} || die "there is no nvcc"

log=$(mktemp)
trap 'rm -f "$log"' EXIT
spilling=0
for file in "${files[@]}"; do
  for architecture in ${architectures//,/ }; do
    # The kernel stands in one line, its stack and spills in the next, registers in the third.
    "$nvcc" -std=c++20 -O3 -DNDEBUG -Isrc --resource-usage -arch="sm_$architecture" -c -o /dev/null "$file" &> "$log" ||
      die "$file does not compile for sm_$architecture: $(grep -m1 error "$log")"
    awk -v where="$file, sm_$architecture" -v verbose="$verbose" '
      /Function properties for/ { kernel = $NF }
      /bytes spill stores/ {
        ++kernels
        match($0, /[0-9]+ bytes spill stores/); stores = substr($0, RSTART, RLENGTH) + 0
        match($0, /[0-9]+ bytes spill loads/); loads = substr($0, RSTART, RLENGTH) + 0
        if (stores + loads > 0) { ++spilling; printf "%s: %s spills: %d bytes stored, %d loaded\n", where, kernel, stores, loads }
      }
      /Used [0-9]+ registers/ && verbose == "true" { sub(/.*: Used/, "Used"); printf "%s: %s: %s\n", where, kernel, $0 }
      END { printf "%s: %d kernels, %d with spills\n", where, kernels, spilling; exit spilling > 0 }' "$log" || spilling=1
  done
done
((spilling == 0)) || die "kernels spill registers"
