#!/usr/bin/env bash
# Tries jigsaw-train on the GPU of this machine: what matters most first, each part with a limit of its own, all
# within eight minutes. What is found stands in report.md, which grows as parts end, so that it is there whatever
# happens; what programs said stands in logs/, and after each part as one file logs.tgz, too.
#
#   ./run.sh                   all parts
#   ./run.sh --only PART,…     some of them: smoke check tests memcheck_failed graphs curves shipped steps kernels
#                              models plans nccl ranks memcheck racecheck
#   ./run.sh --minutes M       all within M minutes (default 8)
#   ./run.sh --device cpu      on the processor, to try the kit itself
#   ./run.sh --output FOLDER   where report.md and logs/ go (default: results/ beside this script)
#   ./run.sh --pack FOLDER     after each part copies report.md, logs.tgz and the numbers (*.jsonl, *.json) there, at
#                              most 8 files, which is what a machine that gives back few and small files can return
#
# A test that failed, crashed or hung, and those behind a crash, are tried again, each in a process of its own, as far
# as the time of their part allows; where kernels fail, memcheck_failed looks at these before anything is measured.
#
# Libraries of CUDA are looked for in LD_LIBRARY_PATH first; where the program refuses those, others of the machine are
# tried. Programs get the first GPU, or those of CUDA_VISIBLE_DEVICES. With JIGSAW_KIT_LIMIT=S in the environment no part
# takes more than S seconds, nor does a program that is only asked what it can, to try the kit itself.
#
# Exit code: 0 when nothing failed, 1 when something failed, or smoke, check or tests were cut short, 2 when there is no
# GPU that the kit can use.
# shellcheck disable=SC2317  # parts are called by name
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
output=$here/results only='' minutes=8 device=cuda pack='' inside='' limit=0
while (($#)); do
  case "$1" in
    --only) only=,$2, && shift ;;
    --minutes) minutes=$2 && shift ;;
    --device) device=$2 && shift ;;
    --output) output=$2 && shift ;;
    --pack) pack=$2 && shift ;;
    --inside) inside=$2 && shift ;;  # one part, started by this script itself under its limit
    --limit) limit=$2 && shift ;;    # of that part, in seconds
    -h | --help) awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "${BASH_SOURCE[0]}" && exit ;;
    *) echo "run.sh: error: unknown option $1; see --help" >&2 && exit 2 ;;
  esac
  shift
done

mkdir -p "$output/logs" && output=$(cd "$output" && pwd) || exit 1
report=$output/report.md logs=$output/logs
say() { printf '%s\n' "$*" >> "$report" && printf '%s\n' "$*"; }
if [[ $pack ]]; then mkdir -p "$pack" && pack=$(cd "$pack" && pwd) || exit 1; fi
# first_words FILE, last_words FILE: its first and its last line that says something; a shell says what ended a program.
first_words() { grep -m1 -E 'error|Error|[[:alnum:]]' "$1" 2> /dev/null | cut -c1-400; }

last_words() { grep -E '[[:alnum:]]' "$1" | grep -vE '^(Terminated|Killed)$' | tail -1 | cut -c1-300; }

# --- the programs and what they need, unpacked once
unpack() {
  work=$here/unpacked
  if [[ ! -e $work/complete ]]; then
    mkdir -p "$work" 2> /dev/null && [[ -w $work ]] || work=$(mktemp -d) || return
    { if command -v xz > /dev/null; then xz -dc; else LD_LIBRARY_PATH=$here "$here/xz" -dc; fi; } < "$here/payload.tar.xz" | tar -x -C "$work" &&
      touch "$work/complete"
  fi
}

# known_library NAME: where programs find a library by themselves: in a folder that the user names, or as the system does.
known_library() {
  local folder
  while read -r folder; do
    [[ -n $folder && -e $folder/$1 ]] && echo "$folder/$1" && return
  done < <(tr : '\n' <<< "${LD_LIBRARY_PATH-}")
  PATH=$PATH:/usr/sbin:/sbin ldconfig -p 2> /dev/null | awk -v name="$1" '$1 == name && !found { print $NF; found = 1 } END { exit !found }'
}

