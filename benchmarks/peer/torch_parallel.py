#!/usr/bin/env python3
"""The benchmark trio under PyTorch's data parallelism over gloo: one process and one sample a rank.

    /usr/bin/python3 benchmarks/peer/torch_parallel.py MODEL --wrap ddp|fsdp [--processes N] [--threads N] [--steps N]

Prints one JSON line: of the slowest and the largest process the median seconds per training step and the peak
resident memory above the process before the model was built, and the tuning found by trial; or, where this
PyTorch cannot run it, its error.
"""

import argparse
import json
import os

import torch_trio
import torch_tuning


def wrapped(torch, model, wrap):
    if wrap == "ddp":
        return torch.nn.parallel.DistributedDataParallel(model)
    # The second FSDP, PyTorch 2.6 or newer: the first one needs an accelerator.
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (torch.distributed.get_world_size(),))
    for module in model.modules():
        if type(module).__name__ == "Block":
            fully_shard(module, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def run_process(rank, arguments):
    import torch
    import torch.distributed

    torch.set_flush_denormal(True)
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    torch.distributed.init_process_group("gloo", rank=rank, world_size=arguments.processes)
    before = torch_tuning.reset_peak()
    result = {
        "benchmark": f"torch_parallel {arguments.model} {arguments.wrap}",
        "torch_version": torch.__version__,
        "processes": arguments.processes,
        "samples": arguments.processes,
        "threads": torch.get_num_threads(),
    }
    try:
        model = wrapped(torch, torch_trio.MODELS[arguments.model](torch, arguments.linear), arguments.wrap)
        seconds = torch_trio.median_step(torch, model, arguments)
    except Exception as error:  # whatever this PyTorch lacks is the result
        result["error"] = f"{type(error).__name__}: {error}"
    else:
        largest = torch.tensor([seconds, float(torch_tuning.resident_bytes("VmHWM") - before)]).double()
        torch.distributed.all_reduce(largest, torch.distributed.ReduceOp.MAX)
        result["seconds_per_step"], result["peak_memory_bytes"] = largest[0].item(), int(largest[1])
        result["tuning"] = torch_tuning.description()
    if rank == 0:
        print(json.dumps(result), flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--wrap", choices=("ddp", "fsdp"), default="ddp")
    parser.add_argument("--processes", type=int, default=2)
    arguments = torch_trio.parse_arguments(parser, threads=1)
    torch_trio.run_tuned(arguments.threads)
    import torch.multiprocessing

    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29517")
    torch.multiprocessing.spawn(run_process, (arguments,), arguments.processes)


if __name__ == "__main__":
    main()
