#!/usr/bin/env bash
# The script in the kit (scripts/gpu_kit/run.sh) with programs that only seem to be there, and fail, crash, hang and
# ignore signals as those on a GPU may: what it says survives, and nothing else does. 77: a tool is not here.
# shellcheck disable=SC2016,SC2317  # checks are called by name, and get shells of their own
set -uo pipefail
sources=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd) || exit 1
for tool in timeout tar gzip awk; do
  command -v $tool > /dev/null || { echo "skipped: there is no $tool" && exit 77; }
done
# shellcheck source=tests/end_to_end/expect.sh
. "$sources/tests/end_to_end/expect.sh"
# says RUN LINE: whether the report of a run has a line that matches.
says() { grep -q -- "$2" "$folder/$1/report.md"; }
expect_lines() {
  local run=$1 line
  shift
  for line in "$@"; do expect "the report of $run says $line" says "$run" "$line"; done
}

# --- a kit, unpacked
kit=$folder/kit work=$folder/kit/unpacked
mkdir -p "$work"/{bin,lib,configs,expected} "$folder/tools" "$folder/home"
cp "$sources/scripts/gpu_kit/run.sh" "$kit/"
touch "$work/complete" "$work/curves.txt" "$work/kit.json"
echo "made by a test" > "$work/made"
echo '{}' > "$work/configs/demo.json"
echo libcudnn_graph.so.9 > "$work/from_machine"
cat > "$work/cuda_tests.txt" << 'LIST'
kernels_cuda_test Kernels.* none
kernels_crash_test Crash.* none
nccl_gpu_test OneGpu.* none
recorded_steps_cuda_test Hang.Ignores*:Hang.Later* none
mesh_equality_cuda_test Hang.Ends*:Hang.Later* none
LIST

# Says what a program of gtest says. After an illegal address all tests of the process fail.
cat > "$work/bin/cuda_tests" << 'PROGRAM'
#!/usr/bin/env bash
tests=(Kernels.Good/cuda Kernels.Bad/cuda Kernels.Address/cuda Kernels.Behind/cuda Crash.Races/cuda Crash.First/cuda Crash.Crashes/cuda
  Crash.NotReached/cuda OneGpu.Sums OneGpu.Sends Hang.Ends Hang.Ignores Hang.Later)
matches() {
  local pattern patterns
  IFS=: read -ra patterns <<< "${filter%%-*}"
  for pattern in "${patterns[@]}"; do [[ $1 == $pattern ]] && return; done
  return 1
}
sleep_on() { while :; do sleep 1; done; }
filter='*' list=''
for option in "$@"; do
  case $option in
    --gtest_filter=*) filter=${option#*=} ;;
    --gtest_list_tests) list=1 ;;
  esac
done
printf '%s\n' "$filter${JIGSAW_CUDA_SYNC:+ waits}${UNDER:+ under $UNDER}" >> "$FAKE/asked"
bad=0 broken=''
for test in "${tests[@]}"; do
  matches "$test" || continue
  if [[ $list ]]; then printf '%s.\n  %s\n' "${test%%.*}" "${test#*.}"; continue; fi
  echo "[ RUN      ] $test"
  case $test in
    Kernels.Address*) broken=1 ;;
    Crash.Crashes*) kill -SEGV $$ ;;
    Hang.Ends) echo $$ >> "$FAKE/pids"; sleep_on ;;
    Hang.Ignores) trap '' TERM; echo $$ >> "$FAKE/pids"; sleep_on ;;
  esac
  [[ $test != Crash.Races* || ${JIGSAW_CUDA_SYNC-} ]] || raced=1
  if [[ $test == Kernels.Bad* || ${raced-} || $broken ]]; then
    printf '%s\n' "pointwise_test.cpp:12: Failure" "C++ exception with description \"${broken:+an illegal address }in $test\" thrown in the test body."
    echo "[  FAILED  ] $test, where GetParam() = 4-byte object <00-00 00-00> (1 ms)"
    bad=1 raced=''
  else
    echo "[       OK ] $test (0 ms)"
  fi
done
((!bad)) || printf '%s\n' '[  FAILED  ] 2 tests, listed below:'
exit $bad
PROGRAM
cat > "$work/bin/jigsaw-train" << 'PROGRAM'
#!/usr/bin/env bash
case $1 in
  --version) echo "jigsaw-train 0.0" ;;
  check)
    [[ ${FAKE_CHECK-} != hangs ]] || { trap '' TERM; echo $$ >> "$FAKE/pids"; while :; do sleep 1; done; }
    if [[ ${FAKE_NEEDS-} && $LD_LIBRARY_PATH != *"unpacked/lib:$FAKE_NEEDS"* ]]; then
      echo "jigsaw-train: error: cuDNN 9.18.0 or newer is needed, and the library here is 9.10.2"
      exit 2
    fi
    ;;
  predict) sleep 1000 & echo $! >> "$FAKE/pids" ;; # leaves a program behind
