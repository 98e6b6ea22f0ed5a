#!/usr/bin/env bash
# Checks the source without running it:
#   1. every include keeps to its room and those below (scripts/check_includes.sh)
#   2. every header compiles alone: here, but for those that a source of theirs includes first where the
#      build folder precompiles none (-DJIGSAW_PRECOMPILE=OFF)
#   3. every shell script passes shellcheck; train.sbatch and sweep.sbatch requeue in the same way
#   4. the layout of the code is clang-format 14's
#   5. what the documents link to is there; they build as a site (scripts/docs.sh)
#   6. clang-tidy's findings (.clang-tidy) in src/ and apps/: none
#
#   scripts/check.sh [options]
#
#   --tidy-seconds N  clang-tidy stops after N seconds, default 120, and says what it left; files
#                     changed last are looked at first
#   --build FOLDER    a build folder that is configured; default: build/check, configured here
#
# What needs a tool that is not installed is skipped, and says so (scripts/setup.sh --checks).
# Every check runs even when an earlier one failed; the exit code is 0 only when all passed.
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

tidy_seconds=120 folder=
while (($#)); do
  case "$1" in
    --tidy-seconds) tidy_seconds=${2:?"needs a number of seconds"} ;;
    --build) folder=${2:?"needs a folder"} ;;
    -h | --help) usage && exit ;;
    *) die "unknown option $1; see --help" ;;
  esac
  shift 2
done
if [[ -z $folder ]]; then
  folder=build/check
  cmake -S . -B $folder -G Ninja -DCMAKE_BUILD_TYPE=Release > /dev/null
fi

failed=()
check() {  # NAME TOOL COMMAND…
  local name=$1 tool=$2
  shift 2
  if ! command -v "$tool" > /dev/null; then
    say "$name: skipped, there is no $tool"
  elif "$@"; then
    say "$name: passed"
  else
    say "$name: FAILED"
    failed+=("$name")
  fi
}

includes() { scripts/check_includes.sh --self-test && scripts/check_includes.sh; }

headers() {
  local unguarded
  unguarded=$(find src -name '*.h' -exec grep -L '^#pragma once$' {} +)
  [[ -z $unguarded ]] || { echo "no #pragma once: $unguarded" && return 1; }
  cmake --build "$folder" --target headers
}

# What users copy as single files has one text in both.
same_requeue() {
  diff <(requeue_of train) <(requeue_of sweep) || { echo "train.sbatch and sweep.sbatch requeue differently" && return 1; }
}
requeue_of() { sed -n '/^# The same in train.sbatch and sweep.sbatch/,/^requeue() {/p; /^requeue() {/,/^}/p' "scripts/slurm/$1.sbatch"; }

shell_scripts() {
  same_requeue || return
  grep -rlE '^#!.*\<(bash|sh)$|^# shellcheck shell' scripts benchmarks tests .ci | xargs -d '\n' shellcheck -x
}

# Versions lay out differently; Debian 12 has 14.
layout() {
  {
    find src apps tests benchmarks -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' || true
  } 2> /dev/null | xargs -d '\n' clang-format-14 --dry-run -Werror
}

# Files that Markdown links to, relative to the document.
links() {
  local document target broken=0
  while IFS=: read -r document target; do
    target=${target#*](}
    target=${target%%[)#]*}
    [[ $target == http* || -z $target || -e $(dirname "$document")/$target ]] && continue
    echo "$document links to $target, which is not there" && broken=1
  done < <(grep -oE '\]\([^) ]+\)' -- *.md docs/*.md packaging/*.md python/*.md tests/goldens/*.md)
  return $broken
}

# Compiled sources, those changed last first.
tidy_files() {
  {
    git diff --name-only HEAD
    git log --format= --name-only
    find src apps -name '*.cpp' | sort
  } 2> /dev/null | grep -E '^(src|apps)/.*\.cpp$' | awk '!seen[$0]++' |
    while read -r file; do
      if grep -qF "/$file\"" "$folder/compile_commands.json"; then echo "$file"; fi
    done
}

tidy() {
  local passed=$folder/tidy_passed found=$folder/tidy_found files
  : > "$passed" && : > "$found"
  # It cannot read GCC's precompiled headers, nor is it to parse them in every file.
  mkdir -p "$folder/tidy"
  sed -E 's/-Winvalid-pch -include [^ "]*cmake_pch\.hxx//' "$folder/compile_commands.json" > "$folder/tidy/compile_commands.json"
  mapfile -t files < <(tidy_files)
  ((${#files[@]} > 0)) || return
  # shellcheck disable=SC2016
  printf '%s\n' "${files[@]}" | timeout "$tidy_seconds" xargs -P "$(nproc)" -I FILE sh -c \
    'if clang-tidy -p "$1" --quiet --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-unknown-pragmas "$2" 2> /dev/null
    then echo "$2" >> "$3"; else echo "$2" >> "$4"; fi' \
    sh "$folder/tidy" FILE "$passed" "$found" || true
  say "clang-tidy looked at $(cat "$passed" "$found" | wc -l) of ${#files[@]} files in at most $tidy_seconds s"
  [[ -s $passed && ! -s $found ]]
}

check "include directions" awk includes
check "headers compile alone" cmake headers
check "shell scripts" shellcheck shell_scripts
check "links of documents" grep links
check "site of documents" mkdocs scripts/docs.sh
check "layout" clang-format-14 layout
check "clang-tidy" clang-tidy tidy
((${#failed[@]} == 0)) || die "failed: ${failed[*]}"
