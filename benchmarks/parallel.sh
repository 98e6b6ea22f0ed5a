#!/usr/bin/env bash
# One training step of a model of the benchmark trio on two ranks of one thread each, beside PyTorch's data parallelism with
# two processes, in one run on one machine and of one global batch of two samples: seconds per step, and peak memory of a
# rank. Ours on three meshes. PyTorch is looked for in /usr/bin/python3 (Debian's python3-torch), or in $PYTHON; FSDP on CPUs
# needs PyTorch 2.6 or newer, an older one prints its error.
#
#   benchmarks/parallel.sh MODEL [BUILD_FOLDER]   (mixer or vit; default build/release; needs its target trio_step)
#
# STEPS: timed steps, 3 unless set.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=benchmarks/peer/beside_torch.sh
source benchmarks/peer/beside_torch.sh
model=${1:?say which model: mixer or vit}
build=${2-build/release}
steps=${STEPS-3}
if [[ $(id -u) == 0 ]]; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
declare -A ours
for axis in domain tensor data; do
  ours[$axis]=$(OMP_NUM_THREADS=1 mpirun -n 2 "$build/benchmarks/trio_step" "$model" --samples 2 --threads 1 --steps "$steps" "--$axis" 2)
  echo "${ours[$axis]}"
done
need_torch
for wrap in ddp fsdp; do
  peer=$("$python" benchmarks/peer/torch_parallel.py "$model" --wrap "$wrap" --processes 2 --threads 1 --steps "$steps") ||
    continue  # its error says why
  echo "$peer"
  for axis in domain tensor data; do
    awk -v a="$(number seconds_per_step "${ours[$axis]}")" -v b="$(number seconds_per_step "$peer")" \
      -v m="$(number peak_bytes "${ours[$axis]}")" -v n="$(number peak_memory_bytes "$peer")" -v axis="$axis" -v wrap="$wrap" 'BEGIN {
        printf "{\"benchmark\":\"%s 2 over %s\",\"step_time\":%.3f,\"peak_memory_of_a_rank\":%.3f}\n", axis, wrap, a / b, m / n }'
  done
done
