#!/usr/bin/env bash
# The batch scripts of scripts/slurm against a real SLURM, which with_slurm.sh starts for this test.
# shellcheck disable=SC2317
#
#   slurm_test.sh JIGSAW-TRAIN SOURCE-FOLDER [CASE…]
#
# Prints a line a case; the exit code is the number of cases that failed.
set -uo pipefail

# Inside of SLURM it calls itself again.
if [[ -z ${JIGSAW_INSIDE_SLURM-} ]]; then
  JIGSAW_INSIDE_SLURM=1 exec "$2/tests/slurm/with_slurm.sh" --nodes 2 "$0" "$@"
fi

train=$(realpath "$1") source=$(realpath "$2") || exit 1
shift 2
scripts=$source/scripts/slurm
work=$(mktemp -d /tmp/jigsaw-slurm-test-XXXXXX)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export JIGSAW_TRAIN=$train OMP_NUM_THREADS=1 JIGSAW_RESTART_DELAY=0
# Virtual nodes share a machine: messages between them go through the loopback interface.
export OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=lo

"$train" sample-data --output data --months 1 > /dev/null
cat > small.json << 'END'
{
  "data": {"files": ["data/*.nc"], "variables": ["t2m", "z"], "input_hours": [0], "lead_hours": 6,
           "train": ["2021-01-01", "2021-01-24"]},
  "model": {"type": "weathermixer", "patch": [3, 6], "embed_dim": 96, "depth": 1},
  "schedule": {"type": "constant"}, "train": {"steps": 60, "batch_size": 4, "precision": "fp64"}, "mesh": {"data": 2},
  "validation": {"every": 0}, "checkpoint": {"every": 10}, "log_every": 1
}
END

# In place of jigsaw-train: in a job's first start it trains without end, in a later one up to the step that the file
# `end` says, once that is there.
cat > endless << END
#!/usr/bin/env bash
steps=1000000
if ((\${SLURM_RESTART_COUNT:-0} > 0)); then
  until [[ -e $work/end ]]; do sleep 0.2; done
  steps=\$(< "$work/end")
fi
exec "$train" "\$@" --set "train.steps=\$steps"
END
chmod +x endless

fail() {
  echo "    $*"
  return 1
}
# Waits for a condition; gives up, where something hangs, in half an hour.
until_true() {
  local end=$((SECONDS + 1800))
  until "$@"; do
    ((SECONDS < end)) || return 1
    sleep 0.2
  done
}
state_of() { scontrol show job "$1" 2> /dev/null | grep -o 'JobState=[A-Z_]*' | head -1 | cut -d= -f2; }
is_state() { [[ $(state_of "$1") == "$2" ]]; }
no_script() { ! pgrep -f "${SLURM_CONF%/*}/spool\.n[12]/job0*$1/slurm_script" > /dev/null; }
no_steps() { ! compgen -G "${SLURM_CONF%/*}/spool.n[12]/n[12]_$1.*" > /dev/null; } # a socket each
# A job that was requeued is left waiting for two minutes, in which what is left of the start before ends; here it
# starts as soon as that has.
start_now() {
  if is_state "$1" PENDING && no_script "$1" && no_steps "$1"; then
    sleep 3 # what starts in the second of its requeue, or of the last word about it, is killed: "Job credential revoked"
    scontrol update jobid="$1" StartTime=now &> /dev/null || true
  fi
}
restarted() { scontrol show job "$1" | grep -q "Restarts=$2"; }
ended_well() {
  start_now "$1"
  is_state "$1" COMPLETED
}
steps_of() { sed -n '/"kind":"train"/p' "$1/metrics.jsonl" 2> /dev/null | wc -l; }
has_steps() { (($(steps_of "$1") >= $2)); }
has_checkpoint() { [[ -e $1/checkpoints/latest ]]; }
# Processes that train into the folder $1 of this test: their command lines begin with the executable, as srun's do not.
ranks_of() { pgrep -f "^$train .*output=$work/$1( |\$)"; }
no_ranks() { ! ranks_of "$1" > /dev/null; }
# Step number and loss of every training line.
curve() { sed -nE 's/.*"kind":"train","step":([0-9]+),"loss":([^,]+),.*/\1 \2/p' "$1/metrics.jsonl"; }
# same_curve RUN REFERENCE [STEPS]
same_curve() {
  local steps=${3:-60}
  (($(curve "$1" | wc -l) == steps)) || fail "$1 has $(curve "$1" | wc -l) of $steps steps" || return
  cmp <(curve "$1") <(curve "$2") || fail "the loss curves of $1 and $2 differ"
}
submit() { sbatch --parsable --output=log-%x-%j.txt "$@" 2>> sbatch.txt; }
# job NAME [OPTION-OF-SBATCH… --] [OPTION…]: two ranks that train into the folder NAME.
job() {
  local name=$1 options=()
  shift
  if [[ " $* " == *" -- "* ]]; then
    while [[ $1 != -- ]]; do
      options+=("$1")
      shift
    done
    shift
  fi
  submit --nodes=1 --ntasks-per-node=2 --time=60 "${options[@]}" "$scripts/train.sbatch" --config small.json "$@" \
    --set "output=$work/$name"
}
# goes_on_alike ID NAME: lets an endless job that was stopped early, and is back in the queue, train to its end: to step
# 60, or a few steps on where it had come further.
goes_on_alike() {
  local steps=$(($(steps_of "$2") + 10)) reference=undisturbed
  if ((steps > 60)); then
    reference=undisturbed_$steps
    undisturbed "$reference" --set "train.steps=$steps" || return
  else
    steps=60
  fi
  echo "$steps" > end.new && mv end.new end
  until_true ended_well "$1" || fail "job is $(state_of "$1")" || return
  same_curve "$2" "$reference" "$steps"
}
show_logs() {
  sinfo -N -o '%N %T %E' | sed 's/^/    | /'
  scontrol show job | grep -E 'JobState|Restarts|StartTime' | sed 's/^/    | /'
  tail -n 15 log-* sbatch.txt | sed 's/^/    | /'
}

