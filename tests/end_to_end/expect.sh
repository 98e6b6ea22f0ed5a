# What tests of scripts share: a folder that goes with the test, and checks that are counted as they fail.
# shellcheck shell=bash disable=SC2034  # for who takes this in
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
# expect WHAT COMMAND…
expect() {
  local what=$1
  shift
  "$@" || { echo "FAILED: $what" && failed=1; }
}
