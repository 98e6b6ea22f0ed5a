# shellcheck shell=bash
# Sourced by the scripts of this folder, which can be called from anywhere: strict mode, the
# project's root as working folder, messages, and what Open MPI wants to be told.
set -euo pipefail
caller=$(realpath "$0")
script=${caller##*/}
cd "$(dirname "$(realpath "${BASH_SOURCE[0]}")")/.."

say() { printf '== %s: %s\n' "$script" "$*"; }
die() {
  printf '%s: error: %s\n' "$script" "$*" >&2
  exit 1
}
# The comment at the head of a script is its help text.
usage() { awk 'NR > 1 { if (!/^#/ || /^# shellcheck/) exit; sub(/^# ?/, ""); print }' "$caller"; }

# Root may start ranks, and more of them than there are cores. Containers forbid the system call
# behind single-copy transfers, about which Open MPI would complain.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
