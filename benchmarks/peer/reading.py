"""Reads the samples of benchmarks/reading.cpp as others do: python reading.py FOLDER LAYOUT CUT RANKS RANK SAMPLES READER

READER: h5py, netcdf4, zarr (xarray; the store is written beside the file once, compressed as the file is), loader (torch's DataLoader with two
workers, h5py, normalised). Prints one JSON line; one of {"reader": …, "missing": …} where a package is not there.
"""
import json
import pathlib
import sys
import time

import numpy

FIRST = 3  # batches that are read before the clock starts; no two have a state in common


def piece(shape, channels, cut, ranks, rank):
    """Of a rank, first-remainder: slices of latitude, longitude, channels."""
    parts = []
    for name, extent in zip(("latitude", "longitude", "channels"), (*shape, channels)):
        if name != cut:
            parts.append(slice(0, extent))
            continue
        begin = rank * (extent // ranks) + min(rank, extent % ranks)
        parts.append(slice(begin, begin + extent // ranks + (rank < extent % ranks)))
    return parts


def read_arrays(variables, rows, columns, channels, time_index, into):
    """Into an array [channels, rows, columns] that is there."""
    for i, c in enumerate(range(channels.start, channels.stop)):
        variable = variables[f"v{c}"]
        if hasattr(variable, "read_direct"):  # h5py
            variable.read_direct(into, (time_index, rows, columns), i)
        else:
            into[i] = variable[time_index, rows, columns]


def array_for(rows, columns, channels):
    return numpy.empty([part.stop - part.start for part in (channels, rows, columns)], numpy.float32)


def open_set(reader, folder, layout):
    path = pathlib.Path(folder) / f"{layout}.nc"
    if reader == "netcdf4":
        import netCDF4
        file = netCDF4.Dataset(path)
        file.set_auto_maskandscale(False)
        return file.variables
    if reader == "zarr":
        import numcodecs
        import xarray
        store = path.with_suffix(".zarr")
        if not store.exists():
            part = store.with_suffix(".part")
            data = xarray.open_dataset(path)
            extents = data["v0"].encoding["chunksizes"]
            packed = {"compressors": None}
            if extents:  # as the file is
                packed = {"compressors": numcodecs.Zlib(1), "filters": [numcodecs.Shuffle(4)]}
            for variable in data.variables.values():
                variable.encoding.clear()
            data = data.chunk(dict(zip(data["v0"].dims, extents or (1, *data["v0"].shape[1:]))))
            data.to_zarr(part, mode="w", zarr_format=2, encoding={name: packed for name in data.data_vars})
            part.rename(store)
        data = xarray.open_zarr(store, chunks=None)
        return {name: data[name].variable for name in data.data_vars}
    import h5py
    return dict(h5py.File(path).items())


class Samples:
    """As a data set of torch: opened in each worker."""

    def __init__(self, folder, layout, cut, ranks, rank, count):
        self.arguments, self.count = (folder, layout, cut, ranks, rank), count
        self.file = None

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        folder, layout, cut, ranks, rank = self.arguments
        if self.file is None:
            self.file = open_set("h5py", folder, layout)
            self.part = part_of(self.file, cut, ranks, rank)
        states = []
        for t in (0, 1):
            states.append(array_for(*self.part))
            read_arrays(self.file, *self.part, 2 * i + t, states[-1])
            states[-1] -= numpy.float32(280)
            states[-1] /= numpy.float32(10)
        return states


def part_of(variables, cut, ranks, rank):
    names = [name for name in variables if name.startswith("v")]
    return piece(variables["v0"].shape[1:], len(names), cut, ranks, rank)


def main():
    folder, layout, cut, ranks, rank, samples, reader = sys.argv[1:]
    ranks, rank, samples = int(ranks), int(rank), int(samples)
    variables = open_set("h5py" if reader == "loader" else reader, folder, layout)
    rows, columns, channels = part_of(variables, cut, ranks, rank)
    batches = None
    if reader == "loader":
        import torch.utils.data
        batches = iter(torch.utils.data.DataLoader(Samples(folder, layout, cut, ranks, rank, FIRST + samples),
                                                   batch_size=None, num_workers=2))
    states = [array_for(rows, columns, channels) for _ in (0, 1)]
    for i in range(FIRST + samples):
        if i == FIRST:
            begin = time.perf_counter()
        if reader == "loader":
            next(batches)
            continue
        for t in (0, 1):
            read_arrays(variables, rows, columns, channels, 2 * i + t, states[t])
    seconds = time.perf_counter() - begin
    wanted = 8 * samples
    for extent in (rows, columns, channels):
        wanted *= extent.stop - extent.start
    print(json.dumps({"reader": reader, "layout": layout, "cut": cut, "ranks": ranks,
                      "gigabytes_per_second": wanted / seconds * 1e-9}))


if __name__ == "__main__":
    try:
        main()
    except ImportError as error:
        print(json.dumps({"reader": sys.argv[-1], "missing": str(error)}))
