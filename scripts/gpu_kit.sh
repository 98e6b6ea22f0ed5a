#!/usr/bin/env bash
# Makes a folder that tries jigsaw-train on the GPU of another machine, with everything that the machine may lack but the
# libraries of CUDA: programs and tests as they are built here, what these are linked with, small data, and the losses
# of the processor: less than 48 MB, for it travels with a working tree, and 64 MiB may be all that a machine takes.
# There, one command, run.sh in the folder, does it within eight minutes and writes a report.
#
#   scripts/gpu_kit.sh [--output FOLDER] [--build FOLDER] [--built] [--fake] [--quick]
#
#   --output FOLDER  the kit (default: build/gpu_kit); one that is there is replaced
#   --build FOLDER   where programs are built (default: build/gpu, with --fake build/gpu_fake), configured with
#                    JIGSAW_CUDA=BESIDE (with --fake OFF) unless it is there; what is built already is not built again
#   --built          programs are there, and are taken as they are
#   --fake           with CUDA's kernels compiled for the host (tests/support/fake_cuda): the same kit for a machine
#                    without a GPU, to try the kit itself
#   --quick          with one loss curve only, and packed in less time than space, to try this script
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

kit=build/gpu_kit build='' fake=false built=false quick=false
while (($#)); do
  case "$1" in
    --output | --build)
      (($# > 1)) || die "$1 needs a value; see --help"
      if [[ $1 == --output ]]; then kit=$2; else build=$2; fi
      shift
      ;;
    --fake) fake=true ;;
    --built) built=true ;;
    --quick) quick=true ;;
    -h | --help) usage && exit ;;
    *) die "unknown option $1; see --help" ;;
  esac
  shift
done
[[ ! -e $kit || (-e $kit/run.sh && -e $kit/payload.tar.xz) ]] || die "$kit is there and no kit; name another folder"

# The names of programs here and in the kit.
if [[ $fake == true ]]; then
  build=${build:-build/gpu_fake}
  programs=(jigsaw-train-fake-cuda:jigsaw-train fake_cuda_tests:cuda_tests model_steps:model_steps)
  cuda_options=(-DJIGSAW_CUDA=OFF)
else
  build=${build:-build/gpu}
  programs=(jigsaw-train-cuda:jigsaw-train cuda_tests:cuda_tests kernels_bench_cuda:kernels_bench_cuda model_steps_cuda:model_steps)
  # Architectures of the cards that the kit is for: A100, H100 and H200; newer ones compile the last one's PTX.
  cuda_options=(-DJIGSAW_CUDA=BESIDE '-DCMAKE_CUDA_ARCHITECTURES=80-real;90')
fi
[[ -e $build/CMakeCache.txt ]] || cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DJIGSAW_GRIB=OFF "${cuda_options[@]}"
if [[ $fake == false ]] && grep -q '^CUDNN_GRAPH_LIBRARY:.*=/' "$build/CMakeCache.txt"; then programs+=(cudnn_plan_test:cudnn_plan_test); fi
if [[ $built == false ]]; then
  say "building"
  cmake --build "$build" --target jigsaw-train "${programs[@]%%:*}"
fi

payload=$(mktemp -d)
trap 'rm -rf "$payload"' EXIT
mkdir "$payload"/{bin,lib,loader,expected}
for program in "${programs[@]}"; do
  cp "$(find "$build" -name "${program%%:*}" -type f -perm -u+x)" "$payload/bin/${program##*:}"
done
strip "$payload"/bin/*
if [[ $fake == true ]]; then touch "$payload/fake"; fi

# What the programs are linked with: all but the C library, which goes beside the loader, and CUDA's large libraries,
# which the other machine has.
: > "$payload/from_machine"
libraries() { LD_LIBRARY_PATH=${CUDA_LIBRARIES-/usr/local/cuda/lib64:/usr/local/cuda/lib} ldd "$@" | awk '$2 == "=>" && $3 ~ /^\// { print $3 } $1 ~ /^\// && NF == 2 && $1 !~ /:$/ { print $1 }' | sort -u; }
plugins=$(pkg-config --variable=libdir ompi 2> /dev/null || echo /usr/lib/x86_64-linux-gnu/openmpi/lib)/openmpi3
needed=("$payload"/bin/*)
mkdir -p "$payload/openmpi/lib/openmpi3" "$payload/openmpi/share"
# One rank on one machine: Open MPI's plugins but those of networks, batch systems and other libraries.
for plugin in "$plugins"/mca_*.so; do
  case ${plugin##*/} in
    *ucx* | *ofi* | *psm* | *openib* | *slurm* | *flux* | *gridengine* | *oshmem* | mca_scoll* | mca_spml* | mca_sshmem* | mca_memheap* | mca_atomic* | *monitoring* | *romio*) ;;
    *) cp -L "$plugin" "$payload/openmpi/lib/openmpi3/" ;;
  esac
