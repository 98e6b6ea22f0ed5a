#!/usr/bin/env python3
"""Trains an MLP-Mixer in PyTorch to forecast ERA5 2 m temperature around the United Kingdom 6 hours ahead.

    python3 benchmarks/peer/torch_era5_uk_mixer.py FILE [--steps N] [--threads N]

FILE is an hourly NetCDF month with t2m(time, latitude, longitude). The first 24 days train, the last 7
test. Prints one JSON line: seconds of training, the root mean square error over persistence's on the
test windows (no area weights), and the tuning found by trial (torch_tuning.py).
"""

import argparse
import json
import math
import time

import torch_tuning

LEAD, HISTORY, TRAIN_DAYS, TEST_DAYS = 6, 6, 24, 7
PATCH, WIDTH, DEPTH, TOKEN_HIDDEN_RATIO, CHANNEL_HIDDEN_RATIO, DROPOUT = (3, 7), 96, 3, 0.5, 2.0, 0.1
LEARNING_RATE, WEIGHT_DECAY, BETAS, CLIP_NORM = 1e-3, 0.05, (0.9, 0.95), 1.0
BATCH, WARMUP_STEPS = 8, 50


class Data:
    """The month as windows of [inputs, increment], normalised with the training days."""

    def __init__(self, torch, path):
        import netCDF4
        import numpy as np

        with netCDF4.Dataset(path) as file:
            self.field = np.asarray(file["t2m"][:], dtype=np.float64)
            hour = np.asarray([t.hour for t in netCDF4.num2date(file["time"][:], file["time"].units)])
            latitude, longitude = (
                np.asarray(file[name][:], dtype=np.float64) for name in ("latitude", "longitude")
            )
        train_end, test_begin, times = 24 * TRAIN_DAYS, len(hour) - 24 * TEST_DAYS, len(hour)
        self.train = np.arange(HISTORY, train_end - LEAD)
        self.test = np.arange(test_begin, times - LEAD)

        increment = self.field[LEAD:] - self.field[:-LEAD]
        self.increment_mean, self.increment_std = increment[self.train].mean(), increment[self.train].std()
        state = (self.field - self.field[:train_end].mean()) / self.field[:train_end].std()
        angle = 2 * math.pi * hour / 24
        clock = np.stack([np.sin(angle), np.cos(angle)], -1)
        place = np.stack(
            np.meshgrid(*((x - x.mean()) / x.std() for x in (latitude, longitude)), indexing="ij"), -1
        )
        self.torch, self.shape = torch, self.field.shape[1:]
        self.state, self.clock, self.place = (
            torch.tensor(x, dtype=torch.float32) for x in (state, clock, place)
        )
        self.increment = torch.tensor(
            (increment - self.increment_mean) / self.increment_std, dtype=torch.float32
        )

    def inputs(self, starts):
        """[B, H, W, 8]: state now and before, latitude, longitude, clock now and at the target."""
        starts = self.torch.as_tensor(starts)
        clock = self.torch.cat([self.clock[starts], self.clock[starts + LEAD]], -1)
        return self.torch.cat(
            [
                self.torch.stack([self.state[starts], self.state[starts - HISTORY]], -1),
                self.place.expand(len(starts), *self.place.shape),
                clock[:, None, None].expand(-1, *self.shape, -1),
            ],
            -1,
        )

    def ratio_to_persistence(self, model):
        """Forecast error over persistence error, and the latter in kelvin: root mean squares."""
        with self.torch.no_grad():
            forecast = (
                model(self.inputs(self.test)).double().numpy() * self.increment_std + self.increment_mean
            )
        truth = self.field[self.test + LEAD] - self.field[self.test]
        persistence = math.sqrt((truth**2).mean())
        return math.sqrt(((forecast - truth) ** 2).mean()) / persistence, persistence


