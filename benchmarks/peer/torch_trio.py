#!/usr/bin/env python3
"""The benchmark trio in PyTorch: 69 channels on 180 x 360, batch 1, float32, AdamW.

    /usr/bin/python3 benchmarks/peer/torch_trio.py MODEL [--steps N] [--threads N]

MODEL is mixer, vit or sfno (of width 128, depth 4 and ratio 2 on 90 x 180 points). Prints one JSON line: median seconds per training step, peak resident memory above the
process before the model was built, parameters, threads, and the tuning found by trial (torch_tuning.py).
"""

import argparse
import json
import math
import time

import torch_tuning

CHANNELS, GRID, PATCH = 69, (180, 360), 4
WIDTH, DEPTH, TOKEN_HIDDEN, CHANNEL_HIDDEN, HEADS = 384, 6, 1024, 1536, 6


def channel_layer(torch, linear):
    """Linear over channels; "blas": OpenBLAS products, "conv": oneDNN 1x1 convolutions."""

    class ChannelConv(torch.nn.Conv2d):
        """On [B, T, C] the C channels of a channels-last image of T points: no copy."""

        def __init__(self, inputs, outputs):
            super().__init__(inputs, outputs, 1)
            self.to(memory_format=torch.channels_last)

        def forward(self, x):
            return super().forward(x.transpose(1, 2).unsqueeze(2)).squeeze(2).transpose(1, 2)

    return {"blas": torch.nn.Linear, "conv": ChannelConv}[linear]


def token_layer(torch, linear):
    """Linear over tokens."""

    class TokenConv(torch.nn.Conv1d):
        """On [B, T, C] the T tokens are the channels of C points."""

        def __init__(self, inputs, outputs):
            super().__init__(inputs, outputs, 1)

    class TokenLinear(torch.nn.Linear):
        """On [B, T, C] the weight times [T, C]."""

        def forward(self, x):
            return torch.matmul(self.weight, x) + self.bias[:, None]

    return {"blas": TokenLinear, "conv": TokenConv}[linear]


