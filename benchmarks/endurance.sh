#!/usr/bin/env bash
# Trains for a given time under random signals, kills, full and slow disks, each start on another mesh, and then compares every
# loss with those of a run that nothing disturbed. Prints how often what happened and how far the curves are apart; exit 1 where
# that is more than 1e-9.
#
#   benchmarks/endurance.sh [MINUTES] [BUILD_FOLDER]   (60, build/test; needs its target endurance_test)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [[ $(id -u) == 0 ]]; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
export JIGSAW_ENDURANCE_MINUTES=${1-60}
"${2-build/test}/tests/end_to_end/endurance_test" --gtest_brief=1
