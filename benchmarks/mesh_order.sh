#!/usr/bin/env bash
# Whether the three fastest meshes that `plan` names are so in this order here: the ranks are measured (`plan --calibrate`), the
# meshes planned with that, and each trained on for some steps, in turns. Prints what was planned and the median of each; of the
# pairs that are planned more than 5 % apart (others, such as a cut of rows and one of columns, count as equal), how many are
# so; and how much longer than the fastest the one takes that "auto" would have chosen. All ranks are MPI processes of one thread on this machine; where they are more than
# cores they share them while they are measured, too.
#
#   benchmarks/mesh_order.sh [BUILD_FOLDER]   (default build/release; needs its target jigsaw-train)
#
# RANKS: 8 unless set. CONFIG: a configuration whose data is there; configs/demo.json on sample data unless set.
# ROUNDS: 9 unless set. STEPS: of each mesh in a round, 20 unless set; the first does not count.
set -feuo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
train=$PWD/${1-build/release}/apps/jigsaw-train/jigsaw-train
ranks=${RANKS-8}
rounds=${ROUNDS-9}
steps=${STEPS-20}
python=${PYTHON-python3}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if [[ $(id -u) == 0 ]]; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
export OMP_NUM_THREADS=1 OMPI_MCA_mpi_yield_when_idle=1
launch=(mpirun -q --oversubscribe --bind-to none -n "$ranks" "$train")
config=(--config "${CONFIG-configs/demo.json}")
if [[ -z ${CONFIG-} ]]; then
  "$train" sample-data --output "$folder/data" > "$folder/sample.log"
  config+=(--set "data.files=[\"$folder/data/*.nc\"]")
fi
config+=(--set mesh=auto)

"${launch[@]}" plan "${config[@]}" --ranks "$ranks" --calibrate "$folder/machine.json" > "$folder/calibrate.log"
"$train" plan "${config[@]}" --ranks "$ranks" --machine "$folder/machine.json" --json > "$folder/plan.json"
# Of each mesh a line of settings.
mapfile -t best < <("$python" - "$folder/plan.json" << 'END'
import json, sys
for mesh in json.load(open(sys.argv[1]))["meshes"][:3]:
    print("mesh=" + json.dumps(mesh["mesh"], separators=(",", ":")), f"zero={mesh['zero']}",
          f"train.recompute={mesh['recompute']}", f"train.accumulate={mesh['accumulate']}")
END
)
((${#best[@]} > 0))
for ((round = 0; round < rounds; ++round)); do
  for i in "${!best[@]}"; do
    sets=()
    for set in ${best[i]}; do sets+=(--set "$set"); done
    rm -rf "$folder/run"
    "${launch[@]}" "${config[@]}" "${sets[@]}" --set output="$folder/run" --set train.steps="$steps" --set log_every=1 \
      --set validation.every=0 --set checkpoint.every=0 > "$folder/run.log"
    sed -n 's/.*"step_seconds":\([0-9.e+-]*\).*/\1/p' "$folder/run/metrics.jsonl" | tail -n +2 >> "$folder/seconds.$i"
  done
done
"$python" - "$folder" "$ranks" << 'END'
import json, pathlib, statistics, sys
folder, ranks = pathlib.Path(sys.argv[1]), int(sys.argv[2])
medians = []
meshes = json.loads((folder / "plan.json").read_text())["meshes"][:3]
for i, mesh in enumerate(meshes):
    seconds = [float(line) for line in (folder / f"seconds.{i}").read_text().split()]
    medians.append(statistics.median(seconds))
    print(json.dumps({"benchmark": "mesh order", "ranks": ranks, "mesh": mesh["mesh"], "zero": mesh["zero"],
                      "planned_seconds": mesh["step_seconds"], "median_seconds": medians[-1], "steps": len(seconds)}))
order = sorted(range(len(medians)), key=medians.__getitem__)
planned = [mesh["step_seconds"] for mesh in meshes]
apart = [(i, j) for i in range(len(planned)) for j in range(i) if planned[i] > 1.05 * planned[j]]
print(json.dumps({"benchmark": "mesh order", "ranks": ranks, "measured_order": [i + 1 for i in order],
                  "pairs_planned_apart": len(apart), "in_planned_order": sum(medians[i] > medians[j] for i, j in apart),
                  "first_over_fastest": medians[0] / min(medians)}))
END
