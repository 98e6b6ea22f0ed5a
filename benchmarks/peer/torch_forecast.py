#!/usr/bin/env python3
"""PyTorch and xarray make the forecasts that `jigsaw-train predict` makes: the same model and parameters, the same
starts, rollouts over several leads, states in kelvin to a deflated NetCDF file.

    python3 benchmarks/peer/torch_forecast.py FILE PARAMETERS STARTS OUTPUT [--steps N] [--batch N] [--threads N]

FILE is an hourly NetCDF month with t2m(time, latitude, longitude), PARAMETERS what `jigsaw-train export` wrote of
configs/era5_uk_mixer.json, STARTS our forecasts, whose starts are taken and with which OUTPUT is compared. Prints
one JSON line: seconds from the first input to the closed file, steps a second, the largest difference in kelvin.
"""

import argparse
import json
import math
import time

PATCH, DEPTH, LEAD = (3, 7), 3, 6


def read_parameters(torch, path):
    import numpy as np

    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        values = file.read()
    parameters = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        parameters[name] = torch.tensor(np.frombuffer(values[begin:end], dtype="<f4").reshape(entry["shape"]).copy())
    return parameters, json.loads(header["__metadata__"]["jigsaw.statistics"])["fields"]["t2m"]


def mixer(torch, x, p, grid):
    nn = torch.nn.functional

    def linear(y, name):
        return nn.linear(y, p[name + ".weight"].flatten(1), p[name + ".bias"])

    def norm(y, name):
        return nn.layer_norm(y, y.shape[-1:], p[name + ".weight"], p[name + ".bias"])

    padding = [-extent % size for extent, size in zip(grid, PATCH)]
    field = nn.pad(x.permute(0, 3, 1, 2), (0, padding[1], 0, padding[0]))
    kernel = p["encoder.weight"].reshape(-1, x.shape[3], *PATCH)
    y = nn.conv2d(field, kernel, p["encoder.bias"], stride=PATCH).permute(0, 2, 3, 1) + p["position"]
    h, w = y.shape[1:3]
    y = y.flatten(1, 2)
    for i in range(DEPTH):
        block = f"blocks.{i}."
        hidden = p[block + "token_mixing.fc1.bias"].shape[0]
        z = norm(y, block + "token_norm").transpose(1, 2)
        z = nn.gelu(nn.linear(z, p[block + "token_mixing.fc1.weight"].reshape(hidden, h * w), p[block + "token_mixing.fc1.bias"]))
        z = nn.linear(z, p[block + "token_mixing.fc2.weight"].reshape(h * w, hidden), p[block + "token_mixing.fc2.bias"].flatten())
        y = y + z.transpose(1, 2)
        z = norm(y, block + "channel_norm")
        y = y + linear(nn.gelu(linear(z, block + "channel_mixing.fc1")), block + "channel_mixing.fc2")
    y = nn.linear(norm(y, "norm"), p["decoder.weight"].flatten(0, -2), p["decoder.bias"].flatten())
    padded = (h * PATCH[0], w * PATCH[1])
    field = nn.fold(y.transpose(1, 2), padded, kernel_size=PATCH, stride=PATCH)
    return field[:, 0, : grid[0], : grid[1]]


class Forecasts:
    """The month, read a time at a time, and the inputs that are made of it."""

    def __init__(self, torch, path, statistics):
        import numpy as np
        import xarray

        self.torch, self.np, self.xarray = torch, np, xarray
        self.data = xarray.open_dataset(path)
        self.times = self.data.indexes["time"]
        self.mean, self.deviation = statistics["mean"], statistics["deviation"]
        self.increment = statistics["increment_deviation"]
        place = [(x - x.mean()) / x.std() for x in (self.data.latitude.values.astype("f8"), self.data.longitude.values.astype("f8"))]
        self.place = torch.tensor(np.stack(np.meshgrid(*place, indexing="ij"), -1), dtype=torch.float32)

    def states(self, starts, hours):
        """Normalised [B, H, W]."""
        moments = starts + self.np.timedelta64(hours, "h")
        values = self.data.t2m.sel(time=moments).values.astype("f8")
        return self.torch.tensor((values - self.mean) / self.deviation, dtype=self.torch.float32), values

    def clock(self, starts, hours):
        moments = starts + self.np.timedelta64(hours, "h")
        angle = 2 * math.pi * ((moments - moments.astype("datetime64[D]")) / self.np.timedelta64(1, "D"))
        return self.torch.tensor(self.np.stack([self.np.sin(angle), self.np.cos(angle)], -1), dtype=self.torch.float32)

    def run(self, starts, steps, model):
        """Kelvin, [B, steps, H, W]."""
        torch = self.torch
        before, (now, origin) = self.states(starts, -LEAD)[0], self.states(starts, 0)
        total, leads = torch.zeros_like(now), []
        for lead in range(steps):
            clock = torch.cat([self.clock(starts, LEAD * lead), self.clock(starts, LEAD * (lead + 1))], -1)
            fields = [
                torch.stack([before, now], -1),
                self.place.expand(len(starts), *self.place.shape),
                clock[:, None, None].expand(-1, *now.shape[1:], -1),
            ]
            y = model(torch.cat(fields, -1))
            total = total + y
            before, now = now, now + y * (self.increment / self.deviation)
            leads.append((origin + total.double().numpy() * self.increment).astype("f4"))
        return self.np.stack(leads, 1)


def write(data, forecasts, starts, steps, path):
    dataset = data.xarray.Dataset(
        {"t2m": (("time", "lead_time", "latitude", "longitude"), forecasts)},
        {"time": starts, "lead_time": [LEAD * (k + 1) for k in range(steps)],
         "latitude": data.data.latitude, "longitude": data.data.longitude},
    )
    dataset.to_netcdf(path, encoding={"t2m": {"zlib": True, "complevel": 1, "chunksizes": (1, 1, *forecasts.shape[2:])}})


def run(arguments):
    import numpy as np
    import torch
    import xarray

    torch.set_flush_denormal(True)
    torch.set_num_threads(arguments.threads)
    parameters, statistics = read_parameters(torch, arguments.parameters)
    data = Forecasts(torch, arguments.file, statistics)
    ours = xarray.open_dataset(arguments.starts)
    starts, grid = ours.time.values, tuple(data.place.shape[:2])
    with torch.inference_mode():
        data.run(starts[: arguments.batch], 1, lambda x: mixer(torch, x, parameters, grid))
        begin = time.perf_counter()
        parts = [
            data.run(starts[i : i + arguments.batch], arguments.steps, lambda x: mixer(torch, x, parameters, grid))
            for i in range(0, len(starts), arguments.batch)
        ]
        forecasts = np.concatenate(parts)
        write(data, forecasts, starts, arguments.steps, arguments.output)
    seconds = time.perf_counter() - begin
    print(
        json.dumps(
            {
                "benchmark": "torch_forecast",
                "torch_version": torch.__version__,
                "seconds": seconds,
                "steps_per_second": len(starts) * arguments.steps / seconds,
                "largest_difference": float(np.abs(forecasts - ours.t2m.values).max()),
                "threads": torch.get_num_threads(),
            }
        )
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("file", "parameters", "starts", "output"):
        parser.add_argument(name)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    run(parser.parse_args())


if __name__ == "__main__":
    main()