done
needed+=("$payload"/openmpi/lib/openmpi3/*.so)
cp -rL /usr/share/openmpi "$payload/openmpi/share/openmpi"
for library in $(libraries "${needed[@]}"); do
  case ${library##*/} in
    libcublas* | libnccl* | libcudnn* | libcuda.so*) echo "${library##*/}" >> "$payload/from_machine" ;;
    ld-linux* | libc.so* | libm.so* | libdl.so* | librt.so* | libpthread.so* | libresolv.so* | libmvec.so*) cp -L "$library" "$payload/loader/" ;;
    *) cp -L "$library" "$payload/lib/" ;;
  esac
done
# cuDNN opens it by name, and only then.
if grep -q libcudnn "$payload/from_machine"; then
  nvrtc=$(sed -n 's/^libcublasLt\.so\.\([0-9]*\)$/libnvrtc.so.\1/p' "$payload/from_machine" | head -1)
  [[ -z $nvrtc ]] || echo "$nvrtc" >> "$payload/from_machine"
fi
strip --strip-unneeded "$payload"/lib/* "$payload"/openmpi/lib/openmpi3/* 2> /dev/null || true

say "writing data, and the losses of the processor"
train=$build/apps/jigsaw-train/jigsaw-train
"$train" sample-data --output "$payload/data" --months 1 > /dev/null
cat > "$payload/kit.json" << 'END'
{
  "name": "gpu_kit",
  "data": {
    "files": ["data/*.nc"],
    "variables": ["t2m", "u10", "v10", "z"],
    "forcings": ["latitude", "longitude", "time_of_day"],
    "input_hours": [-6, 0],
    "lead_hours": 6,
    "train": ["2021-01-02", "2021-01-22"],
    "valid": ["2021-01-24", "2021-01-30"]
  },
  "model": {
    "type": "weathermixer", "patch": [3, 6], "embed_dim": 64, "depth": 3, "token_hidden_ratio": 0.5,
    "channel_hidden_ratio": 2.0, "positions": true, "final_norm": true, "output_map": false
  },
  "optimizer": {"learning_rate": 1e-3, "betas": [0.9, 0.95], "weight_decay": 0.01, "clip_norm": 1.0},
  "schedule": {"warmup_steps": 2},
  "train": {"steps": 10, "batch_size": 8},
  "validation": {"every": 0},
  "checkpoint": {"every": 0},
  "log_every": 1
}
END
grep -v '^#' scripts/gpu_kit/curves.txt | if [[ $quick == true ]]; then head -1; else cat; fi > "$payload/curves.txt"
while read -r name _ settings; do
  [[ -n $name && $name != \#* ]] || continue
  options=()
  for setting in $settings; do options+=(--set "$setting"); done
  "$train" --config "$payload/kit.json" --set device=cpu "${options[@]}" --set "output=$payload/run" --resume never > "$payload/log" 2>&1 ||
    die "the processor cannot train $name: $(grep error: "$payload/log")"
  mv "$payload/run/metrics.jsonl" "$payload/expected/$name.jsonl"
  rm -rf "$payload/run" "$payload/log"
done < "$payload/curves.txt"
# The tests of label gpu, as ctest would run them, and what they read.
cp "$build/cuda_tests.txt" "$payload/"
mkdir -p "$payload/tests/goldens" "$payload/tests/kernels" "$payload/configs"
cp tests/goldens/*.h5 "$payload/tests/goldens/"
cp tests/kernels/h100.json "$payload/tests/kernels/"
cp configs/*.json "$payload/configs/"
echo "$(git describe --always --dirty 2> /dev/null || echo 'of no commit'), $(date -u +%Y-%m-%d)$([[ $fake == true ]] && echo ', fake device')" > "$payload/made"

# Programs have much in common, which xz finds; it comes with the kit for machines without.
rm -rf "$kit"
mkdir -p "$kit"
xz=$(command -v xz) || die "there is no xz"
cp -L "$xz" "$(ldd "$xz" | awk '/liblzma/ { print $3 }')" "$kit/"
tar -C "$payload" -c . | xz "$([[ $quick == true ]] && echo -0 || echo -9)" > "$kit/payload.tar.xz"
cp scripts/gpu_kit/run.sh "$kit/run.sh"
bytes=$(du -sb "$kit" | cut -f1)
[[ $quick == true ]] || ((bytes < 48000000)) || die "$kit has $bytes bytes, and 48 MB is what it may have"
say "$kit has $bytes bytes; on a machine with a GPU: $kit/run.sh"