# hidden_libraries NAME: where else the machine has a library of CUDA, one a line. The kit brings none of these half
# gigabytes.
hidden_libraries() {
  local folder
  for folder in /usr/local/cuda*/{lib64,lib,targets/*/lib} /usr/local/nvidia/lib{64,} \
    /opt/nvidia/*/lib{64,} /usr/{,local/}lib/python3*/{dist,site}-packages/nvidia/*/lib \
    /opt/*/lib/python3*/site-packages/nvidia/*/lib /opt/*/.venv/lib/python3*/site-packages/nvidia/*/lib \
    "${HOME-/root}"/.local/lib/python3*/site-packages/nvidia/*/lib; do
    [[ -e $folder/$1 ]] && echo "$folder/$1"
  done
  folder=$(timeout -k 3 20 python3 -c 'import nvidia; print(list(nvidia.__path__)[0])' 2> /dev/null) || return 0
  find -L "$folder" -name "$1" 2> /dev/null
}

# find_libraries: sets `libraries`, folders of libraries; what is found where, and what is missing.
find_libraries() {
  local name library
  # What the user names goes before what is found.
  libraries=$work/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  for name in $(cat "$work/from_machine") libcuda.so.1; do
    if ! library=$(known_library "$name"); then
      library=$(hidden_libraries "$name" | head -1)
      if [[ $library ]]; then
        libraries+=:$(dirname "$library")
      elif [[ $name != libcuda.so.1 ]]; then # which comes with the driver
        missing+=" $name"
      fi
    fi
    found+="$name: ${library:-not found}"$'\n'
  done
}

prepare() {
  unpack || return
  # Which would have libraries compute otherwise than the program asks for.
  unset NVIDIA_TF32_OVERRIDE CUBLAS_EMULATE_SINGLE_PRECISION CUDA_LAUNCH_BLOCKING
  # One rank needs no launcher, no network, and no daemon.
  export OPAL_PREFIX=$work/openmpi OPAL_PKGDATADIR=$work/openmpi/share/openmpi
  export OMPI_MCA_mca_base_component_path=$work/openmpi/lib/openmpi3 OMPI_MCA_ess_singleton_isolated=1 OMPI_MCA_btl=self OMPI_MCA_pml=ob1 OMPI_MCA_pmix=isolated
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  find_libraries
}

# start PROGRAM ARGUMENT…, with what stands in `around` before it.
around=() loader=() libraries='' work='' found='' missing=''
start() {
  local program=$work/bin/$1
  shift
  # A shell that waits for its program when the limit is up, as those of pipelines must do, too: else nobody kills the
  # program where it goes on.
  [[ -z $inside ]] || trap 'exit 143' TERM
  LD_LIBRARY_PATH=$libraries ${around[@]+"${around[@]}"} ${loader[@]+"${loader[@]}"} "$program" "$@"
}
train() { start jigsaw-train "$@"; }

bring_loader() { loader=("$work/loader/ld-linux-x86-64.so.2" --library-path "$work/loader:$libraries"); }

# runs: whether the program starts.
runs() {
  local around=(timeout --foreground -k 3 "${JIGSAW_KIT_LIMIT:-60}")
  loader=()
  rm -f "$logs/gpu"
  train --version &> "$logs/version" < /dev/null && return
  # Where the machine's C library is older than the programs they bring their own.
  bring_loader
  train --version &> "$logs/version" < /dev/null
}

# opens: whether it can use a GPU, too.
opens() {
  local around=(timeout --foreground -k 3 "${JIGSAW_KIT_LIMIT:-60}")
  runs && train check --config "$work/kit.json" --set "device=$device" --set "output=$output/check" &> "$logs/gpu" < /dev/null
}

# refused: the libraries of the machine that the program did not start with, or found unfit.
refused() {
  local family
  for family in $(grep -hiE 'error|undefined symbol|not found' "$logs/version" "$logs/gpu" 2> /dev/null | grep -oiE 'cudnn|nccl|cublas' | tr '[:upper:]' '[:lower:]' | sort -u); do
    grep "^lib$family" "$work/from_machine"
  done
}

# opens_with_others: the same with other libraries of the machine in place of those refused.
opens_with_others() {
  local name library folder others why before=$libraries tried=' '
  why=$(grep -hm1 -E 'error|undefined symbol|not found' "$logs/gpu" "$logs/version" 2> /dev/null | head -1 | cut -c1-300)
  for name in $(refused); do
    others=$(hidden_libraries "$name")
    for library in $others; do
      folder=$(dirname "$library")
      [[ $tried != *" $(readlink -f "$folder") "* ]] || continue
      tried+="$(readlink -f "$folder") "
      libraries=$work/lib:$folder${before#"$work/lib"}
      opens && say "- libraries: those of $folder go first, for with the others: $why" && return
    done
  done
  # What the report says is of those that the machine has first.
  libraries=$before
  [[ $tried != ' ' ]] && opens
}

# --- parts: exit code 77 says that a part cannot run here; the last line that a part prints goes into the report

# A run that saves, one that goes on from it, and a forecast.
part_smoke() {
  local run=$output/smoke common=(--config "$work/kit.json" --set "device=$device" --set train.steps=6)
  rm -rf "$run"
  train check "${common[@]}" --set "output=$run" || return
  train "${common[@]}" --set "output=$run" --set checkpoint.every=3 --set train.steps=3 || return
  train "${common[@]}" --set "output=$run" --set checkpoint.every=3 || return
  train predict "${common[@]}" --checkpoint "$run/checkpoints/latest" --steps 2 --start 2021-01-20 --output "$run/forecast.nc" || return
  echo "trained 3 steps, went on to 6, forecast 2 steps"
}

# Driver, libraries, rates, links; numbers that are known.
part_check() {
  [[ $device == cuda ]] || { echo "gpu-check is for a GPU only" && return 77; }
  train gpu-check
}

# outcomes LOG: a line for each test of a log, in order: passed, failed, skipped, or began where it did not end; and
# its name.
outcomes() {
  awk '
    match($0, /\[ RUN      \] |\[       OK \] |\[  FAILED  \] |\[  SKIPPED \] /) {
      tag = substr($0, RSTART, RLENGTH); name = substr($0, RSTART + RLENGTH)
      sub(/[ ,].*/, "", name)
      if (name !~ /[.]/) next
      if (!(name in state)) order[++count] = name
      state[name] = tag ~ /RUN/ ? "began" : tag ~ /OK/ ? "passed" : tag ~ /FAILED/ ? "failed" : "skipped"
    }
    END { for (i = 1; i <= count; ++i) print state[order[i]], order[i] }' "$1" 2> /dev/null
}

