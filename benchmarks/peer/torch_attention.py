#!/usr/bin/env python3
"""PyTorch's attention, forward and backward, float32, in one batch: of 12 heads, 4050 tokens, 64 numbers a head
unless said otherwise.

    /usr/bin/python3 benchmarks/peer/torch_attention.py [--threads N] [--tokens N] [--heads N] [--size N]

scaled_dot_product_attention where this PyTorch has it, else its three operations. Prints one JSON line: the
fastest call in seconds, forward and with backward, peak resident memory above the operands, and the tuning
found by trial (torch_tuning.py).
"""

import argparse
import json
import math
import time

import torch_tuning


def attend(torch, q, k, v):
    fused = getattr(torch.nn.functional, "scaled_dot_product_attention", None)
    if fused is not None:
        return fused(q, k, v)
    return torch.softmax((q / math.sqrt(q.shape[-1])) @ k.transpose(-1, -2), -1) @ v


def run(arguments):
    import torch

    torch.set_flush_denormal(True)
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    shape = (1, arguments.heads, arguments.tokens, arguments.size)
    q, k, v = (torch.randn(shape, requires_grad=True) for _ in range(3))
    upstream = torch.randn(shape)
    before = torch_tuning.reset_peak()
    forward, both = [], []
    begin = time.perf_counter()
    while len(both) <= arguments.steps or (time.perf_counter() - begin < 0.3 and len(both) <= 50):
        start = time.perf_counter()
        y = attend(torch, q, k, v)
        forward.append(time.perf_counter() - start)
        y.backward(upstream)
        both.append(time.perf_counter() - start)
        q.grad = k.grad = v.grad = None
        del y
    print(
        json.dumps(
            {
                "benchmark": "torch_attention",
                "torch_version": torch.__version__,
                "fused": hasattr(torch.nn.functional, "scaled_dot_product_attention"),
                "seconds_forward": min(forward[1:]),
                "seconds_per_step": min(both[1:]),
                "peak_memory_bytes": torch_tuning.resident_bytes("VmHWM") - before,
                "threads": torch.get_num_threads(),
                "tuning": torch_tuning.description(),
            }
        )
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=5, help="timed calls, more of short ones")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=4050)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--size", type=int, default=64)
    arguments = parser.parse_args()
    torch_tuning.run_tuned(arguments.threads, ("--steps", "1"), ((),))
    run(arguments)


if __name__ == "__main__":
    main()
