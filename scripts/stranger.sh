#!/usr/bin/env bash
# Runs tests as on other people's machines, to see that no condition of a machine decides them.
#
#   scripts/stranger.sh [--build FOLDER] CONDITION… [-- CTEST-OPTION…]
#
#   core     on one core
#   load     beside four busy loops
#   nice     at the lowest priority
#   bare     with /sys and /proc empty, as in some containers; needs root
#   german   with LANG=de_DE.UTF-8 (package locales; localedef -i de_DE -f UTF-8 de_DE.UTF-8)
#   user     by a user without rights, who builds a clone of what is committed in a path with blanks;
#            needs root
#
# All but `user` run what is built in FOLDER, default build/test. Conditions come one after the other;
# the exit code is 0 only when all tests passed under each.
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

folder=build/test
conditions=()
while (($#)); do
  case "$1" in
    --build) folder=${2:?"needs a folder"} && shift ;;
    --) shift && break ;;
    core | load | nice | bare | german | user) conditions+=("$1") ;;
    -h | --help) usage && exit ;;
    *) die "unknown condition $1; see --help" ;;
  esac
  shift
done
((${#conditions[@]} > 0)) || die "no condition is given; see --help"
tests=(ctest --parallel "$(nproc)" --output-on-failure --label-exclude real "$@")

# As nobody, whose home is the folder of the clone.
as_nobody() { runuser -u nobody -- env HOME="$home" "$@"; }

run_under() {
  local loops=() status=0 home
  case "$1" in
    core) taskset -c 0 "${tests[@]}" --test-dir "$folder" ;;
    nice) nice -n 19 "${tests[@]}" --test-dir "$folder" ;;
    bare)
      # shellcheck disable=SC2016
      unshare -m sh -c 'mount -t tmpfs none /sys && mount -t tmpfs none /proc && exec "$@"' sh \
        "${tests[@]}" --test-dir "$folder"
      ;;
    german) LC_ALL='' LANG=de_DE.UTF-8 "${tests[@]}" --test-dir "$folder" ;;
    load)
      for _ in 1 2 3 4; do
        while :; do :; done &
        loops+=($!)
      done
      "${tests[@]}" --test-dir "$folder" || status=$?
      kill "${loops[@]}"
      return $status
      ;;
    user)
      home=$(mktemp -d "${TMPDIR:-/tmp}/a stranger XXXXXX")
      git clone --quiet . "$home/a clone" && chown -R nobody "$home" &&
        as_nobody cmake -S "$home/a clone" -B "$home/a build" -G Ninja -DCMAKE_BUILD_TYPE=Release &&
        as_nobody cmake --build "$home/a build" && as_nobody "${tests[@]}" --test-dir "$home/a build" ||
        status=$?
      rm -rf "$home"
      return $status
      ;;
  esac
}

failed=()
for condition in "${conditions[@]}"; do
  say "$condition"
  run_under "$condition" || failed+=("$condition")
done
((${#failed[@]} == 0)) || die "tests failed under: ${failed[*]}"
