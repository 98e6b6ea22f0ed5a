#!/usr/bin/env bash
# Trains one run in several jobs, one after the other, for sites that do not requeue.
#
#   scripts/slurm/chain.sh JOBS [options of sbatch] -- --config era5.json [more options of jigsaw-train]
#
# Submits JOBS jobs of train.sbatch, each of which waits for the one before and goes on from its checkpoint. When the
# run is finished, or ends with an error, the jobs that are left end at once with the same exit code. A job that is
# cancelled ends as at its time limit, and the next one goes on: cancel all.
set -euo pipefail

die() {
  echo "chain.sh: error: $*" >&2
  exit 2
}
here=$(dirname "$(realpath "$0")")
[[ ${1-} =~ ^[1-9][0-9]*$ ]] || die "the number of jobs comes first: chain.sh 5 --nodes=4 -- --config era5.json"
jobs=$1
shift
options=()
while (($# > 0)) && [[ $1 != -- ]]; do
  [[ $1 != --export* || $1 == --export=ALL* ]] || die "$1 keeps from the jobs what a chain tells them; leave it out"
  options+=("$1")
  shift
done
[[ ${1-} == -- ]] || die "options of jigsaw-train come behind --"
shift

# How the job before ended, removed by the last one; a file on a file system that all nodes see.
state=$(mktemp "$PWD/.jigsaw-chain-XXXXXX" 2> /dev/null) || die "nothing can be written in $PWD, where a chain keeps how its jobs ended"
echo 75 > "$state"
before=
all=()
for ((job = 1; job <= jobs; ++job)); do
  dependency=()
  [[ -z $before ]] || dependency=("--dependency=afterany:$before")
  last=
  ((job < jobs)) || last=yes # it removes the file when it ends
  if ! before=$(JIGSAW_CHAIN=$state JIGSAW_CHAIN_LAST=$last sbatch --parsable --no-requeue --export=ALL \
    "${dependency[@]}" "${options[@]}" "$here/train.sbatch" "$@"); then
    if ((job == 1)); then
      rm -f "$state"
      die "sbatch failed, and no job was submitted"
    fi
    die "sbatch failed for job $job of $jobs; submitted are ${all[*]}, which train as far as they come; to end them:" \
      "scancel ${all[*]}"
  fi
  echo "job $job of $jobs: $before"
  all+=("$before")
done
echo "chain.sh: to end the chain before it is done: scancel ${all[*]}" >&2