# undisturbed NAME [OPTION…]: 60 steps on the same mesh that nothing disturbs; every other run must have their curve.
undisturbed() {
  local name=$1
  shift
  srun -n 2 --overcommit "$train" --config small.json --set "output=$name" "$@" > reference.txt 2>&1 ||
    fail "$(tail -3 reference.txt)"
}
reference() { undisturbed undisturbed; }
four_ranks() {
  srun -n 4 --overcommit "$train" --config small.json --set output=four --set mesh.data=4 --set train.steps=5 \
    > four.txt 2>&1 ||
    fail "$(tail -3 four.txt)" || return
  (($(grep -c '"rank":' four/summary.json) == 4)) || fail "summary.json does not have 4 ranks"
}
two_nodes() {
  [[ -e four ]] || four_ranks || return
  srun -N 2 -n 4 --overcommit "$train" --config small.json --set output=nodes --set mesh.data=4 --set train.steps=5 \
    > nodes.txt 2>&1 ||
    fail "$(tail -3 nodes.txt)" || return
  cmp <(curve nodes) <(curve four) || fail "two nodes give another curve than one"
}
requeued_by_hand() {
  local id
  id=$(job requeued)
  until_true has_checkpoint requeued || fail "no checkpoint" || return
  scontrol requeue "$id"
  until_true ended_well "$id" || fail "job is $(state_of "$id")" || return
  restarted "$id" 1 || fail "was not restarted once" || return
  same_curve requeued undisturbed
}
# What SLURM sends before the time limit, and before a preemption with a grace period.
signal_before_the_end() {
  local id
  id=$(JIGSAW_TRAIN=$work/endless job signalled)
  until_true has_steps signalled 8 || fail "no steps" || return
  scancel --signal=USR1 "$id"
  until_true restarted "$id" 1 || fail "was not requeued on exit code 75" || return
  grep -q "ended with exit code 75" log-*-"$id".txt || fail "exit code is not 75" || return
  goes_on_alike "$id" signalled
}
max_minutes() {
  local id
  id=$(job limited --set train.steps=100000 --max-minutes 0.05)
  until_true restarted "$id" 1 || fail "was not requeued after its minutes" || return
  scancel "$id"
  has_checkpoint limited || fail "no checkpoint"
}
# SLURM's own warning before its time limit (--signal of train.sbatch), which it looks at twice a minute.
time_limit() {
  local id
  id=$(JIGSAW_TRAIN=$work/endless job warned)
  until_true has_steps warned 8 || fail "no steps" || return
  scontrol update jobid="$id" EndTime=now+200 || fail "no time limit" || return
  until_true restarted "$id" 1 || fail "was not requeued before the time limit" || return
  grep -q "ended with exit code 75" log-*-"$id".txt || fail "exit code is not 75" || return
  scontrol update jobid="$id" TimeLimit=60
  goes_on_alike "$id" warned
}
# The limit itself, where the warning comes too late: the ranks get TERM.
out_of_time() {
  local id
  id=$(JIGSAW_TRAIN=$work/endless job late --signal=USR1@1 --)
  until_true has_steps late 8 || fail "no steps" || return
  scontrol update jobid="$id" EndTime=now+1 || fail "no time limit" || return
  until_true restarted "$id" 1 || fail "was not requeued at the time limit" || return
  scontrol update jobid="$id" TimeLimit=60
  goes_on_alike "$id" late
}
# A job of a partition with priority takes the node.
preempted() {
  local id urgent
  id=$(job preempted --nodelist=n1 --exclusive --)
  until_true has_checkpoint preempted || fail "no checkpoint" || return
  urgent=$(submit --partition=urgent --nodelist=n1 --exclusive --wrap true)
  until_true is_state "$urgent" COMPLETED || fail "the urgent job is $(state_of "$urgent")" || return
  restarted "$id" 1 || fail "was not requeued for the urgent job" || return
  until_true ended_well "$id" || fail "job is $(state_of "$id")" || return
  same_curve preempted undisturbed
}
# Who cancels a job does not want it back.
cancelled() {
  local id
  id=$(job cancelled)
  until_true has_steps cancelled 1 || fail "no steps" || return
  scancel "$id"
  until_true no_script "$id" || fail "the batch script does not end" || return
  until_true is_state "$id" CANCELLED || fail "job is $(state_of "$id")" || return
  restarted "$id" 0 || fail "was requeued"
}
# Of an array one task has the array's own number, by which SLURM shows all of them: those that run, too.
cancelled_task() {
  local id tasks number task
  echo '{"keys": {"optimizer.learning_rate": [1e-3, 2e-3]}, "output": "tasks"}' > tasks.json
  id=$(submit --array=0-1 --ntasks-per-node=1 --time=60 "$scripts/sweep.sbatch" --config small.json --grid tasks.json \
    --set validation.every=1000000 --set 'data.valid=["2021-01-26","2021-01-31"]' --set mesh.data=1 \
    --set train.steps=1000000)
  until_true has_checkpoint tasks/learning_rate=0.001 || fail "no checkpoint of task 0" || return
  until_true has_checkpoint tasks/learning_rate=0.002 || fail "no checkpoint of task 1" || return
  tasks=$(squeue -h -r -j "$id" -o '%A %K')
  read -r number task <<< "$(grep "^$id " <<< "$tasks")"
  [[ $number == "$id" && $task ]] || fail "no task has the array's number $id: $tasks" || return
  scancel "${id}_$task"
  until_true no_script "$id" || fail "the batch script does not end" || return
  until_true is_state "${id}_$task" CANCELLED || fail "task $task is $(state_of "${id}_$task")" || return
  restarted "${id}_$task" 0 || fail "was requeued" || return
  is_state "${id}_$((1 - task))" RUNNING || fail "the other task is $(state_of "${id}_$((1 - task))")" || return
  grep -q "is not requeued: SLURM ends or requeues it itself" log-* || fail "does not say why"
}
preflight() {
  srun -N 2 -n 4 --overcommit "$train" check --config small.json --set mesh.data=4 > check.txt 2>&1 ||
    fail "$(tail -5 check.txt)"
}
killed_rank() {
  local id
  id=$(job killed)
  until_true has_checkpoint killed || fail "no checkpoint" || return
  kill -9 "$(ranks_of killed | tail -1)" || fail "no rank to kill" || return
  until_true restarted "$id" 1 || fail "was not requeued after a kill" || return
  until_true ended_well "$id" || fail "job is $(state_of "$id")" || return
  same_curve killed undisturbed
}
node_down() {
  local id
  id=$(job down --nodelist=n1 --)
  until_true has_checkpoint down || fail "no checkpoint" || return
  scontrol update nodename=n1 state=down reason=trial
  until_true restarted "$id" 1 || fail "was not requeued from the node" || return
  # The node lives, and SLURM does not wait for what still runs on one that it takes for dead.
  until_true no_ranks down || fail "ranks are left on the node" || return
  until_true no_script "$id" || fail "the batch script is left on the node" || return
  until_true no_steps "$id" || fail "SLURM's step daemons are left on the node" || return
  scontrol update nodename=n1 state=resume 2> /dev/null || true # where it has not come back by itself
  until_true ended_well "$id" || fail "job is $(state_of "$id")" || return
  same_curve down undisturbed
}
wrong_configuration() {
  local id
  id=$(job wrong --set model.embed_dimm=3)
  until_true is_state "$id" FAILED || fail "job is $(state_of "$id")" || return
  (($(grep -c 'error:.*embed_dimm' log-*-"$id".txt) == 1)) || fail "no single error line" || return
  scontrol show job "$id" | grep -q "ExitCode=2:0" || fail "exit code is not 2"
}
chain() {
  local ids
  ids=$("$scripts/chain.sh" 3 --nodes=1 --ntasks-per-node=2 --time=60 --output=log-chain-%j.txt -- --config small.json \
    --set output=chained --set train.steps=100000 --max-minutes 0.06 | sed 's/.*: //')
  until_true is_state "$(tail -1 <<< "$ids")" FAILED || fail "the chain does not end" || return
  (($(cat log-chain-*.txt | grep -c 'resumed from') == 2)) || fail "the second and third job did not go on"
}
sweep_with_requeue() {
  local id
  cat > grid.json << 'END'
{"keys": {"optimizer.learning_rate": [1e-3, 2e-3, 3e-3]}, "output": "sweep"}
END
  id=$(submit --array=0-2 --ntasks-per-node=1 --time=60 "$scripts/sweep.sbatch" --config small.json --grid grid.json \
    --set validation.every=60 --set 'data.valid=["2021-01-26","2021-01-31"]' --set mesh.data=1)
  until_true has_checkpoint sweep/learning_rate=0.002 || fail "no checkpoint of run 1" || return
  scontrol requeue "${id}_1"
  all_finished() {
    start_now "${id}_1"
    "$train" sweep --config small.json --grid grid.json --summary | grep -q "3 runs: 3 finished"
  }
  until_true all_finished ||
    fail "$("$train" sweep --config small.json --grid grid.json --summary)" || return
  (($(cat log-*-"${id}"*.txt log-*.txt 2> /dev/null | grep -c 'resumed from .*learning_rate=0.002') >= 1)) ||
    fail "the requeued run did not go on from its checkpoint" || return
  "$train" sweep --config small.json --grid grid.json --summary | grep -q "^best loss " || fail "no best run"
}
# One run by its number; its rank is killed.
sweep_of_one_run() {
  local id
  echo '{"keys": {"optimizer.learning_rate": [1e-3, 2e-3, 3e-3]}, "output": "one"}' > one.json
  id=$(submit --array=1 --ntasks-per-node=1 --time=60 "$scripts/sweep.sbatch" --config small.json --grid one.json \
    --set validation.every=1000000 --set 'data.valid=["2021-01-26","2021-01-31"]' --set mesh.data=1 \
    --set train.steps=1000000)
  until_true has_checkpoint one/learning_rate=0.002 || fail "no checkpoint of run 1" || return
  kill -9 "$(pgrep -f "^$train sweep .*--grid one.json .*--index 1")" || fail "no rank to kill" || return
  until_true restarted "${id}_1" 1 || fail "was not requeued after a kill" || return
  [[ ! -e one/learning_rate=0.001 && ! -e one/learning_rate=0.003 ]] || fail "another run was trained"
}

