#!/usr/bin/env bash
# Tries jigsaw-train on the GPU of this machine: what matters most first, each part with a limit of its own, all
# within eight minutes. What is found stands in report.md, which grows as parts end, so that it is there whatever
# happens; what programs said stands in logs/, in the end as one file logs.tgz, too.
#
#   ./run.sh                   all parts
#   ./run.sh --only PART,…     some of them: smoke check tests graphs curves shipped steps kernels models plans nccl
#                              ranks memcheck racecheck
#   ./run.sh --minutes M       all within M minutes (default 8)
#   ./run.sh --device cpu      on the processor, to try the kit itself
#   ./run.sh --output FOLDER   where report.md and logs/ go (default: results/ beside this script)
#
# Libraries of CUDA are looked for in LD_LIBRARY_PATH first. Programs get the first GPU, or those of CUDA_VISIBLE_DEVICES.
#
# Exit code: 0 when nothing failed, 1 when something failed, or smoke, check or tests were cut short, 2 when there is no
# GPU that the kit can use.
# shellcheck disable=SC2317  # parts are called by name
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
output=$here/results only='' minutes=8 device=cuda inside=''
while (($#)); do
  case "$1" in
    --only) only=,$2, && shift ;;
    --minutes) minutes=$2 && shift ;;
    --device) device=$2 && shift ;;
    --output) output=$2 && shift ;;
    --inside) inside=$2 && shift ;;  # one part, started by this script itself under its limit
    -h | --help) awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "${BASH_SOURCE[0]}" && exit ;;
    *) echo "run.sh: error: unknown option $1; see --help" >&2 && exit 2 ;;
  esac
  shift
done

mkdir -p "$output/logs" && output=$(cd "$output" && pwd) || exit 1
report=$output/report.md logs=$output/logs
say() { printf '%s\n' "$*" | tee -a "$report"; }
# first_words FILE: its first line that says something.
first_words() { grep -m1 -E 'error|Error|[[:alnum:]]' "$1" 2> /dev/null | cut -c1-400; }

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

