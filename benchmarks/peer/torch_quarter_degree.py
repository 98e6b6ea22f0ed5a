#!/usr/bin/env python3
"""One step of configs/era5_weathermixer_1b.json in PyTorch, on made-up numbers: seconds and peak memory of the process.

    python3 benchmarks/peer/torch_quarter_degree.py [--token-hidden-ratio R] [--depth N] [--threads N]

A sample of 721 x 1440 points, 78 channels in and 69 out; products in bfloat16 (autocast that keeps no copies of weights),
blocks recomputed (torch.utils.checkpoint), fused AdamW, gradients clipped. Prints one JSON line; a process that dies of memory prints none.
"""

import argparse
import json
import resource
import time

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

GRID, PATCH, INPUTS, OUTPUTS, WIDTH = (721, 1440), 60, 78, 69, 4320


class Block(nn.Module):
    def __init__(self, tokens, hidden):
        super().__init__()
        self.token_norm, self.channel_norm = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.token_mixing = nn.Sequential(nn.Linear(tokens, hidden), nn.GELU(), nn.Dropout(1e-3), nn.Linear(hidden, tokens))
        self.channel_mixing = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Dropout(1e-3), nn.Linear(WIDTH, WIDTH))

    def forward(self, x):
        x = x + self.token_mixing(self.token_norm(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channel_mixing(self.channel_norm(x))


class Mixer(nn.Module):
    def __init__(self, depth, ratio):
        super().__init__()
        self.columns = GRID[1] // PATCH
        tokens = GRID[0] * self.columns
        self.encoder, self.decoder = nn.Linear(PATCH * INPUTS, WIDTH), nn.Linear(WIDTH, PATCH * OUTPUTS)
        self.blocks = nn.ModuleList(Block(tokens, round(ratio * tokens)) for _ in range(depth))
        self.output, self.input = nn.Linear(OUTPUTS, OUTPUTS), nn.Linear(INPUTS, OUTPUTS, bias=False)

    def forward(self, fields):
        x = self.encoder(fields.view(1, GRID[0] * self.columns, PATCH * INPUTS))
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return self.output(self.decoder(x).view(1, *GRID, OUTPUTS)) + self.input(fields)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--token-hidden-ratio", type=float, default=0.5)
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--threads", type=int, default=0)
    options = parser.parse_args()
    if options.threads > 0:
        torch.set_num_threads(options.threads)
    model = Mixer(options.depth, options.token_hidden_ratio)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=3e-6, fused=True)
    fields, target = torch.randn(1, *GRID, INPUTS), torch.randn(1, *GRID, OUTPUTS)
    begin = time.perf_counter()
    with torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=False):
        prediction = model(fields)
    loss = nn.functional.mse_loss(prediction.float(), target)
    del prediction
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=False)
    optimizer.step()
    print(json.dumps({"peer": "torch " + torch.__version__, "token_hidden_ratio": options.token_hidden_ratio, "depth": options.depth,
                      "parameters": sum(p.numel() for p in model.parameters()), "seconds": time.perf_counter() - begin,
                      "peak_memory_bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, "loss": loss.item()}))


if __name__ == "__main__":
    main()