# What is left of a daemon that died keeps the next step of the job from being started, and srun ends with 0.
no_rank() {
  local id
  id=$(submit --nodelist=n1 --nodes=1 --ntasks=2 --time=60 --requeue --open-mode=append --job-name=no_rank --wrap \
    "touch ${SLURM_CONF%/*}/spool.n1/stepd.slurm.pmix.\$SLURM_JOB_ID.0
     bash $scripts/train.sbatch --config small.json --set output=$work/no_rank")
  until_true restarted "$id" 1 || fail "was not requeued" || return
  grep -q "srun started no rank" log-*-"$id".txt || fail "does not say why" || return
  [[ ! -e no_rank/metrics.jsonl ]] || fail "it was trained"
}

cases=("$@")
((${#cases[@]} > 0)) || cases=(four_ranks two_nodes preflight requeued_by_hand signal_before_the_end
  time_limit out_of_time preempted cancelled cancelled_task max_minutes killed_rank node_down wrong_configuration
  chain sweep_with_requeue sweep_of_one_run no_rank)
failed=0
for case in reference "${cases[@]}"; do
  begin=$SECONDS
  if "$case"; then
    echo "passed $case ($((SECONDS - begin)) s)"
  else
    echo "FAILED $case ($((SECONDS - begin)) s)"
    show_logs
    failed=$((failed + 1))
  fi
  scancel --user=root &> /dev/null
  rm -f log-* sbatch.txt end
done
exit "$failed"
