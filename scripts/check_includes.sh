#!/usr/bin/env bash
# Checks the direction of every include between rooms (folders of src/, or of a folder there: src/io/files).
#
#   scripts/check_includes.sh [ROOT]       ROOT: a source tree; default this one
#   scripts/check_includes.sh --self-test  proves on small trees that wrong ones are found
#
# A room names the rooms that it uses in DEPENDS of its jigsaw_room(...); they stand before it in
# the foreach(room ...) of the root CMakeLists.txt. Its sources include "room/header.h" of
# themselves and of the rooms so reached, and no header of ours written in any other way. The memory of
# arrays (array/raw_memory.h) is for that room, for the backends, src/kernels/<backend>/, and for src/comm/nccl/ and src/comm/mpi/.
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# What stands in the brackets of a CMake command, on one line.
arguments_of() {  # FILE COMMAND
  sed 's/#.*//' "$1" | tr '\n' ' ' | sed "s/.*\<$2(\([^)]*\)).*/\1/"
}

# One line per room, lowest first: "room FOLDER NAME …"; one line per include: "include FILE:LINE HEADER".
describe() {
  local order room
  order=$(sed -n 's/^foreach(room \(.*\))$/\1/p' CMakeLists.txt)
  for room in $order; do
    [[ ! -f src/$room/CMakeLists.txt ]] || echo "room src/$room $(arguments_of "src/$room/CMakeLists.txt" jigsaw_room)"
  done
  grep -rnE --include='*.h' --include='*.cpp' --include='*.cu' --include='*.cuh' \
    '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' src |
    sed -E 's/^([^:]*:[0-9]*):[^"]*"([^"]*)".*/include \1 \2/'
}

check_tree() {
  (cd "$1" && describe) | awk '
    function report(message) { print message; bad = 1 }
    # The room of a file: that of the longest folder in its path which is one.
    function room_of(file) {
      while (sub("/[^/]*$", "", file)) if (file in room_in) return room_in[file]
      return ""
    }
    $1 == "room" {
      name = $3
      room_in[$2] = name
      known[name] = 1
      sees[name, name] = 1
      inside = 0
      for (i = 4; i <= NF; i++) {
        if ($i ~ /^[A-Z_]+$/) { inside = $i == "DEPENDS"; continue }
        if (!inside) continue
        if (!($i in known)) report($2 "/CMakeLists.txt: " $i " is not a room below " name)
        for (room in known) if (($i, room) in sees) sees[name, room] = 1
      }
    }
    $1 == "include" {
      from = room_of($2)
      split($3, parts, "/"); to = parts[1]
      if (from == "") report($2 ": no room of CMakeLists.txt holds this file")
      else if (!(to in known)) report($2 ": \"" $3 "\" is not written as \"room/header.h\"")
      else if (!((from, to) in sees)) report($2 ": \"" $3 "\" is not in a room below " from)
      else if ($3 == "array/raw_memory.h" && from != "array" && from != "nccl" && $2 !~ /^src\/(kernels\/[a-z_]+|comm\/mpi)\//)
        report($2 ": only backends of kernels touch the memory of arrays; use HostView, upload or download")
      else count++
    }
    END {
      if (!count) report("no include between rooms was found")
      if (bad) exit 1
      print count " includes keep to their rooms and those below"
    }'
}

# Checks a tree of three rooms, in which `high` sees `low` only, after a line was added to a file.
expect() {  # passes|fails FILE LINE
  local tree outcome=passes
  tree=$(mktemp -d)
  mkdir -p "$tree"/src/{array,kernels/cpu,low,wing/side,high}
  echo 'foreach(room array kernels low wing/side high)' > "$tree/CMakeLists.txt"
  echo 'jigsaw_room(array SOURCES a.cpp)' > "$tree/src/array/CMakeLists.txt"
  echo 'jigsaw_room(kernels SOURCES a.cpp DEPENDS array)' > "$tree/src/kernels/CMakeLists.txt"
  echo 'jigsaw_room(low SOURCES a.cpp)' > "$tree/src/low/CMakeLists.txt"
  echo 'jigsaw_room(side SOURCES a.cpp DEPENDS low)' > "$tree/src/wing/side/CMakeLists.txt"
  printf 'jigsaw_room(high\n  SOURCES a.cpp  # why\n  DEPENDS low PUBLIC_LIBRARIES x::y)\n' > "$tree/src/high/CMakeLists.txt"
  echo '#include "low/a.h"' | tee "$tree"/src/{low,wing/side,high}/a.cpp > /dev/null
  echo "$3" >> "$tree/$2"
  check_tree "$tree" > "$tree/log" || outcome=fails
  [[ $outcome == "$1" ]] || die "self-test: a tree with '$3' in $2 $outcome: $(cat "$tree/log")"
  rm -rf "$tree"
}

case "${1-}" in
  -h | --help) usage ;;
  --self-test)
    expect passes src/high/a.cpp '#include <side/a.h>'
    expect fails src/high/a.cpp '#include "side/a.h"'
    expect passes src/wing/side/a.cpp '#include "side/a.h"'
    expect fails src/wing/side/a.cpp '#include "wing/side/a.h"'
    expect fails src/wing/side/a.cpp '#include "high/a.h"'
    expect fails src/wing/a.cpp '#include "low/a.h"'
    expect fails src/low/a.cpp '  #  include "high/a.h"'
    expect fails src/high/a.cpp '#include "../low/a.h"'
    expect fails src/high/a.cpp '#include "a.h"'
    expect passes src/kernels/cpu/a.cpp '#include "array/raw_memory.h"'
    expect fails src/kernels/a.cpp '#include "array/raw_memory.h"'
    expect fails src/low/CMakeLists.txt '# jigsaw_room(low DEPENDS high)
jigsaw_room(low DEPENDS high)'
    say "self-test: wrong includes are found"
    ;;
  *) check_tree "${1-.}" ;;
esac
