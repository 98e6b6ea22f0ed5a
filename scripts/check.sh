#!/usr/bin/env bash
# Checks the source without running it:
#   1. every include keeps to its room and those below (scripts/check_includes.sh)
#   2. every header compiles alone, every source without precompiled headers
#   3. every shell script passes shellcheck; train.sbatch and sweep.sbatch requeue in the same way
#   4. the layout of the code is clang-format 14's
#   5. what the documents link to is there; they build as a site (scripts/docs.sh)
#   6. clang-tidy's findings (.clang-tidy) in src/ and apps/: none
#   7. the faults of tests/faults/faults.json fit the sources
#
#   scripts/check.sh [--seconds N]
#
#   --seconds N     2 and 6 stop after N seconds each, default 90, and say what they left; files changed
#                   last and others, each day others, are looked at in turn
#
# What needs a tool that is not installed is skipped, and says so (scripts/setup.sh --checks).
# Every check runs even when an earlier one failed; the exit code is 0 only when all passed.
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

seconds=90
while (($#)); do
  case "$1" in
    --seconds) seconds=${2:?"needs a number"} ;;
    -h | --help) usage && exit ;;
    *) die "unknown option $1; see --help" ;;
  esac
  shift 2
done

# Every source by itself, as it stands.
folder=$PWD/build/check
database=$folder/compile_commands.json
cmake -S . -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=Release -DJIGSAW_UNITY=OFF -DJIGSAW_PRECOMPILE=OFF -DJIGSAW_WERROR=ON > /dev/null
cmake --build "$folder" --target jigsaw_commit > /dev/null

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

# Sources and headers, in turn one of the last ten commits (then of those that include their headers) and one of
# all, beginning each day where about that of four days before came to: all are seen in time.
changed_files() {
  local changed=$folder/changed all=$folder/all
  {
    git diff --name-only HEAD
    git log -10 --format= --name-only
    git log -10 --format= --name-only | sed -nE 's|^src/(.*/)?([^/]+/[^/]+\.h)$|"\2"|p' | sort -u |
      grep -rlFf - src apps tests benchmarks
  } 2> /dev/null | grep -E '\.(cpp|h)$' > "$changed" || true
  find src apps tests benchmarks -name '*.cpp' -o -name '*.h' | sort |
    awk -v day=$(($(date +%s) / 86400)) '{ all[NR] = $0 } END { for (i = 0; i < NR; ++i) print all[(10 * day + i) % NR + 1] }' > "$all"
  paste -d '\n' "$changed" "$all" | awk 'NF && !seen[$0]++'
}

# in_parallel NAME ACTION: runs the shell command, whose $1 is a line of the input, for as many lines as there is
# time; fails where one did.
in_parallel() {
  local name=$1 action=$2 lines passed=$folder/passed found=$folder/found
  : > "$passed" && : > "$found"
  mapfile -t lines
  ((${#lines[@]} > 0)) || return
  # shellcheck disable=SC2016
  printf '%s\n' "${lines[@]}" | timeout "$seconds" xargs -P "$(nproc)" -d '\n' -n 1 sh -c \
    'if sh -c "$1" sh "$4"; then echo "$4" >> "$2"; else echo "$4" >> "$3"; fi' \
    sh "$action" "$passed" "$found" || true
  say "$name: $(cat "$passed" "$found" | wc -l) of ${#lines[@]} files in at most $seconds s"
  [[ -s $passed && ! -s $found ]]
}

# Commands that look for errors in one file each: a header by the source that includes it alone.
compile_commands() {
  awk -v root="$PWD/" -v headers="$folder/headers/" '
    /^ *"command": "/ { command = $0; sub(/^ *"command": "/, "", command); sub(/",?$/, "", command) }
    /^ *"file": "/ { gsub(/^ *"file": "|",?$/, ""); of[$0] = command }
    FILENAME != "-" { next }
    root $0 in of { print of[root $0]; next }
    /\.h$/ { for (name = $0; sub(/^[^\/]*\//, "", name);) if (headers name ".cpp" in of) { print of[headers name ".cpp"]; break } }
  ' "$database" - | sed -E 's/\\(["\\])/\1/g; s/ -o [^ ]+ -c / -fsyntax-only /'
}

own_includes() {
  local unguarded
  unguarded=$(find src -name '*.h' -exec grep -L '^#pragma once$' {} +)
  [[ -z $unguarded ]] || { echo "no #pragma once: $unguarded" && return 1; }
  # shellcheck disable=SC2016
  changed_files | compile_commands | in_parallel "own includes" 'eval "$1"'
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

# clang knows GCC's bounds-strict as bounds.
tidy() {
  mkdir -p "$folder/tidy"
  sed 's/bounds-strict/bounds/' "$database" > "$folder/tidy/compile_commands.json"
  changed_files | grep -E '^(src|apps)/.*\.cpp$' | while read -r file; do
    if grep -qF "/$file\"" "$database"; then echo "$file"; fi
  done | in_parallel "clang-tidy" "clang-tidy -p '$folder/tidy' --quiet \
    --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-unused-command-line-argument --extra-arg=-Wno-unknown-pragmas \"\$1\" 2> /dev/null"
}

check "include directions" awk includes
check "own includes" awk own_includes
check "shell scripts" shellcheck shell_scripts
check "links of documents" grep links
check "site of documents" mkdocs scripts/docs.sh
check "faults" python3 tests/faults/run.py --check
check "layout" clang-format-14 layout
check "clang-tidy" clang-tidy tidy
((${#failed[@]} == 0)) || die "failed: ${failed[*]}"
