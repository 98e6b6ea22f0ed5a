#!/usr/bin/env bash
# Runs a command inside a SLURM of its own on this machine: a controller, one or two virtual nodes and their
# authentication, all below one temporary folder, ended and removed with the command. Jobs of its partition `urgent`
# take the nodes of those of `main`.
#
#   with_slurm.sh [--nodes N] COMMAND…
#
# Needs root and Debian's munge, slurm-wlm, slurm-wlm-basic-plugins, slurm-client (scripts/setup.sh --slurm).
set -euo pipefail

nodes=1
if [[ ${1-} == --nodes ]]; then
  nodes=$2
  shift 2
fi
((EUID == 0)) || { echo "with_slurm.sh: error: SLURM's daemons need root" >&2; exit 2; }

folder=$(mktemp -d /tmp/jigsaw-slurm-XXXXXX)
chmod 755 "$folder"
host=$(hostname -s)
export SLURM_CONF=$folder/slurm.conf

# Jobs first, then daemons; what does not end by itself in time is killed.
stop() {
  local pids=()
  mapfile -t pids < <(cat "$folder"/*.pid 2> /dev/null)
  scancel --state=RUNNING,PENDING --user=root &> /dev/null || true
  for _ in $(seq 50); do
    [[ $(squeue -h 2> /dev/null) ]] || break
    sleep 0.1
  done
  ((${#pids[@]} == 0)) || kill "${pids[@]}" &> /dev/null || true
  for _ in $(seq 50); do
    ((${#pids[@]} > 0)) || break
    kill -0 "${pids[@]}" &> /dev/null || break
    sleep 0.1
  done
  ((${#pids[@]} == 0)) || kill -9 "${pids[@]}" &> /dev/null || true
  rm -rf "$folder"
}
trap stop EXIT

# A port of its own for each daemon, so that two of these do not meet.
base=$((12000 + $$ % 20000))
{
  cat << END
ClusterName=trial
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
CryptoType=crypto/munge
SlurmctldPort=$base
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool.%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.%n.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.%n.log
TmpFS=$folder/spool.%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=pmix
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
PropagateResourceLimits=NONE
KillWait=60
MinJobAge=300
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1
JobRequeue=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
END
  for node in $(seq "$nodes"); do
    echo "NodeName=n$node NodeHostname=$host NodeAddr=127.0.0.1 Port=$((base + node)) CPUs=8 RealMemory=2000 State=UNKNOWN"
  done
  echo "PartitionName=main Nodes=ALL Default=YES PriorityTier=1 MaxTime=INFINITE State=UP"
  echo "PartitionName=urgent Nodes=ALL PriorityTier=2 MaxTime=INFINITE State=UP"
} > "$SLURM_CONF"
mkdir "$folder/state"

# Keys and sockets of munge must not lie where others can write.
install -d -o munge -g munge -m 755 "$folder/munge"
dd if=/dev/urandom of="$folder/munge/key" bs=128 count=1 status=none
chown munge: "$folder/munge/key" && chmod 400 "$folder/munge/key"
runuser -u munge -- /usr/sbin/munged --key-file="$folder/munge/key" --socket="$folder/munge/socket" \
  --pid-file="$folder/munge/pid" --log-file="$folder/munge/log" --seed-file="$folder/munge/seed" --force
sed -i "s|^AuthInfo=.*|AuthInfo=socket=$folder/munge/socket|" "$SLURM_CONF"
ln -s munge/pid "$folder/munge.pid"
slurmctld -f "$SLURM_CONF"
for node in $(seq "$nodes"); do
  mkdir -p "$folder/spool.n$node"
  slurmd -f "$SLURM_CONF" -N "n$node"
done
for _ in $(seq 300); do
  if [[ $(sinfo -h -p main -o %T 2> /dev/null) == idle ]]; then break; fi
  sleep 0.1
done
[[ $(sinfo -h -p main -o %T) == idle ]] || { echo "with_slurm.sh: error: SLURM does not start" >&2; tail -5 "$folder"/*.log >&2; exit 1; }

"$@"