esac
PROGRAM
# A model whose steps never end, and do not care for signals.
cat > "$work/bin/model_steps" << 'PROGRAM'
#!/usr/bin/env bash
trap '' TERM
echo $$ >> "$FAKE/pids"
while :; do sleep 1; done
PROGRAM
# A benchmark that takes a moment to end, and then does not.
cat > "$work/bin/kernels_bench_cuda" << 'PROGRAM'
#!/usr/bin/env bash
trap 'sleep 0.2; touch "$FAKE/took_a_moment"' TERM
echo $$ >> "$FAKE/pids"
echo '{"name":"machine"}'
while :; do sleep 1; done
PROGRAM
cat > "$folder/tools/compute-sanitizer" << 'PROGRAM'
#!/usr/bin/env bash
[[ $1 != --help ]] || exit 0
tool=$2
while [[ $1 != */bin/* ]]; do shift; done
UNDER=$tool "$@"
PROGRAM
printf '#!/bin/sh\necho >> "$FAKE/lookups"\n' > "$folder/tools/ldconfig"
chmod +x "$work"/bin/* "$folder"/tools/*
export PATH=$folder/tools:$PATH HOME=$folder/home FAKE=$folder
unset LD_LIBRARY_PATH JIGSAW_KIT_LIMIT

# run NAME ARGUMENT…: its report in a folder of that name.
run() {
  local name=$1
  shift
  "$kit/run.sh" --output "$folder/$name" "$@" > "$folder/$name.said" 2>&1
}
# Who runs holds the pipe open: its reader ends when all programs have.
mkfifo "$folder/running"
{ cat "$folder/running" && touch "$folder/all_ended"; } &
exec 9> "$folder/running"
all_ended() {
  for _ in {1..300}; do
    [[ ! -e $folder/all_ended ]] || return 0
    sleep 0.1
  done
  xargs kill -KILL < "$folder/pids"
  return 1
}
: > "$folder/pids"

# --- runs whose programs hang, and one that is ended by a signal, at the same time
export JIGSAW_KIT_LIMIT=20
run ignores --only graphs & ignores=$!
run ends --only ranks --pack "$folder/ends_packed" & ends=$!
run shipped --only shipped & shipped=$!
run kernels --only kernels --pack "$folder/kernels_packed" & kernels=$!
FAKE_CHECK=hangs run hangs --only graphs & hangs=$!
unset JIGSAW_KIT_LIMIT
"$kit/run.sh" --output "$folder/signal" --only smoke,graphs --pack "$folder/signal_packed" > "$folder/signal.said" 2>&1 & signal=$!
until grep -q 'RUN.*Hang.Ignores' "$folder/signal/logs/graphs.log" 2> /dev/null; do
  kill -0 $signal 2> /dev/null || break
  sleep 0.1
done
expect "what was found is packed before the next part ends" grep -q '[*]smoke[*]*: passed' "$folder/signal_packed/report.md"
kill -TERM $signal
wait $signal
expect "a run that is ended says so in its exit code" test $? = 143
expect_lines signal '\*\*smoke\*\*: passed' 'ended by a signal'
expect "what was found until then is packed" grep -q 'ended by a signal' "$folder/signal_packed/report.md"
expect "and what programs said" sh -c 'tar -xzOf "$1" logs/graphs.log | grep -q "RUN.*Hang.Ignores"' sh "$folder/signal_packed/logs.tgz"

wait $ignores
expect "a later part that was cut short is no failure" test $? = 0
expect_lines ignores '\*\*graphs\*\*: cut short' 'did not end: \[ RUN      \] Hang.Ignores'
wait $ends
expect_lines ends '\*\*ranks\*\*: cut short' 'cut short: mesh_equality_cuda_test after [0-9]* s'
wait $shipped
expect_lines shipped '\*\*shipped\*\*: cut short'
wait $kernels
expect_lines kernels '\*\*kernels\*\*: cut short' '1 were cut short'
expect "a program has a moment to end" test -e "$folder/took_a_moment"
expect "what it has measured is packed" grep -q machine "$folder/kernels_packed/kernels.jsonl"
wait $hangs
expect "a program that does not answer is no GPU" test $? = 2
expect_lines hangs 'there is no GPU that the program can use\*\*: nothing said'
exec 9>&-
expect "no program outlives its part" all_ended

# --- failures, crashes, and what is told of them
: > "$folder/asked"
rm -f "$folder/lookups"
mkdir "$folder/packed"
run fails --only smoke,tests,memcheck_failed,nccl --pack "$folder/packed"
expect "what failed shows in the exit code" test $? = 1
expect_lines fails '\*\*smoke\*\*: passed' '\*\*tests\*\*: FAILED with exit code 1' \
  'FAILED: kernels_crash_test, exit code 139 in Crash.Crashes/cuda' \
  'FAILED alone: Kernels.Bad/cuda: exit code 1:.*in Kernels.Bad' 'FAILED alone: Kernels.Address/cuda: .*an illegal address' \
  'FAILED alone: Crash.Races/cuda: exit code 1 (not with JIGSAW_CUDA_SYNC=1)' \
  'FAILED alone: Crash.Crashes/cuda: exit code 139' 'did not end: \[ RUN      \] Crash.Crashes/cuda' \
  'alone these pass: Kernels.Behind/cuda' 'alone: 4 fail, 1 fail only behind another test, 0 could not' \
  '\*\*nccl\*\*: passed.*: 2 tests passed'
expect "tests that passed, or passed alone where a crash was before them, are counted" says fails '3 tests passed, others FAILED'
expect "alone, programs wait for each launch" grep -qx 'Kernels.Address/cuda waits' "$folder/asked"
expect "what passed is not run again" sh -c '! grep -qx "Kernels.Good/cuda.*" "$1"' sh "$folder/asked"
expect "memcheck looks at what fails alone" grep -qx 'Kernels.Bad/cuda:Kernels.Address/cuda under memcheck' "$folder/asked"
expect "then at their suites" grep -q '^Crash[.][*]/cuda-.* under memcheck' "$folder/asked"
expect "right behind the tests" sh -c 'grep -A1 -E "^- ..tests|^- ..memcheck_failed|^- ..nccl" "$1" | grep -o "^- [*]*[a-z_]*" | paste -sd" " | grep -q "tests - ..memcheck_failed - ..nccl"' sh "$folder/fails/report.md"
expect "libraries are looked for once" test "$(wc -l < "$folder/lookups")" = 2
expect "at most 8 files are packed" test "$(find "$folder/packed" -type f | wc -l)" -le 8
expect "the packed report is the whole one" cmp "$folder/packed/report.md" "$folder/fails/report.md"
expect "what tests said is packed" sh -c 'tar -xzOf "$1" logs/kernels_cuda_test.log | grep -q "OK.*Kernels.Good"' sh "$folder/packed/logs.tgz"
mkdir "$folder/many"
for i in {1..12}; do echo '{}' > "$folder/many/$i.jsonl"; done
run many --only nccl --pack "$folder/packed"
expect "of many files 8 at most are packed" test "$(find "$folder/packed" -type f | wc -l)" -le 8
expect "among them the report and what programs said" test -s "$folder/packed/report.md" -a -s "$folder/packed/logs.tgz"

# Tests of recorded steps find none where each launch is waited for.
echo 'recorded_steps_cuda_test Kernels.Bad*:Kernels.Good* none' > "$work/cuda_tests.txt"
: > "$folder/asked"
run graphs --only graphs
expect_lines graphs 'FAILED alone: Kernels.Bad/cuda: exit code 1:' '1 tests passed, others FAILED'
expect "recorded steps are not waited for" sh -c '! grep -q waits "$1"' sh "$folder/asked"

# --- libraries that the program refuses
echo 'nccl_gpu_test OneGpu.* none' > "$work/cuda_tests.txt"
mkdir -p "$folder/old" "$folder/home/.local/lib/python3.11/site-packages/nvidia/cudnn/lib"
touch "$folder/old/libcudnn_graph.so.9" "$folder/home/.local/lib/python3.11/site-packages/nvidia/cudnn/lib/libcudnn_graph.so.9"
export FAKE_NEEDS=$folder/home/.local/lib/python3.11/site-packages/nvidia/cudnn/lib
LD_LIBRARY_PATH=$folder/old run other --only nccl
expect "another cuDNN of the machine is taken where the first one is too old" test $? = 0
expect_lines other "those of $FAKE_NEEDS go first, for with the others: .*cuDNN 9.18.0 or newer" '\*\*nccl\*\*: passed'
LD_LIBRARY_PATH=$folder/old HOME=$folder run none --only nccl
expect "without one nothing is tried" test $? = 2
expect_lines none 'error: cuDNN 9.18.0 or newer is needed' 'Nothing was tried'

((failed == 0)) || for report in "$folder"/*/report.md; do echo "--- $report" && cat "$report"; done
exit $failed
