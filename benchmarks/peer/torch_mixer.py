#!/usr/bin/env python3
"""The benchmark trio's MLP-Mixer in PyTorch: 69 channels on 180 x 360, batch 1, float32, AdamW.

    /usr/bin/python3 benchmarks/peer/torch_mixer.py [--steps N] [--threads N]

Prints one JSON line: median seconds per training step, peak resident memory above the process
before the model was built, parameters, threads, and the tuning found by trial (torch_tuning.py).
"""

import argparse
import json
import time

import torch_tuning

CHANNELS, GRID, PATCH = 69, (180, 360), 4
WIDTH, DEPTH, TOKEN_HIDDEN, CHANNEL_HIDDEN = 384, 6, 1024, 1536


def build(torch, linear):
    """The network; linear: "blas" (OpenBLAS products) or "conv" (oneDNN 1x1 convolutions)."""
    nn = torch.nn

    class ChannelConv(nn.Conv2d):
        """On [B, T, C] the C channels of a channels-last image of T points: no copy."""

        def __init__(self, inputs, outputs):
            super().__init__(inputs, outputs, 1)
            self.to(memory_format=torch.channels_last)

        def forward(self, x):
            return super().forward(x.transpose(1, 2).unsqueeze(2)).squeeze(2).transpose(1, 2)

    class TokenConv(nn.Conv1d):
        """On [B, T, C] the T tokens are the channels of C points."""

        def __init__(self, inputs, outputs):
            super().__init__(inputs, outputs, 1)

    class TokenLinear(nn.Linear):
        """On [B, T, C] the weight times [T, C]."""

        def forward(self, x):
            return torch.matmul(self.weight, x) + self.bias[:, None]

    channel_layer, token_layer = {"blas": (nn.Linear, TokenLinear), "conv": (ChannelConv, TokenConv)}[linear]

    def mlp(layer, width, hidden):
        return nn.Sequential(nn.LayerNorm(WIDTH), layer(width, hidden), nn.GELU(), layer(hidden, width))

    class Block(nn.Module):
        def __init__(self, tokens):
            super().__init__()
            self.token = mlp(token_layer, tokens, TOKEN_HIDDEN)
            self.channel = mlp(channel_layer, WIDTH, CHANNEL_HIDDEN)

        def forward(self, x):
            x = x + self.token(x)
            return x + self.channel(x)

    class Mixer(nn.Module):
        def __init__(self):
            super().__init__()
            self.grid = [extent // PATCH for extent in GRID]
            tokens = self.grid[0] * self.grid[1]
            self.encoder = nn.Linear(CHANNELS * PATCH * PATCH, WIDTH)
            self.position = nn.Parameter(0.02 * torch.randn(tokens, WIDTH))
            self.blocks = nn.Sequential(*[Block(tokens) for _ in range(DEPTH)])
            self.decoder = nn.Linear(WIDTH, CHANNELS * PATCH * PATCH)

        def forward(self, x):
            h, w = self.grid
            x = (
                x.view(-1, h, PATCH, w, PATCH, CHANNELS)
                .transpose(2, 3)
                .reshape(-1, h * w, CHANNELS * PATCH * PATCH)
            )
            x = self.decoder(self.blocks(self.encoder(x) + self.position))
            return x.view(-1, h, w, PATCH, PATCH, CHANNELS).transpose(2, 3).reshape(-1, *GRID, CHANNELS)

    return Mixer()


def run(arguments):
    import torch

    torch.set_flush_denormal(True)  # before the first parallel loop, so that the worker threads inherit it
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    before = torch_tuning.reset_peak()
    model = build(torch, arguments.linear)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    x, y = torch.randn(1, *GRID, CHANNELS), torch.randn(1, *GRID, CHANNELS)
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
                "benchmark": "torch_mixer",
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
        "--linear", choices=("blas", "conv"), default="blas", help="chosen by trial unless tuned already"
    )
    arguments = parser.parse_args()
    short, variants = ("--warmup", "1", "--steps", "2"), (("--linear", "blas"), ("--linear", "conv"))
    torch_tuning.run_tuned(arguments.threads, short, variants)
    run(arguments)


if __name__ == "__main__":
    main()