# listed FILTER: the names of tests that match.
listed() {
  local around=(timeout --foreground -k 3 30)
  start cuda_tests --gtest_filter="$1" --gtest_list_tests < /dev/null | awk '/^[^ ]/ { suite = $1 } /^  / { print suite $1 }'
}

# why LOG: what a test said that failed.
why() {
  awk '/Failure$/ && !lines { lines = 3 } lines { text = text " " $0; if (!--lines) exit }
    /[[:alnum:]]/ && !/^\[|^Note: Google Test|^Running main/ { last = $0 } END { print text != "" ? text : last }' "$1" | cut -c1-400
}

# entry NAME FILTER SECONDS: an entry of ctest in one process, which says its tests as they go. Adds to `suspects` what
# failed, did not end or was not reached.
entry() {
  local log=$logs/$1.log code states name
  around=(timeout --foreground -k 3 "$3")
  start cuda_tests --gtest_filter="$2" < /dev/null 2>&1 | tee "$log"
  code=${PIPESTATUS[0]}
  around=()
  states=$(outcomes "$log")
  ((passed += $(grep -c '^passed ' <<< "$states")))
  ! grep -q '^skipped ' <<< "$states" || skipped=1
  ((code)) || return 0
  name=$(sed -n 's/^began //p' <<< "$states")
  if ((code == 124 || code == 137)); then
    cut=1 && echo "cut short: $1 after $3 s${name:+ in $name}"
  else
    bad=1 && echo "FAILED: $1, exit code $code${name:+ in $name}"
  fi
  sed -n 's/^failed //p; s/^began //p' <<< "$states" >> "$logs/${inside}_failed.txt"
  # Those that failed or did not end come first, then those not reached.
  mapfile -t -O "${#suspects[@]}" suspects < <(sed -n 's/^failed //p; s/^began //p' <<< "$states"
    listed "$2" | grep -vxF -f <(cut -d' ' -f2 <<< "$states"))
}

# alone NAME [SETTING]: one test in a process of its own, for 15 s or what is left of the part. What it said stands in
# $said, and in the end in logs/PART_alone.log; 75 says that no time was left.
alone() {
  local around code=0 seconds=$((deadline - SECONDS))
  ((seconds > 0)) || return 75
  ((seconds < 15)) || seconds=15
  around=(env "${@:2}" timeout --foreground -k 3 "$seconds")
  start cuda_tests --gtest_filter="$1" < /dev/null &> "$said" || code=$?
  cat "$said" >> "$logs/${inside}_alone.log"
  if ((code == 124 || code == 137)); then
    ((seconds == 15)) || return 75
    echo "did not end in 15 s" >> "$said"
  fi
  return "$code"
}

# fails_alone NAME: says so where a test fails alone, where each launch is waited for or where it is not. 75: no time.
fails_alone() {
  local code=0 how='' waits=(JIGSAW_CUDA_SYNC=1)
  # Where each launch is waited for no steps are recorded, of which the tests of this part are.
  [[ $inside != graphs ]] || waits=()
  alone "$1" ${waits[@]+"${waits[@]}"} || code=$?
  # It hides what is wrong between two launches, too.
  if ((code == 0 && ${#waits[@]})) && grep -qxF "$1" "$logs/${inside}_failed.txt"; then
    how=' (not with JIGSAW_CUDA_SYNC=1)'
    alone "$1" || code=$?
  fi
  ((code != 75)) || return 75
  ((code)) || return 1
  echo "$1" >> "$logs/${inside}_failed_alone.txt"
  echo "FAILED alone: $1: exit code $code$how:$(why "$said")"
}

# try_alone: each suspect in a process of its own, while there is time. What fails alone stands in
# logs/PART_failed_alone.txt.
try_alone() {
  local name code said=$logs/${inside}_now.log failing=0 behind=() untried=0
  ((${#suspects[@]})) || return 0
  for name in "${suspects[@]}"; do
    code=0
    fails_alone "$name" || code=$?
    if ((code == 0)); then
      ((++failing)) && bad=1
    elif ((code == 75)); then
      ((++untried))
    elif grep -qxF "$name" "$logs/${inside}_failed.txt"; then
      behind+=("$name")
    else
      ((++passed))
    fi
  done
  rm -f "$said"
  ((${#behind[@]} == 0)) || echo "alone these pass: ${behind[*]}"
  echo "alone: $failing fail, ${#behind[@]} fail only behind another test, $untried could not be tried"
}

# tests_of PATTERN: ctest's entries of label gpu whose names match (cuda_tests.txt: a name, its filter, and what of that
# is quick on the fake device), each a process of its own; a quarter of the time is kept for what fails.
tests_of() {
  local pattern=$1 name filter quick seconds entries=0 bad=0 cut=0 passed=0 skipped=0 suspects=()
  local -x JIGSAW_SOURCE_DIR=$work JIGSAW_REAL_DATA=/nonexistent JIGSAW_TEST_DEVICE=
  [[ $device == cpu ]] || JIGSAW_TEST_DEVICE=$device
  rm -f "$logs/${inside}"_{failed,failed_alone}.txt "$logs/${inside}_alone.log"
  entries=$(awk -v pattern="$pattern" '$1 ~ pattern { ++n } END { print n + 0 }' "$work/cuda_tests.txt")
  while read -r name filter quick <&3; do
    [[ $name =~ $pattern ]] || continue
    [[ -e $work/fake || $device == cpu ]] && filter=$quick
    seconds=$((deadline - SECONDS - limit / 4))
    # One that hangs leaves something for others.
    ((--entries == 0)) || seconds=$((seconds * 2 / 3))
    [[ $filter != none ]] || continue
    ((seconds > 0)) || { cut=1 && echo "not run, no time was left: $name" && continue; }
    # Tests of kernels are named by what they run on.
    entry "$name" "${filter//\/cuda//$device}" "$seconds"
  done 3< "$work/cuda_tests.txt"
  try_alone
  echo "$passed tests passed$( ((!bad)) || echo ', others FAILED')"
  ((!bad)) || return 1
  ((!cut)) || return 124
  ((passed > 0)) || { ((skipped)) && return 77 || return 1; }
}
part_tests() { tests_of '^kernels_'; }
# Gradients, PyTorch's numbers, layers, losses, the optimizer, whole training runs, forecasts.
part_models() { tests_of '^(gradient|golden|attention_golden|field_layer|image_loss|adamw|trainer|forecasts|window_blend)_'; }
# Steps that are replayed as CUDA graphs give the bits of those that are not.
part_graphs() { tests_of '^recorded_steps_'; }
# Ranks that are threads share the GPU: outputs and all gradients of mixer, ViT, Swin and U-Net.
part_ranks() { tests_of '^(mesh_equality|unet)_'; }
part_nccl() { tests_of '^nccl_'; }
# What cuDNN plans for this GPU, and the GPU's properties as cuDNN sees them, in device_properties.json.
part_plans() {
  local -x JIGSAW_SOURCE_DIR=$work
  [[ -e $work/bin/cudnn_plan_test && $device == cuda ]] || { echo "cuDNN's plans are for a GPU only" && return 77; }
  start cudnn_plan_test || return
  sed -n 's/^properties of the GPU here: //p' "$logs/plans.log" > "$output/device_properties.json"
  [[ -s $output/device_properties.json ]] && echo "device_properties.json holds the properties of this GPU"
}

# The curves of curves.txt on the GPU beside those of the processor, which came with the kit; the first one twice,
# and equal to the last bit.
part_curves() {
  local name tolerance settings bad=0 setting options run=$output/curves
  rm -rf "$run"
  while read -r name tolerance settings; do
    [[ -n $name && $name != \#* ]] || continue
    options=()
    for setting in $settings; do options+=(--set "$setting"); done
    train --config "$work/kit.json" --set "device=$device" "${options[@]}" --set "output=$run/$name" > "$logs/curve_$name.log" 2>&1
    if [[ ! -s $run/$name/metrics.jsonl ]]; then
      echo "$name: FAILED: $(grep -h error "$logs/curve_$name.log" | head -1)"
      bad=1
      continue
    fi
    compare "$name" "$tolerance" "$work/expected/$name.jsonl" "$run/$name/metrics.jsonl" || bad=1
  done < "$work/curves.txt"
  train --config "$work/kit.json" --set "device=$device" --set "output=$run/again" > "$logs/curve_again.log" 2>&1
  train --config "$work/kit.json" --set "device=$device" --set "output=$run/once_more" >> "$logs/curve_again.log" 2>&1
  compare "the same twice" 0 "$run/again/metrics.jsonl" "$run/once_more/metrics.jsonl" || bad=1
  ((bad == 0)) && echo "all loss curves agree" || echo "not all loss curves agree"
  return "$bad"
}

# compare NAME TOLERANCE WANTED FOUND
compare() {
  awk -v name="$1" -v tolerance="$2" '
    function number(key) { return match($0, "\"" key "\":[-+.0-9eE]+") ? substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3) : "" }
    !/"kind":"train"/ { next }
    NR == FNR { wanted[number("step")] = number("loss"); ++count; next }
    {
      step = number("step"); loss = number("loss"); ++steps
      if (loss == "" || wanted[step] == "") { missing = 1; next }
      difference = (loss - wanted[step]) / wanted[step]
      if (difference < 0) difference = -difference
      if (difference > worst) { worst = difference; at = step }
    }
    END {
      good = steps == count && steps > 0 && !missing && worst <= tolerance
      printf "%-16s %d of %d steps, worst relative difference %.3g%s, at most %g: %s\n", name, steps, count, worst, at ? " at step " at : "", tolerance, good ? "agrees" : "DIFFERS"
      exit !good
    }' "$3" "$4"
}

# attach TOOL TEST: sets `around` to what starts programs under a tool of compute-sanitizer, or says why that cannot be.
attach() {
  local tool=$1 sanitizer said help code=0
  sanitizer=$(command -v compute-sanitizer || find /usr/local/cuda*/ -name compute-sanitizer -type f 2> /dev/null | head -1)
  [[ -n $sanitizer ]] || { echo "there is no compute-sanitizer here" && return 77; }
  # Arrays apart, else what goes beyond one lies in the memory of others.
  around=(env JIGSAW_CUDA_MEMORY=apart "$sanitizer" --tool "$tool" --error-exitcode 9 --target-processes all --print-limit 20)
  # Our kernels alone, and no calls that fail inside of libraries, where this version knows these options.
  help=$("$sanitizer" --help 2>&1)
  ! grep -q -- --kernel-name <<< "$help" || around+=(--kernel-name kernel_substring=jigsaw)
  [[ $tool != memcheck ]] || ! grep -q -- --report-api-errors <<< "$help" || around+=(--report-api-errors no)
  # One test first: virtual GPUs, and some drivers, let no such tool in.
  said=$(start cuda_tests --gtest_filter="$2" --gtest_brief=1 2>&1) || code=$?
  if grep -q 'Device not supported' <<< "$said" || { ((code)) && ! grep -qE 'ERROR SUMMARY|PASSED|FAILED' <<< "$said"; }; then
    printf '%s\n' "$said" "compute-sanitizer cannot be used on this GPU: $(grep -m1 -E 'Device not supported|rror' <<< "$said")"
    return 77
  fi
}

# Long tests are left out under compute-sanitizer, and those whose work libraries do for the most part.
sanitized_tests() {
  echo "*/$device-*Million*:*RepeatsBitForBit*:*RandomLetters*:*PartsOfTheKeysCombine*:*RandomShapes*:*HeadsInQueues*:*WholeGrid*:*OverlapLargely*"
}

# under TOOL WHAT FILTER…: tests under what attach() gave, each filter a process of its own.
under() {
  local tool=$1 what=$2 filter errors=0 done=0
  shift 2
  for filter in "$@"; do
    start cuda_tests --gtest_filter="$filter" < /dev/null || { errors=1 && echo "ERRORS in ${filter%%-*}"; }
    ((++done))
  done
  echo "$tool: $done $what, $( ((errors)) && echo ERRORS || echo clean)"
  return "$errors"
}

# sanitized TOOL: the kernels' tests, those of our own kernels first, in few processes, for each loads all libraries under
# the tool.
sanitized() {
  local tests suites group groups=() both='Attention|Misaligned' libraries='Contraction|Convolution'
  mapfile -t tests < <(listed "$(sanitized_tests)")
  suites=$(printf '%s\n' "${tests[@]}" | sed 's/[.].*/./' | uniq)
  for group in "$(grep -vE "$both|$libraries" <<< "$suites")" "$(grep -E "$both" <<< "$suites")" "$(grep -E "$libraries" <<< "$suites")"; do
    [[ -z $group ]] || groups+=("$(awk -v tests="*/$device" '{ print $0 tests }' <<< "$group" | paste -sd:)-$(sanitized_tests | cut -d- -f2-)")
  done
  ((${#groups[@]})) || { echo "ERRORS: no tests are listed" && return 1; }
  attach "$1" "${tests[0]}" || return
  under "$1" "groups of tests" "${groups[@]}"
}
part_memcheck() { sanitized memcheck; }
part_racecheck() { sanitized racecheck; }

# The tests of kernels that failed, those that fail alone where there are any, suite by suite; then all of these suites.
part_memcheck_failed() {
  local names=$logs/tests_failed_alone.txt suites
  local -x JIGSAW_SOURCE_DIR=$work
  [[ -s $names ]] || names=$logs/tests_failed.txt
  [[ -s $names ]] || { echo "no test of a kernel has failed" && return 77; }
  mapfile -t suites < <(sed 's/[.].*/./' "$names" | awk '!seen[$0]++')
  attach memcheck "$(head -1 "$names")" || return
  local suite filters=()
  for suite in "${suites[@]}"; do filters+=("$(awk -v suite="$suite" 'index($0, suite) == 1' "$names" | paste -sd:)"); done
  under memcheck "runs of what failed" "${filters[@]}" "${suites[@]/%/$(sanitized_tests)}"
}

part_kernels() {
  [[ -e $work/bin/kernels_bench_cuda && $device == cuda ]] || { echo "the benchmark of kernels is there for a GPU only" && return 77; }
  start kernels_bench_cuda cuda | tee "$output/kernels.jsonl"
  (($(wc -l < "$output/kernels.jsonl") > 1)) && echo "kernels.jsonl holds $(wc -l < "$output/kernels.jsonl") lines"
}

# Steps of models that fill the GPU better, in seconds.
part_steps() {
  local precision type model run=$output/steps
  [[ ! -e $work/fake && $device == cuda ]] || { echo "large models take too long without a GPU" && return 77; }
  rm -rf "$run"
  for type in weathermixer vit; do
    for precision in fp32 bf16; do
      model="{\"type\":\"$type\",\"patch\":[1,1],\"embed_dim\":768,\"depth\":8$([[ $type == vit ]] && echo ',"heads":12')}"
      train --config "$work/kit.json" --set "device=$device" --set "model=$model" --set "train.precision=$precision" --set train.steps=12 \
        --set "output=$run/${type}_$precision" > "$logs/steps_${type}_$precision.log" 2>&1 || { grep -h error "$logs/steps_${type}_$precision.log" && return 1; }
      awk -v name="$type $precision" 'match($0, /"step_seconds":[-+.0-9eE]+/) { t[++n] = substr($0, RSTART + 15, RLENGTH - 15) + 0 }
        END { best = t[3]; for (i = 3; i <= n; ++i) if (t[i] < best) best = t[i]; printf "%s: fastest of %d steps %.1f ms (batch 8, 2,664 tokens, width 768, depth 8)\n", name, n - 2, best * 1e3 }' \
        "$run/${type}_$precision/metrics.jsonl"
    done
  done
}

# Steps of the configurations as they are shipped, on made-up data: those of 0.25° with one sample.
part_shipped() {
  local name settings seconds=40 bad=0 code line common=(--device "$device" --threads "$(nproc)")
  : > "$output/shipped.jsonl"
  for name in demo era5_uk_mixer era5_uk_vit era5_uk_unet era5_uk_ensemble ct_denoise_unet3d era5_vit era5_swin era5_sfno era5_weathermixer_1b; do
    settings=()
    if [[ $name == era5_[vsw]* ]]; then
      [[ ! -e $work/fake && $device == cuda ]] || continue
      settings=(--set train.batch_size=1)
    fi
    around=(timeout --foreground -k 3 "$seconds")
    line=$(start model_steps "${common[@]}" ${settings[@]+"${settings[@]}"} "$work/configs/$name.json" 2> "$logs/shipped_$name.log") && code=0 || code=$?
    if ((code == 124 || code == 137)); then
      echo "$name: cut short after $seconds s"
      continue
    elif ((code != 0)); then
      echo "$name: FAILED with exit code $code: $(first_words "$logs/shipped_$name.log")"
      bad=1
      continue
    fi
    printf '%s\n' "$line" >> "$output/shipped.jsonl"
    awk -v name="$name" '
      function number(key) { return match($0, "\"" key "\":[-+.0-9eE]+") ? substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3) + 0 : 0 }
      { printf "%s: a step of %d samples takes %.2f ms: %.3g TFLOP/s, %.3g GB/s of kernels, at most %.3g GB in arrays\n", name, number("samples"),
          1e3 * number("seconds"), number("flops") / number("seconds") / 1e12, number("bytes") / number("seconds") / 1e9, number("peak_bytes") / 1e9 }' <<< "$line"
  done
  echo "shipped.jsonl holds $(wc -l < "$output/shipped.jsonl") configurations"
  return "$bad"
}

# --- one part under its limit, with what the script found before the first one
if [[ -n $inside ]]; then
  work=$JIGSAW_KIT_WORK libraries=$JIGSAW_KIT_LIBRARIES
  ((!JIGSAW_KIT_LOADER)) || bring_loader
  deadline=$((limit - limit / 20 - 1))
  ulimit -c 0
  trap 'exit 143' TERM
  "part_$inside"
  exit
fi

# pack: logs/ as one file, and with --pack what is to be taken away. An eighth file is there while another is replaced.
pack() {
  local file count=0
  find "$logs" -type f -size +4096k | while read -r file; do
    { head -c 1000000 "$file" && printf '\n[…]\n' && tail -c 1000000 "$file"; } > "$file.short" && mv "$file.short" "$file"
  done
  tar -C "$output" -czf "$output/logs.new" logs 2> /dev/null
  mv "$output/logs.new" "$output/logs.tgz"
  [[ $pack && $pack != "$output" ]] || return 0
  for file in "$report" "$output"/logs.tgz "$output"/*.jsonl "$output"/*.json; do
    if [[ ! -e $file ]] || ((++count > 7)); then continue; fi
    cp "$file" "$pack/new" && mv "$pack/new" "$pack/${file##*/}"
  done
}

# finish: whatever ends the script, no program stays, and what was found is packed.
running='' client=''
finish() {
  [[ -z $running ]] || kill -KILL -- "-$running" 2> /dev/null
  [[ -z $client ]] || kill "$client" 2> /dev/null
  pack
}
: > "$report"
trap finish EXIT
trap 'say "- **ended by a signal** after $SECONDS s"; exit 143' TERM INT HUP

if [[ $device == cuda ]]; then
  export CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES-0}
  # Without a client the driver starts anew for each program, in seconds for each GPU.
  if command -v nvidia-smi > /dev/null; then
    timeout -k 3 "$((minutes * 60 + 60))" nvidia-smi -l 5 < /dev/null > /dev/null 2>&1 &
    client=$!
  fi
fi

# advice: what gets the libraries that are missing.
advice() {
  local major
  [[ $missing ]] || return 0
  major=$(sed -n 's/^libcublasLt\.so\.\([0-9]*\)$/\1/p' "$work/from_machine" | head -1)
  major=${major:-13}
  say "Not found:$missing. This gets all of them: python3 -m pip install nvidia-nccl-cu$major nvidia-cudnn-cu$major nvidia-cublas$( ((major > 12)) || echo "-cu$major") nvidia-cuda-nvrtc$( ((major > 12)) || echo "-cu$major")"
}

# under_limit NAME SECONDS: one part, in a group of processes of its own, of which none stays.
under_limit() {
  local code=0
  timeout -k 3 "$2" "$BASH" "${BASH_SOURCE[0]}" --inside "$1" --limit "$2" --device "$device" --output "$output" < /dev/null &> "$logs/$1.log" &
  running=$!
  wait "$running" || code=$?
  kill -KILL -- "-$running" 2> /dev/null
  running=''
  return "$code"
}

# part NAME SECONDS: runs it, and says how it ended and how long it took.
failed=0 passed=0 short=0 end=$((SECONDS + minutes * 60))
part() {
  local name=$1 limit=$2 left=$((end - SECONDS)) before=$SECONDS code=0 verdict
  [[ -z $only || $only == *,$name,* ]] || return 0
  if ((left < 5)); then
    say "- **$name**: not run, no time was left"
    return
  fi
  [[ ! -e $work/fake ]] || limit=$((10 * limit))  # which takes as long as the machine likes
  ((limit < left)) || limit=$left
  ((limit < ${JIGSAW_KIT_LIMIT:-limit})) || limit=${JIGSAW_KIT_LIMIT:-$limit}
  printf '  %s, at most %d s …\n' "$name" "$limit"
  under_limit "$name" "$limit" || code=$?
  case $code in
    0) verdict=passed && ((++passed)) ;;
    77) verdict='not run' ;;
    124 | 137) verdict='cut short' && ((++short)) ;;
    *) verdict="FAILED with exit code $code" && failed=1 ;;
  esac
  # What was cut short has failed where it had found something already; without the first parts nothing is known.
  if [[ $verdict == cut* && $name =~ ^(smoke|check|tests)$ ]]; then failed=1; fi
  if [[ $verdict == cut* ]] && grep -qE 'FAILED|ERRORS|DIFFERS|error:' "$logs/$name.log"; then
    verdict+=", with failures" failed=1
  fi
  say "- **$name**: $verdict, $((SECONDS - before)) s: $(last_words "$logs/$name.log")"
  details "$name"
  pack
}

# details NAME: what of a part's log stands in the report, indented: first what is known of single tests.
details() {
  local log=$logs/$1.log lines pattern='error|ERROR|FAILED|DIFFERS|Race|Invalid|slower kernel|are not recorded|cut short'
  [[ $1 == curves ]] && pattern+='|agree'
  [[ $1 == steps ]] && pattern+='|fastest'
  [[ $1 == shipped ]] && pattern+='|a step of'
  [[ $1 == check ]] && pattern+='|.'
  lines=$({
    grep -E '^(FAILED alone|alone)' "$log"
    outcomes "$log" | sed -n 's/^began /did not end: [ RUN      ] /p'
    grep -E "$pattern" "$log" | grep -vE '\[ RUN      \]|\[       OK \]|\[  SKIPPED \]'
  } | awk '!seen[$0]++' | head -40 | cut -c1-300 | sed 's/^/      /')
  [[ -z $lines ]] || say "$lines"
  [[ $1 != plans ]] || sed 's/^/      /' "$output/device_properties.json" >> "$report" 2> /dev/null
  [[ $1 != kernels ]] || sed -n '1,200s/^/      /p' "$output/kernels.jsonl" >> "$report" 2> /dev/null
}

say "# jigsaw-train on a GPU, $(date -u +%Y-%m-%dT%H:%MZ)"
say ""
prepare
say "- kit: $(cat "$work/made" 2> /dev/null)"
say "- machine: $(uname -n), $(uname -sr), $(nproc) cores, C library $(ldd --version 2> /dev/null | awk 'NR == 1 { print $NF }')"
say "- GPU: $(timeout -k 3 20 nvidia-smi --query-gpu=name,serial,driver_version,memory.total,compute_cap,ecc.errors.uncorrected.volatile.total --format=csv,noheader 2> /dev/null | tr '\n' ';' | grep . || echo 'nvidia-smi says nothing')"
while read -r line; do [[ -z $line ]] || say "- $line"; done <<< "$found"
if ! opens && ! opens_with_others; then
  if [[ -e $logs/gpu ]]; then
    say "- **there is no GPU that the program can use**: $(grep -m1 error: "$logs/gpu" || first_words "$logs/gpu" || echo "nothing said, 60 s at most")"
  else
    say "- **jigsaw-train does not start**: $(first_words "$logs/version" || echo "nothing said, 60 s at most")"
  fi
  say ""
  say "Nothing was tried."
  advice
  exit 2
fi
say "- program: $(head -1 "$logs/version")"
[[ ${#loader[@]} == 0 ]] || say "- the C library of the machine is too old: the one of the kit is used"
export JIGSAW_KIT_WORK=$work JIGSAW_KIT_LIBRARIES=$libraries JIGSAW_KIT_LOADER=${#loader[@]}
say ""
part smoke 60
part check 40
part tests 120
[[ ! -s $logs/tests_failed.txt && $only != *,memcheck_failed,* ]] || part memcheck_failed 60
part graphs 60
part curves 90
part shipped 120
part steps 60
part kernels 60
part models 60
part plans 30
part nccl 20
part ranks 60
part memcheck 80
part racecheck 60
say ""
if ((failed)); then say "Something failed; see $logs."; else say "Nothing failed in $SECONDS s; $passed parts ran to their end, $short were cut short."; fi
advice
exit $failed
