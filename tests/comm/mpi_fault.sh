#!/bin/sh
# mpi_fault.sh EXIT TEXT COMMAND...: the command must end with this exit code and say TEXT.
wanted=$1 text=$2
shift 2
output=$("$@" 2>&1)
code=$?
echo "$output"
[ "$code" -eq "$wanted" ] || { echo "exit code $code, not $wanted"; exit 1; }
case "$output" in
  *"$text"*) ;;
  *) echo "does not say: $text"; exit 1 ;;
esac