# hidden_library NAME: where else the machine has a library of CUDA. The kit brings none of these half gigabytes.
hidden_library() {
  local folder
  for folder in /usr/local/cuda*/{lib64,lib,targets/*/lib} /usr/local/nvidia/lib{64,} \
    /opt/nvidia/*/lib{64,} /usr/{,local/}lib/python3*/{dist,site}-packages/nvidia/*/lib \
    /opt/*/lib/python3*/site-packages/nvidia/*/lib "${HOME-/root}"/.local/lib/python3*/site-packages/nvidia/*/lib; do
    [[ -e $folder/$1 ]] && echo "$folder/$1" && return
  done
  folder=$(python3 -c 'import nvidia; print(list(nvidia.__path__)[0])' 2> /dev/null) || return
  find -L "$folder" -name "$1" 2> /dev/null | head -1 | grep .
}

prepare() {
  unpack || return
  # Which would have libraries compute otherwise than the program asks for.
  unset NVIDIA_TF32_OVERRIDE CUBLAS_EMULATE_SINGLE_PRECISION CUDA_LAUNCH_BLOCKING
  local name library
  # What the user names goes before what is found.
  libraries=$work/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  for name in $(cat "$work/from_machine") libcuda.so.1; do
    if ! library=$(known_library "$name"); then
      if library=$(hidden_library "$name"); then
        libraries+=:$(dirname "$library")
      elif [[ $name != libcuda.so.1 ]]; then # which comes with the driver
        missing+=" $name"
      fi
    fi
    found+="$name: ${library:-not found}"$'\n'
  done
  # One rank needs no launcher, no network, and no daemon.
  export OPAL_PREFIX=$work/openmpi OPAL_PKGDATADIR=$work/openmpi/share/openmpi
  export OMPI_MCA_mca_base_component_path=$work/openmpi/lib/openmpi3 OMPI_MCA_ess_singleton_isolated=1 OMPI_MCA_btl=self OMPI_MCA_pml=ob1 OMPI_MCA_pmix=isolated
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  train --version &> "$logs/version" && return
  # Where the machine's C library is older than the programs they bring their own.
  loader=("$work/loader/ld-linux-x86-64.so.2" --library-path "$work/loader:$libraries")
  train --version &> "$logs/version"
}

# start PROGRAM ARGUMENT…, with what stands in `around` before it.
around=() loader=() libraries='' work='' found='' missing=''
start() {
  local program=$work/bin/$1
  shift
  LD_LIBRARY_PATH=$libraries ${around[@]+"${around[@]}"} ${loader[@]+"${loader[@]}"} "$program" "$@"
}
train() { start jigsaw-train "$@"; }

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

# tests_of PATTERN: ctest's entries of label gpu whose names match (cuda_tests.txt: a name, its filter, and what of that
# is quick on the fake device), each a process of its own.
tests_of() {
  local pattern=$1 name filter quick said bad=0 ran=0
  local -x JIGSAW_SOURCE_DIR=$work JIGSAW_REAL_DATA=/nonexistent JIGSAW_TEST_DEVICE=
  [[ $device == cpu ]] || JIGSAW_TEST_DEVICE=$device
  while read -r name filter quick; do
    [[ $name =~ $pattern ]] || continue
    [[ -e $work/fake || $device == cpu ]] && filter=$quick
    [[ $filter != none ]] || continue
    # Tests of kernels are named by what they run on.
    said=$(start cuda_tests --gtest_filter="${filter//\/cuda//$device}" --gtest_brief=1 < /dev/null 2>&1) || { bad=1 && echo "FAILED: $name"; }
    printf '%s\n' "$said"
    ((ran += 0$(sed -n 's/^\[  PASSED  \] \([0-9]*\) tests*\..*/\1/p' <<< "$said" | tail -1)))
  done < "$work/cuda_tests.txt"
  echo "$ran tests passed"
  ((ran > 0 || bad)) || { grep -q SKIPPED <<< "$said" && return 77 || return 1; }
  return "$bad"
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
  start cudnn_plan_test --gtest_brief=1 || return
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

# sanitized TOOL: the kernels' tests under compute-sanitizer, one suite after the other.
sanitized() {
  local tool=$1 sanitizer suite suites filter first said help code=0 errors=0 done=0
  sanitizer=$(command -v compute-sanitizer || find /usr/local/cuda*/ -name compute-sanitizer -type f 2> /dev/null | head -1)
  [[ -n $sanitizer ]] || { echo "there is no compute-sanitizer here" && return 77; }
  # Long tests are left out.
  filter="*/$device-*AMillionRows*:*RepeatsBitForBit*:*RandomLetters*:*PartsOfTheKeysCombine*"
  suites=$(start cuda_tests --gtest_filter="$filter" --gtest_list_tests | awk '/^[^ ].*[.]$/ { print $1 }')
  first=$(start cuda_tests --gtest_filter="$filter" --gtest_list_tests | awk '/^[^ ].*[.]$/ { suite = $1 } /^  / && !found { print suite $1; found = 1 }')
  # Arrays apart, else what goes beyond one lies in the memory of others.
  around=(env JIGSAW_CUDA_MEMORY=apart "$sanitizer" --tool "$tool" --error-exitcode 9 --target-processes all --print-limit 20)
  # Our kernels alone, and no calls that fail inside of libraries, where this version knows these options.
  help=$("$sanitizer" --help 2>&1)
  ! grep -q -- --kernel-name <<< "$help" || around+=(--kernel-name kernel_substring=jigsaw)
  [[ $tool != memcheck ]] || ! grep -q -- --report-api-errors <<< "$help" || around+=(--report-api-errors no)
  # One test first: virtual GPUs, and some drivers, let no such tool in.
  said=$(start cuda_tests --gtest_filter="$first" --gtest_brief=1 2>&1) || code=$?
  if grep -q 'Device not supported' <<< "$said" || { ((code)) && ! grep -qE 'ERROR SUMMARY|PASSED|FAILED' <<< "$said"; }; then
    printf '%s\n' "$said" "compute-sanitizer cannot be used on this GPU: $(grep -m1 -E 'Device not supported|rror' <<< "$said")"
    return 77
  fi
  for suite in $suites; do
    start cuda_tests --gtest_filter="$suite$filter" --gtest_brief=1 || { errors=1 && echo "ERRORS in $suite"; }
    ((++done))
  done
  echo "$tool: $done suites of tests, $( ((errors)) && echo ERRORS || echo clean)"
  return "$errors"
}
part_memcheck() { sanitized memcheck; }
part_racecheck() { sanitized racecheck; }

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
  local name settings limit=40 bad=0 code line common=(--device "$device" --threads "$(nproc)")
  : > "$output/shipped.jsonl"
  for name in demo era5_uk_mixer era5_uk_vit era5_uk_unet era5_uk_ensemble ct_denoise_unet3d era5_vit era5_swin era5_sfno era5_weathermixer_1b; do
    settings=()
    if [[ $name == era5_[vsw]* ]]; then
      [[ ! -e $work/fake && $device == cuda ]] || continue
      settings=(--set train.batch_size=1)
    fi
    around=(timeout -k 3 "$limit")
    line=$(start model_steps "${common[@]}" ${settings[@]+"${settings[@]}"} "$work/configs/$name.json" 2> "$logs/shipped_$name.log") && code=0 || code=$?
    if ((code == 124 || code == 137)); then
      echo "$name: cut short after $limit s"
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

# --- one part under its limit
if [[ -n $inside ]]; then
  prepare || exit 1
  "part_$inside"
  exit
fi

if [[ $device == cuda ]]; then
  export CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES-0}
  # Without a client the driver starts anew for each program, in seconds for each GPU.
  if command -v nvidia-smi > /dev/null; then
    nvidia-smi -l 5 < /dev/null > /dev/null 2>&1 &
    client=$!
    trap 'kill "$client" 2> /dev/null' EXIT
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

# part NAME SECONDS: runs it, and says how it ended and how long it took.
failed=0 passed=0 end=$((SECONDS + minutes * 60))
part() {
  local name=$1 limit=$2 left=$((end - SECONDS)) before=$SECONDS code=0 verdict
  [[ -z $only || $only == *,$name,* ]] || return 0
  if ((left < 5)); then
    say "- **$name**: not run, no time was left"
    return
  fi
  [[ ! -e $work/fake ]] || limit=$((10 * limit))  # which takes as long as the machine likes
  ((limit < left)) || limit=$left
  printf '  %s, at most %d s …\n' "$name" "$limit"
  timeout -k 3 "$limit" "$BASH" "${BASH_SOURCE[0]}" --inside "$name" --device "$device" --output "$output" < /dev/null &> "$logs/$name.log" || code=$?
  case $code in
    0) verdict=passed && ((++passed)) ;;
    77) verdict='not run' ;;
    124 | 137) verdict="cut short after $limit s" ;;
    *) verdict="FAILED with exit code $code" && failed=1 ;;
  esac
  # What was cut short has failed where it had found something already; without the first parts nothing is known.
  if [[ $verdict == cut* && $name =~ ^(smoke|check|tests)$ ]]; then failed=1; fi
  if [[ $verdict == cut* ]] && grep -qE 'FAILED|ERRORS|DIFFERS|error:' "$logs/$name.log"; then
    verdict+=", with failures" failed=1
  fi
  say "- **$name**: $verdict, $((SECONDS - before)) s: $(grep -E '[[:alnum:]]' "$logs/$name.log" | tail -1 | cut -c1-300)"
  details "$name"
}

