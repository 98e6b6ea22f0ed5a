#!/usr/bin/env bash
# Compiles one or a few rooms with a sanitizer, links them with the others of a build that is there, and runs their
# tests: the share of the sanitizers' work that fits into a few minutes. Every share has its day.
#
#   scripts/sanitize.sh [options] FOLDER    FOLDER: of a build with tests, such as build/test
#
#   --share N      that of the number N in place of today's; --list prints them
#   --seconds N    what is not built and run by then is said and left; default 180
#
# All rooms and tests of a label at once: the presets asan and tsan (CONTRIBUTING.md).
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# SANITIZERS | ROOMS that are compiled with them | TESTS, as ctest's regular expression
shares=(
  "address,undefined|base array config|base_test array_test config_test"
  "thread|base array comm|comm_test"
  "address,undefined|comm parallel|comm_test layout_test exchange_test redistribute_test"
  "address,undefined|files|files_test"
  "thread|comm checkpoint|checkpoint_test durability_test"
  "address,undefined|times grids fields|samples_test"
  "address,undefined|samples images|samples_test"
  "address,undefined|checkpoint optim|checkpoint_test durability_test adamw_test"
  "address,undefined|autograd|gradient_test"
  "thread|files fields samples|samples_test"
  "address,undefined|layers|mesh_equality_test"
  "address,undefined|task init train|task_test first_times_test run_directory_test any_mesh_test"
  "address,undefined|predict evaluate estimate sweep|predict_files_test scores_test estimate_test sweep_unit_test"
  "address,undefined|report|report_room_test"
)

folder='' seconds=180 share=''
while (($#)); do
  case "$1" in
    --share | --seconds)
      (($# > 1)) || die "$1 needs a number; see --help"
      [[ $2 =~ ^[0-9]+$ ]] || die "$1 needs a number, not $2"
      if [[ $1 == --share ]]; then share=$2; else seconds=$2; fi
      shift
      ;;
    --list) for i in "${!shares[@]}"; do echo "$i|${shares[i]}"; done | column -t -s '|' && exit ;;
    -h | --help) usage && exit ;;
    -*) die "unknown option $1; see --help" ;;
    *) folder=$1 ;;
  esac
  shift
done
[[ -f $folder/CMakeCache.txt ]] || die "the folder of a build is needed; see --help"
# Each round through them begins one later, so that who comes every fourth day meets all.
day=$(($(date +%s) / 86400))
share=${share:-$(((day + day / ${#shares[@]}) % ${#shares[@]}))}
((share < ${#shares[@]})) || die "there are shares 0 to $((${#shares[@]} - 1)), not $share"
IFS='|' read -r sanitizers rooms tests <<< "${shares[share]}"
read -ra targets <<< "$tests"

# shellcheck disable=SC2317  # called by the trap
# What the build was before; its rooms without a sanitizer are built anew when they are next needed.
restore() { cmake -S . -B "$folder" -DJIGSAW_SANITIZE= -DJIGSAW_SANITIZE_ROOMS= > /dev/null; }
trap restore EXIT
cmake -S . -B "$folder" "-DJIGSAW_SANITIZE=$sanitizers" "-DJIGSAW_SANITIZE_ROOMS=${rooms// /;}" > /dev/null
say "share $share: $rooms with $sanitizers, tests $tests"

# within COMMAND…: what is left of the time; exit code 124 when it is not enough.
within() { timeout "$((SECONDS < seconds ? seconds - SECONDS : 1))" "$@"; }
status=0
within cmake --build "$folder" --target "${targets[@]}" || status=$?
if ((status == 0)); then
  within ctest --test-dir "$folder" --parallel "$(nproc)" --output-on-failure --no-tests=error \
    -R "^(${tests// /|})\$" || status=$?
fi
if ((status == 124)); then
  say "not built and run within $seconds s: share $share was left, its tests prove nothing today"
  exit 0
fi
exit "$status"