def build(torch, grid, channels):
    nn = torch.nn
    h, w = (math.ceil(extent / size) for extent, size in zip(grid, PATCH))
    padding = (0, 0, 0, w * PATCH[1] - grid[1], 0, h * PATCH[0] - grid[0])
    tokens, points = h * w, PATCH[0] * PATCH[1]

    def mlp(width, ratio):
        hidden = round(ratio * width)
        return nn.Sequential(
            nn.Linear(width, hidden), nn.GELU(), nn.Dropout(DROPOUT), nn.Linear(hidden, width)
        )

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.token_norm, self.token_mixing = nn.LayerNorm(WIDTH), mlp(tokens, TOKEN_HIDDEN_RATIO)
            self.channel_norm, self.channel_mixing = nn.LayerNorm(WIDTH), mlp(WIDTH, CHANNEL_HIDDEN_RATIO)

        def forward(self, x):
            x = x + self.token_mixing(self.token_norm(x).transpose(1, 2)).transpose(1, 2)
            return x + self.channel_mixing(self.channel_norm(x))

    class Mixer(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.Linear(channels * points, WIDTH)
            self.position = nn.Parameter(0.02 * torch.randn(tokens, WIDTH))
            self.blocks = nn.Sequential(*[Block() for _ in range(DEPTH)])
            self.norm, self.decoder = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, points)
            nn.init.zeros_(self.decoder.weight)
            nn.init.zeros_(self.decoder.bias)

        def forward(self, x):
            x = nn.functional.pad(x, padding).view(-1, h, PATCH[0], w, PATCH[1], channels).transpose(2, 3)
            x = self.blocks(self.encoder(x.reshape(-1, tokens, points * channels)) + self.position)
            x = self.decoder(self.norm(x)).view(-1, h, w, *PATCH).transpose(2, 3)
            return x.reshape(-1, h * PATCH[0], w * PATCH[1])[:, : grid[0], : grid[1]]

    return Mixer()


def learning_rate(step, steps):
    """Of the 1-based step: linear warm-up, then cosine to zero."""
    if step <= WARMUP_STEPS:
        return LEARNING_RATE * step / WARMUP_STEPS
    return LEARNING_RATE * 0.5 * (1 + math.cos(math.pi * (step - WARMUP_STEPS) / (steps - WARMUP_STEPS)))


def train(torch, data, model, steps, foreach):
    optimizer = torch.optim.AdamW(model.parameters(), betas=BETAS, weight_decay=WEIGHT_DECAY, foreach=foreach)
    order = torch.empty(0, dtype=torch.long)
    for step in range(1, steps + 1):
        if len(order) < BATCH:
            order = torch.as_tensor(data.train)[torch.randperm(len(data.train))]
        starts, order = order[:BATCH], order[BATCH:]
        optimizer.param_groups[0]["lr"] = learning_rate(step, steps)
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.mse_loss(model(data.inputs(starts)), data.increment[starts]).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP_NORM)
        optimizer.step()


def run(arguments):
    import torch

    torch.set_flush_denormal(True)  # before the first parallel loop, so that the worker threads inherit it
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(arguments.seed)
    data = Data(torch, arguments.file)
    before = torch_tuning.reset_peak()
    model = build(torch, data.shape, data.inputs([HISTORY]).shape[-1])
    start = time.perf_counter()
    train(torch, data, model, arguments.steps, arguments.foreach)
    seconds = time.perf_counter() - start
    peak = torch_tuning.resident_bytes("VmHWM") - before
    model.eval()
    ratio, persistence = data.ratio_to_persistence(model)
    print(
        json.dumps(
            {
                "benchmark": "torch_era5_uk_mixer",
                "torch_version": torch.__version__,
                "steps": arguments.steps,
                "seconds": seconds,
                "seconds_per_step": seconds / arguments.steps,
                "ratio_to_persistence": ratio,
                "persistence_rmse": persistence,
                "parameters": sum(p.numel() for p in model.parameters()),
                "peak_memory_bytes": peak,
                "threads": torch.get_num_threads(),
                "seed": arguments.seed,
                "tuning": torch_tuning.description(),
            }
        )
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--foreach", action="store_true", help="AdamW over lists of tensors")
    arguments = parser.parse_args()
    torch_tuning.run_tuned(arguments.threads, ["--steps", "60"], ((), ("--foreach",)))
    run(arguments)


if __name__ == "__main__":
    main()
