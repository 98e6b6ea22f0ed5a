#!/usr/bin/env bash
# Installs what is missing, builds from clean in build/test, and runs every test.
#
#   scripts/test.sh [options]
#
#   --keep            reuse the build folders instead of building from clean
#   --label L         only tests whose label matches the regular expression L:
#                     unit, grad, golden, sharding, mpi, e2e, …
#   --lint            also run scripts/check.sh: include directions, headers, format, clang-tidy
#   --cuda auto|off   auto: where nvcc and cuBLAS are found, also compile the preset `cuda` and,
#                     where there is a GPU, run the tests with label gpu; off is the default
#
# Every part runs even when an earlier one failed; the exit code is 0 only when all passed.
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

keep=false lint=false cuda=off label=
while (($#)); do
  case "$1" in
    --keep) keep=true ;;
    --lint) lint=true ;;
    --label | --cuda)
      (($# > 1)) || die "$1 needs a value; see --help"
      if [[ $1 == --label ]]; then label=$2; else cuda=$2; fi
      shift
      ;;
    -h | --help) usage && exit ;;
    *) die "unknown option $1; see --help" ;;
  esac
  shift
done
[[ $cuda == auto || $cuda == off ]] || die "--cuda is auto or off, not $cuda"

failed=()
# part NAME COMMAND…: says how long it took, and remembers a failure.
part() {
  local name=$1 start=$SECONDS outcome=passed
  shift
  say "$name"
  "$@" || { outcome=FAILED && failed+=("$name"); }
  say "$name: $outcome after $((SECONDS - start)) s"
}

# build FOLDER "TARGETS" CMAKE-OPTION…
build() {
  local folder=$1 targets=$2
  shift 2
  [[ $keep == true ]] || rm -rf "$folder"
  # shellcheck disable=SC2086
  cmake "$@" -B "$folder" && cmake --build "$folder" --target $targets
}

# Tests that start ranks of their own run alone (cmake/JigsawTest.cmake).
run_tests() {
  ctest --test-dir "$1" --parallel "$(nproc)" --output-on-failure --no-tests=error ${2:+-L "$2"}
}

# Whether a program that uses cuBLAS can be compiled; tells CMake the compiler.
find_cuda() {
  local folder nvcc status=0
  nvcc=$(PATH=$PATH:/usr/local/cuda/bin command -v nvcc) || return
  folder=$(mktemp -d)
  printf '#include <cublasLt.h>\nint main() { return cublasLtGetVersion() == 0; }\n' > "$folder/trial.cu"
  "$nvcc" -o "$folder/trial" "$folder/trial.cu" -lcublasLt &> "$folder/log" || status=$?
  rm -rf "$folder"
  export CUDACXX=$nvcc
  return "$status"
}

scripts/setup.sh
[[ $lint == false ]] || part "checks" scripts/check.sh
part "build" build build/test all -S . -G Ninja -DCMAKE_BUILD_TYPE=Release
if [[ $cuda == auto ]]; then
  if find_cuda; then
    part "build of the preset cuda" build build/cuda "jigsaw-train gpu_tests" --preset cuda
    if nvidia-smi -L &> /dev/null; then
      part "tests on the GPU" run_tests build/cuda gpu
    else
      say "no GPU here: the tests with label gpu are compiled only"
    fi
  else
    say "no nvcc with cuBLAS here: the preset cuda is not compiled"
  fi
fi
part "tests" run_tests build/test "$label"

((${#failed[@]} == 0)) || die "failed: $(printf '%s; ' "${failed[@]}" | sed 's/; $//')"
