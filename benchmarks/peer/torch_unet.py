#!/usr/bin/env python3
"""The benchmark trio's U-Net in PyTorch: 69 channels on 180 x 360, batch 1, float32, AdamW.

    /usr/bin/python3 benchmarks/peer/torch_unet.py [--steps N] [--threads N] [--layout plain|channels_last]

Prints one JSON line: median seconds per training step, peak resident memory above the process
before the model was built, parameters, threads, and the tuning found by trial (torch_tuning.py).
"""

import argparse
import json
import time

import torch_tuning

CHANNELS, GRID = 69, (180, 360)
WIDTHS, GROUPS = (32, 64, 128, 256), 8


def build(torch):
    nn = torch.nn

    def convolutions(inputs, width):
        layers = []
        for channels in (inputs, width):
            layers += [nn.Conv2d(channels, width, 3, padding=1), nn.GroupNorm(GROUPS, width), nn.GELU()]
        return nn.Sequential(*layers)

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            inputs = (CHANNELS, *WIDTHS[:-1])
            self.encoder = nn.ModuleList([convolutions(a, b) for a, b in zip(inputs, WIDTHS)])
            self.decoder = nn.ModuleList(
                [convolutions(a + b, a) for a, b in zip(WIDTHS[:-1], WIDTHS[1:])]
            )
            self.head = nn.Conv2d(WIDTHS[0], CHANNELS, 1)

        def forward(self, x):
            skips = []
            for level, stage in enumerate(self.encoder):
                if level:
                    x = nn.functional.max_pool2d(x, 2, ceil_mode=True)
                x = stage(x)
                skips.append(x)
            for level in reversed(range(len(self.decoder))):
                skip = skips[level]
                x = nn.functional.interpolate(x, scale_factor=2, mode="nearest")
                x = x[..., : skip.shape[-2], : skip.shape[-1]]
                x = self.decoder[level](torch.cat([skip, x], 1))
            return self.head(x)

    return UNet()


def run(arguments):
    import torch

    torch.set_flush_denormal(True)  # before the first parallel loop, so that the worker threads inherit it
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    before = torch_tuning.reset_peak()
    model = build(torch)
    x, y = torch.randn(1, CHANNELS, *GRID), torch.randn(1, CHANNELS, *GRID)
    if arguments.layout == "channels_last":
        model = model.to(memory_format=torch.channels_last)
        x, y = (t.to(memory_format=torch.channels_last) for t in (x, y))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    seconds = []
    for _ in range(arguments.warmup + arguments.steps):
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        seconds.append(time.perf_counter() - start)
        del loss
    print(
        json.dumps(
            {
                "benchmark": "torch_unet",
                "torch_version": torch.__version__,
                "seconds_per_step": torch_tuning.median(seconds[arguments.warmup :]),
                "peak_memory_bytes": torch_tuning.resident_bytes("VmHWM") - before,
                "parameters": sum(p.numel() for p in model.parameters()),
                "steps": arguments.steps,
                "threads": torch.get_num_threads(),
                "tuning": torch_tuning.description(),
            }
        )
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=10, help="timed steps")
    parser.add_argument("--warmup", type=int, default=3, help="steps before them")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--layout",
        choices=("plain", "channels_last"),
        default="plain",
        help="chosen by trial unless tuned already",
    )
    arguments = parser.parse_args()
    short = ("--warmup", "1", "--steps", "2")
    variants = (("--layout", "plain"), ("--layout", "channels_last"))
    torch_tuning.run_tuned(arguments.threads, short, variants)
    run(arguments)


if __name__ == "__main__":
    main()
