#!/usr/bin/env bash
# scripts/gpu_kit.sh and the script in the kit, without a GPU: what it packs starts elsewhere and tries what it should, and
# what goes wrong shows in the report and the exit code. 77: something that the kit needs is not here.
#
#   gpu_kit_test.sh BUILD    the build folder, whose programs are taken as they are
# shellcheck disable=SC2016,SC2317  # checks are called by name, and get shells of their own
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
for tool in strip ldd xz awk timeout pkg-config; do
  command -v $tool > /dev/null || { echo "skipped: there is no $tool" && exit 77; }
done
plugins=$(pkg-config --variable=libdir ompi 2> /dev/null || echo /usr/lib/x86_64-linux-gnu/openmpi/lib)/openmpi3
[[ -e $plugins/mca_btl_self.so && -d /usr/share/openmpi ]] || { echo "skipped: no Open MPI with plugins here" && exit 77; }

# shellcheck source=tests/end_to_end/expect.sh
. tests/end_to_end/expect.sh
says() { grep -q -- "$1" "$folder/report/report.md"; }

scripts/gpu_kit.sh --fake --built --quick --build "$1" --output "$folder/kit" || exit 1
# A place without what the build folder has.
unset JIGSAW_SOURCE_DIR
cd /
run() {
  rm -rf "$folder/report"
  "$folder/kit/run.sh" --output "$folder/report" "$@" > "$folder/said" 2>&1
}

run --device cpu --only smoke,check,nccl,curves,shipped
expect "on the processor all passes" test $? = 0
for line in '\*\*smoke\*\*: passed' '\*\*check\*\*: not run' '\*\*nccl\*\*: not run' '\*\*curves\*\*: passed' '\*\*shipped\*\*: passed' \
  'era5_uk_unet: a step of 8 samples takes' 'Nothing failed'; do
  expect "the report says $line" says "$line"
done
# A sanitizer that runs nothing and finds nothing.
mkdir "$folder/tools" && printf '#!/bin/sh\nexit 0\n' > "$folder/tools/compute-sanitizer" && chmod +x "$folder/tools/compute-sanitizer"
PATH=$folder/tools:$PATH run --device cuda --minutes 50 --only check,graphs,ranks,nccl,memcheck
for line in '\*\*check\*\*: passed' '\*\*graphs\*\*: passed.*: [1-9][0-9]* tests passed' \
  '\*\*ranks\*\*: passed.*: 1 tests passed' '\*\*memcheck\*\*: passed.*memcheck: [1-9][0-9]* groups of tests, clean'; do
  expect "on the fake GPU the report says $line" says "$line"
done
# One that the GPU does not let in.
printf '#!/bin/sh\necho "========= Error: Device not supported"\nexit 1\n' > "$folder/tools/compute-sanitizer"
PATH=$folder/tools:$PATH run --device cuda --minutes 50 --only racecheck
expect "a tool that cannot be used is no failure" test $? = 0
expect "the report says why" says '\*\*racecheck\*\*: not run.*cannot be used on this GPU: .*Device not supported'
# Libraries that the user names come first; what is missing is named with what gets it.
mkdir "$folder/named" && touch "$folder/named/libcuda.so.1"
echo libcudnn_none.so.9 >> "$folder/kit/unpacked/from_machine"
LD_LIBRARY_PATH=$folder/named${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} run --device cpu --only nccl
for line in "libcuda.so.1: $folder/named/libcuda.so.1" 'Not found: libcudnn_none.so.9. .* pip install nvidia-nccl-cu13 nvidia-cudnn-cu13 nvidia-cublas nvidia-cuda-nvrtc'; do
  expect "the report says $line" says "$line"
done
# Without the first parts nothing is known. The limit of a part is the one for a group of processes.
printf '#!/bin/sh\n[ "$1" != --foreground ] || exec %s "$@"\nexit 124\n' "$(command -v timeout)" > "$folder/tools/timeout" && chmod +x "$folder/tools/timeout"
PATH=$folder/tools:$PATH run --device cpu --only smoke
expect "a first part that was cut short shows in the exit code" test $? = 1
expect "and in the report" says '\*\*smoke\*\*: cut short'
rm "$folder/tools/timeout"
# Every test for a GPU is in a part.
patterns=$(sed -n "s/^part_.*tests_of '\(.*\)'.*/\1/p" "$folder/kit/run.sh" | paste -sd'|')
while read -r name _; do
  expect "$name is tried" grep -qE "$patterns" <<< "$name"
done < "$folder/kit/unpacked/cuda_tests.txt"

# Another curve is found, and a program that is not there.
sed -i 's/"loss":/"loss":1/' "$folder/kit/unpacked/expected/mixer.jsonl"
rm "$folder/kit/unpacked/bin/model_steps"
run --device cpu --only curves,shipped
expect "what failed shows in the exit code" test $? = 1
for line in '\*\*curves\*\*: FAILED' 'DIFFERS' '\*\*shipped\*\*: FAILED' 'Something failed'; do
  expect "the report says $line" says "$line"
done
((failed == 0)) || cat "$folder/report/report.md" "$folder/said"
exit $failed
