"""Runs a PyTorch benchmark at its best on this CPU, so that the comparison with it is a fair one.

OpenBLAS chooses its kernels, and glibc its allocator's habits, when the process starts, so the
choice is made by trial: the script runs itself for a few steps under each candidate environment,
keeps the fastest and replaces itself with that.
"""

import json
import os
import subprocess
import sys
import time

TUNED = "JIGSAW_PEER_TUNED"
CORE_TYPES = ("", "Haswell", "Zen", "SkylakeX", "Cooperlake", "Sapphirerapids")
VECTORS = ("", "avx512")

# Freed buffers stay in the heap instead of going back to the kernel, whose fresh pages cost a fault each.
KEEP_MEMORY = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(1 << 46),
    "MALLOC_TOP_PAD_": str(64 << 20),
}
HUGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
ALLOCATORS = ({}, KEEP_MEMORY, {**KEEP_MEMORY, **HUGE_PAGES})


def measure(command, environment):
    """The last line of the command's output as JSON; None if it fails, as an unknown core type may."""
    done = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    try:
        return json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        return None


def fastest(candidates, command):
    """The pair (environment, options) with the least "seconds_per_step"."""
    timed = []
    for environment, options in candidates:
        result = measure([*command, *options], environment)
        if result is not None and "error" in result:
            raise SystemExit(f"error: {result['error']}")
        if result is not None:
            timed.append((result["seconds_per_step"], len(timed), (environment, options)))
            shown = " ".join(
                [*(f"{key}={value}" for key, value in environment.items() if key != TUNED), *options]
            )
            print(f"tuning: {result['seconds_per_step']:.4f} s with {shown}", file=sys.stderr)
    if not timed:
        raise SystemExit(f"error: run by itself, `{TUNED}={{}} {' '.join(command)}` says why it fails")
    return min(timed)[2]


def run_tuned(threads, probe, variants):
    """Returns at once in the tuned process; elsewhere finds the best environment and restarts in it.

    probe: command line options that make this script a short run; variants: further options to choose from.
    """
    if TUNED in os.environ:
        return
    base = {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads), TUNED: "{}"}
    cores = [({**base, **({"OPENBLAS_CORETYPE": core} if core else {})}, []) for core in CORE_TYPES]
    best, _ = fastest(cores, [sys.executable, os.path.abspath(__file__)])

    script = [sys.executable, os.path.abspath(sys.argv[0])]
    short = [*script, *sys.argv[1:], *probe]
    best, _ = fastest([({**best, **allocator}, []) for allocator in ALLOCATORS], short)
    levels = [({**best, **({"ATEN_CPU_CAPABILITY": vectors} if vectors else {})}, []) for vectors in VECTORS]
    best, _ = fastest(levels, short)
    _, options = fastest([(best, list(variant)) for variant in variants], short)

    shown = {key: value for key, value in best.items() if key != TUNED}
    best[TUNED] = json.dumps({**shown, "options": " ".join(options)})
    command = [*script, *sys.argv[1:], *options]
    os.execve(command[0], command, {**os.environ, **best})


def description():
    """What run_tuned chose, for the result's JSON line."""
    return json.loads(os.environ.get(TUNED, "{}"))


def resident_bytes(field):
    """A line of /proc/self/status, as VmRSS (now) or VmHWM (the peak)."""
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(field + ":"))


def reset_peak():
    """Makes VmHWM start again from what is resident now, and returns that."""
    with open("/proc/self/clear_refs", "w", encoding="ascii") as clear:
        clear.write("5")
    return resident_bytes("VmRSS")


def median(values):
    return sorted(values)[len(values) // 2]


def matmul_probe():
    """The core type's trial: the shapes of an MLP, each forward and backward."""
    import torch

    with open("/proc/self/maps", encoding="utf-8") as maps:
        if "/blas/libblas.so" in maps.read():
            raise SystemExit("error: PyTorch runs on the reference BLAS; install libopenblas0-openmp")
    torch.set_flush_denormal(True)
    a, b, c = torch.randn(4096, 384), torch.randn(1536, 384), torch.randn(4096, 1536)
    seconds = []
    for _ in range(16):
        start = time.perf_counter()
        a @ b.t(), c @ b, c.t() @ a
        seconds.append(time.perf_counter() - start)
    print(json.dumps({"seconds_per_step": min(seconds)}))


if __name__ == "__main__":
    matmul_probe()