def patch_model(torch, blocks):
    """Patches, a linear encoder, learned positions, blocks, a linear decoder."""
    nn = torch.nn

    class PatchModel(nn.Module):
        def __init__(self):
            super().__init__()
            self.grid = [extent // PATCH for extent in GRID]
            self.encoder = nn.Linear(CHANNELS * PATCH * PATCH, WIDTH)
            self.position = nn.Parameter(0.02 * torch.randn(math.prod(self.grid), WIDTH))
            self.blocks = blocks
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

    return PatchModel()


def mlp(torch, layer, width, hidden):
    nn = torch.nn
    return nn.Sequential(nn.LayerNorm(WIDTH), layer(width, hidden), nn.GELU(), layer(hidden, width))


def build_mixer(torch, linear):
    tokens = GRID[0] * GRID[1] // PATCH**2
    channels, mixed = channel_layer(torch, linear), token_layer(torch, linear)

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.token = mlp(torch, mixed, tokens, TOKEN_HIDDEN)
            self.channel = mlp(torch, channels, WIDTH, CHANNEL_HIDDEN)

        def forward(self, x):
            x = x + self.token(x)
            return x + self.channel(x)

    return patch_model(torch, torch.nn.Sequential(*[Block() for _ in range(DEPTH)]))


def build_vit(torch, linear):
    nn, layer = torch.nn, channel_layer(torch, linear)
    fused = getattr(nn.functional, "scaled_dot_product_attention", None)

    def attend(q, k, v):
        if fused is not None:
            return fused(q, k, v)
        return torch.softmax((q / math.sqrt(q.shape[-1])) @ k.transpose(-1, -2), -1) @ v

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.LayerNorm(WIDTH)
            self.inputs, self.output = layer(WIDTH, 3 * WIDTH), layer(WIDTH, WIDTH)

        def forward(self, x):
            qkv = self.inputs(self.norm(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
            return self.output(attend(*qkv.unbind()).transpose(1, 2).flatten(2))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention, self.mlp = Attention(), mlp(torch, layer, WIDTH, CHANNEL_HIDDEN)

        def forward(self, x):
            x = x + self.attention(x)
            return x + self.mlp(x)

    return patch_model(torch, nn.Sequential(*[Block() for _ in range(DEPTH)], nn.LayerNorm(WIDTH)))


def legendre(rows, weights, degrees):
    """[m, l, row]: normalised associated Legendre functions at sines of latitude, times weights of the rows."""
    import numpy as np

    values = np.zeros((degrees, degrees, len(rows)))
    cosine = np.sqrt(1 - rows**2)
    diagonal = np.ones_like(rows)
    for m in range(degrees):
        if m > 0:
            diagonal = diagonal * cosine * math.sqrt((2 * m + 1) / (2 * m))
        values[m, m] = diagonal
        for l in range(m + 1, degrees):
            a = math.sqrt((4 * l * l - 1) / (l * l - m * m))
            b = math.sqrt(((l - 1) ** 2 - m * m) / (4 * (l - 1) ** 2 - 1))
            values[m, l] = a * (rows * values[m, l - 1] - b * (values[m, l - 2] if l > m + 1 else 0))
    return values * weights


def build_sfno(torch, linear):
    """Real FFTs along longitudes, and Legendre transforms by einsum, as torch-harmonics has them."""
    import numpy as np

    nn, layer = torch.nn, channel_layer(torch, linear)
    width, depth, degrees, inner = 128, 4, 90, (90, 180)
    nodes, gauss = np.polynomial.legendre.leggauss(inner[0])
    angles = (np.arange(GRID[0]) + 0.5) * np.pi / GRID[0]
    integrals = np.zeros(GRID[0])
    integrals[0] = 2
    cells = np.linalg.solve(np.polynomial.legendre.legvander(np.cos(angles), GRID[0] - 1).T, integrals)

    def table(rows, weights):
        return torch.from_numpy(legendre(rows, weights, degrees)).float()

    class Transform(nn.Module):
        def __init__(self, size, rows, weights):
            super().__init__()
            self.size = size
            self.register_buffer("forth", table(rows, weights / 2))
            self.register_buffer("back", table(rows, np.ones_like(rows)))

        def analysis(self, x):
            orders = torch.view_as_real(torch.fft.rfft(x, dim=2, norm="forward")[:, :, :degrees])
            return torch.view_as_complex(torch.einsum("bhmcr,mlh->bmlcr", orders, self.forth))

        def synthesis(self, a):
            orders = torch.einsum("bmlcr,mlh->bhmcr", torch.view_as_real(a), self.back).contiguous()
            return torch.fft.irfft(torch.view_as_complex(orders), n=self.size[1], dim=2, norm="forward")

    data, grid = Transform(GRID, np.cos(angles), cells), Transform(inner, nodes[::-1].copy(), gauss[::-1].copy())

    class Filter(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(degrees, width, width, 2) / math.sqrt(2 * width))
            self.bias = nn.Parameter(torch.zeros(width))

        def forward(self, x):
            a = torch.einsum("bmlc,lcn->bmln", grid.analysis(x), torch.view_as_complex(self.weight))
            return grid.synthesis(a) + self.bias

    def points(inputs, hidden, outputs):
        maps = nn.Sequential(layer(inputs, hidden), nn.GELU(), layer(hidden, outputs))
        return lambda x: maps(x.flatten(1, 2)).unflatten(1, x.shape[1:3]), maps

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2, self.filter = nn.LayerNorm(width), nn.LayerNorm(width), Filter()
            self.mlp, self.maps = points(width, 2 * width, width)

        def forward(self, x):
            x = x + self.filter(self.norm1(x))
            return x + self.mlp(self.norm2(x))

    class Sfno(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.encoder_maps = points(CHANNELS, width, width)
            self.decoder, self.decoder_maps = points(CHANNELS + width, width, CHANNELS)
            self.blocks = nn.Sequential(*[Block() for _ in range(depth)])
            self.norm = nn.LayerNorm(width)

        def forward(self, x):
            y = grid.synthesis(data.analysis(self.encoder(x)))
            y = data.synthesis(grid.analysis(self.norm(self.blocks(y))))
            return self.decoder(torch.cat([x, y], -1))

    return Sfno()


MODELS = {"mixer": build_mixer, "vit": build_vit, "sfno": build_sfno}


def median_step(torch, model, arguments):
    """Median seconds of a training step on one sample."""
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
    return torch_tuning.median(seconds[arguments.warmup :])


def run(arguments):
    import torch

    torch.set_flush_denormal(True)  # before the first parallel loop, so that the worker threads inherit it
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    before = torch_tuning.reset_peak()
    model = MODELS[arguments.model](torch, arguments.linear)
    seconds = median_step(torch, model, arguments)
    print(
        json.dumps(
            {
                "benchmark": f"torch_trio {arguments.model}",
                "torch_version": torch.__version__,
                "seconds_per_step": seconds,
                "peak_memory_bytes": torch_tuning.resident_bytes("VmHWM") - before,
                "parameters": sum(p.numel() for p in model.parameters()),
                "steps": arguments.steps,
                "threads": torch.get_num_threads(),
                "tuning": torch_tuning.description(),
            }
        )
    )


def parse_arguments(parser, threads):
    """Those of the model and of the measurement."""
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--steps", type=int, default=10, help="timed steps")
    parser.add_argument("--warmup", type=int, default=3, help="steps before them")
    parser.add_argument("--threads", type=int, default=threads, help="of a process")
    parser.add_argument(
        "--linear", choices=("blas", "conv"), default="blas", help="chosen by trial unless tuned already"
    )
    return parser.parse_args()


def run_tuned(threads):
    short, variants = ("--warmup", "1", "--steps", "2"), (("--linear", "blas"), ("--linear", "conv"))
    torch_tuning.run_tuned(threads, short, variants)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments = parse_arguments(parser, threads=2)
    run_tuned(arguments.threads)
    run(arguments)


if __name__ == "__main__":
    main()
