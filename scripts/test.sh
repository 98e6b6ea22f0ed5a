#!/usr/bin/env bash
# Installs what is missing, builds from clean in build/test, and runs every test: those on real data (label real)
# where these are there.
#
#   scripts/test.sh [options]
#
#   --keep            reuse the build folder instead of building from clean
#   --label L         only tests whose label matches the regular expression L:
#                     unit, grad, golden, sharding, mpi, e2e, …
#   --lint            also run scripts/check.sh: include directions, headers, format, clang-tidy
#   --cuda auto|off   auto: also build the benchmarks and, where nvcc and cuBLAS are found, jigsaw-train-cuda and
#                     the tests with label gpu, which then run where there is a GPU; off is the default
#   --sanitize        also compiles a few rooms with a sanitizer and runs their tests, each day others
#                     (scripts/sanitize.sh), in three minutes at most
#   --slurm           also installs SLURM, and tests scripts/slurm against one of its own; needs root
#
# Every part runs even when an earlier one failed; the exit code is 0 only when all passed. The end
# says how long each part took.
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

keep=false lint=false cuda=off sanitize=false slurm=false label=
while (($#)); do
  case "$1" in
    --keep) keep=true ;;
    --lint) lint=true ;;
    --sanitize) sanitize=true ;;
    --slurm) slurm=true ;;
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

failed=() times=()
# part NAME COMMAND…: remembers how long it took, and whether it failed.
part() {
  local name=$1 start=$SECONDS outcome=passed
  shift
  say "$name"
  "$@" || { outcome=FAILED && failed+=("$name"); }
  times+=("$(printf '%6d s  %s: %s' $((SECONDS - start)) "$name" "$outcome")")
  say "$name: $outcome after $((SECONDS - start)) s"
}

folder=build/test
configure() {
  [[ $keep == true ]] || rm -rf $folder
  cmake -S . -B $folder -G Ninja -DCMAKE_BUILD_TYPE=Release -DJIGSAW_WERROR=ON "$@"
}

run_tests() {  # CTEST-OPTION…
  ctest --test-dir $folder --parallel "$(nproc)" --output-on-failure --no-tests=error "$@"
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

cuda_options=(-DJIGSAW_CUDA=OFF)
benchmarks=OFF with_cuda=false
if [[ $cuda == auto ]]; then
  benchmarks=ON
  if find_cuda; then
    # One architecture is enough to see that kernels compile, and keep no registers in memory; it is the compiler's time.
    cuda_options=(-DJIGSAW_CUDA=BESIDE -DCMAKE_CUDA_ARCHITECTURES=90 "-DCMAKE_CUDA_FLAGS=-Xptxas=--warn-on-spills,--warning-as-error")
    with_cuda=true
  else
    say "no nvcc with cuBLAS here: CUDA kernels are not compiled"
  fi
fi

part "setup" scripts/setup.sh
scripts/setup.sh --readers || say "without xarray and CDO the test that opens forecasts with them is skipped"
scripts/setup.sh --grib || say "without ecCodes the tests of GRIB are skipped"
[[ $with_cuda == false ]] || scripts/setup.sh --cuda ||
  say "without the headers of cuDNN's frontend attention by it is not compiled"
slurm_option=-DJIGSAW_SLURM_TESTS=OFF
if [[ $slurm == true ]]; then
  part "setup of SLURM" scripts/setup.sh --slurm
  slurm_option=-DJIGSAW_SLURM_TESTS=ON
fi
part "configuration" configure "${cuda_options[@]}" "$slurm_option" -DJIGSAW_BENCHMARKS=$benchmarks
part "build" cmake --build $folder -- -k 0
[[ $lint == false ]] || part "checks" scripts/check.sh --seconds 30
real_data=${JIGSAW_REAL_DATA-../shared/data}
if [[ -n $label ]]; then
  part "tests with label $label" run_tests -L "$label"
elif [[ -d $real_data ]]; then
  part "tests, also on real data" run_tests
else
  say "no real data in $real_data: the tests with label real do not run"
  part "tests" run_tests --label-exclude '^real$'
fi

python_tests() { JIGSAW_TRAIN=$PWD/$folder/apps/jigsaw-train/jigsaw-train PYTHONPATH=python python3 -m pytest -q -p no:cacheprovider python/tests; }
python_needs="pytest, numpy, h5py, xarray, pandas, torch"
if [[ -n $label ]]; then
  : # tests of the Python package have no labels
elif python3 -c "import $python_needs" &> /dev/null; then
  part "tests of the Python package" python_tests
else
  say "the tests of the Python package are skipped: python3 lacks one of $python_needs"
fi

[[ $sanitize == false ]] || part "a room with a sanitizer" scripts/sanitize.sh $folder

printf '%s\n' "${times[@]}"
((${#failed[@]} == 0)) || die "failed: $(printf '%s; ' "${failed[@]}" | sed 's/; $//')"
say "all passed in $SECONDS s"