# details NAME: what of a part's log stands in the report, indented.
details() {
  local pattern='error|ERROR|FAILED|DIFFERS|Race|Invalid|slower kernel|are not recorded'
  [[ $1 == curves ]] && pattern+='|agree'
  [[ $1 == steps ]] && pattern+='|fastest'
  [[ $1 == shipped ]] && pattern+='|a step of|cut short'
  [[ $1 == check ]] && pattern+='|.'
  grep -E "$pattern" "$logs/$1.log" | head -40 | cut -c1-300 | sed 's/^/      /' | tee -a "$report"
  [[ $1 != plans ]] || sed 's/^/      /' "$output/device_properties.json" >> "$report" 2> /dev/null
  [[ $1 != kernels ]] || sed -n '1,200s/^/      /p' "$output/kernels.jsonl" >> "$report" 2> /dev/null
}

: > "$report"
say "# jigsaw-train on a GPU, $(date -u +%Y-%m-%dT%H:%MZ)"
say ""
prepare
say "- kit: $(cat "$work/made" 2> /dev/null)"
say "- machine: $(uname -n), $(uname -sr), $(nproc) cores, C library $(ldd --version 2> /dev/null | awk 'NR == 1 { print $NF }')$([[ ${#loader[@]} == 0 ]] || echo ' (too old: the one of the kit is used)')"
say "- GPU: $(nvidia-smi --query-gpu=name,serial,driver_version,memory.total,compute_cap,ecc.errors.uncorrected.volatile.total --format=csv,noheader 2> /dev/null | tr '\n' ';' | grep . || echo 'nvidia-smi says nothing')"
while read -r line; do [[ -z $line ]] || say "- $line"; done <<< "$found"
if ! train --version &> "$logs/version"; then
  say "- **jigsaw-train does not start**: $(first_words "$logs/version")"
  say ""
  say "Nothing was tried."
  advice
  exit 2
fi
say "- program: $(head -1 "$logs/version")"
if ! train check --config "$work/kit.json" --set "device=$device" --set "output=$output/check" &> "$logs/gpu"; then
  say "- **there is no GPU that the program can use**: $(grep -m1 error: "$logs/gpu" || first_words "$logs/gpu")"
  say ""
  say "Nothing was tried."
  advice
  exit 2
fi
say ""
part smoke 60
part check 40
part tests 120
part graphs 40
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
tar -C "$output" -czf "$output/logs.tgz" logs
say ""
if ((failed)); then say "Something failed; see $logs."; else say "Nothing failed in $SECONDS s; $passed parts ran to their end."; fi
advice
exit $failed
