#!/usr/bin/env python3
"""Writes small stores by zarr-python 3 and xarray: fixtures/zarr2, zarr3, xarray.zarr, anemoi2.zarr, anemoi3.zarr.

Each array x[a, b, c] of the first two holds 500 + 100 a + 10 b + c + 0.5 if it is of floats, else without the
half. Chunk 1.0.1 of `missing` is not there. Run with zarr >= 3 and xarray: make_zarr_fixtures.py fixtures
"""
import pathlib
import shutil
import sys

import numpy as np
import xarray as xr
import zarr
from zarr.codecs import (BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, ShardingCodec, TransposeCodec,
                         ZstdCodec)

SHAPE, CHUNKS = (3, 4, 7), (2, 4, 4)


def values(dtype):
    a, b, c = np.indices(SHAPE)
    return (500 + 100 * a + 10 * b + c + (0.5 if np.dtype(dtype).kind == "f" else 0)).astype(dtype)


def add(group, name, dtype="f4", **options):
    array = group.create_array(name, shape=SHAPE, dtype=dtype, chunks=options.pop("chunks", CHUNKS), **options)
    array[:] = values(dtype)
    return array


def format3(path):
    group = zarr.create_group(path, zarr_format=3)
    add(group, "plain", compressors=None)
    add(group, "big", "f8", serializer=BytesCodec(endian="big"), compressors=None)
    add(group, "gzip", "i2", compressors=GzipCodec(level=5))
    add(group, "zstd", "f8", compressors=ZstdCodec(level=3))
    add(group, "blosc", "i4", compressors=BloscCodec(cname="lz4", shuffle="shuffle"))
    add(group, "checked", "u2", compressors=[ZstdCodec(level=3), Crc32cCodec()])
    add(group, "dots", compressors=None, chunk_key_encoding={"name": "default", "separator": "."})
    add(group, "old_names", "i8", compressors=GzipCodec(),
        chunk_key_encoding={"name": "v2", "separator": "."})
    add(group, "shards", "f4", chunks=(1, 2, 4), shards=(2, 4, 8), compressors=ZstdCodec())
    add(group, "missing_in_shard", "f4", chunks=(1, 2, 4), shards=(2, 4, 8), compressors=ZstdCodec(),
        fill_value=-1)[2, :, 4:] = -1
    codecs = [ShardingCodec(chunk_shape=(2, 2, 4), codecs=[BytesCodec(endian="big"), GzipCodec()],
                            index_codecs=[BytesCodec()], index_location="start")]
    start = zarr.create(store=group.store, path="index_first", shape=SHAPE, dtype="i2", chunks=(2, 4, 8),
                        codecs=codecs, zarr_format=3, overwrite=True)
    start[:] = values("i2")
    transposed = zarr.create(store=group.store, path="transposed", shape=SHAPE, dtype="i2", chunks=CHUNKS,
                             codecs=[TransposeCodec(order=(2, 1, 0)), BytesCodec()], zarr_format=3)
    transposed[:] = values("i2")
    missing = add(group, "missing", compressors=None, fill_value=float("nan"), attributes={"units": "K"},
                  dimension_names=["time", "latitude", "longitude"])
    missing[2:, :, 4:] = np.nan
    group.create_array("surface/inner", shape=(), dtype="f8", fill_value=0)[...] = 2.5


def format2(path):
    group = zarr.create_group(path, zarr_format=2)
    add(group, "plain", compressors=None)
    add(group, "big", ">f8", compressors=None)
    add(group, "zstd", "i2", compressors="auto")


def of_xarray(path):
    time = np.datetime64("2020-01-01", "ns") + np.arange(4) * np.timedelta64(6, "h")
    data = 280 + np.arange(4 * 3 * 6, dtype="f4").reshape(4, 3, 6)
    data[1, 2, 3] = np.nan
    t2m = xr.DataArray(data, dims=["time", "latitude", "longitude"], attrs={"units": "K"})
    coordinates = {"time": time, "latitude": [50.0, 40.0, 30.0], "longitude": np.arange(6) * 2.5}
    dataset = xr.Dataset({"t2m": t2m}, coords=coordinates)
    dataset["latitude"].attrs["units"] = "degrees_north"
    dataset["longitude"].attrs["units"] = "degrees_east"
    packed = {"dtype": "f4", "_FillValue": np.float32(-9999.0), "chunks": (2, 3, 6)}
    dataset.to_zarr(path, zarr_format=3, consolidated=True, encoding={"t2m": packed})


def of_anemoi(path, zarr_format, regular):
    """As anemoi-datasets' create/fields/init.py writes it; values are 1000 t + 100 v + 10 row + column."""
    rows, columns, variables = 3, 5, ["2t", "t_850", "lsm"]
    group = zarr.create_group(path, zarr_format=zarr_format)
    latitudes, longitudes = np.meshgrid([60.0, 40.0, 20.0], np.arange(5) * 10.0, indexing="ij")
    if not regular:
        latitudes = latitudes + 0.01 * longitudes
    t, v, e, c = np.indices((4, len(variables), 1, rows * columns))
    data = (1000 * t + 100 * v + 10 * (c // columns) + c % columns).astype("f4")
    dates = np.datetime64("2020-01-01", "s") + np.arange(4) * np.timedelta64(6, "h")

    def put(name, array, dimensions, chunks, **options):
        names = {"dimension_names": dimensions} if zarr_format == 3 else {}
        made = group.create_array(name, shape=array.shape, dtype=array.dtype, chunks=chunks, **names, **options)
        made[:] = array
        if zarr_format == 2:
            made.attrs["_ARRAY_DIMENSIONS"] = list(dimensions)

    cells = rows * columns if regular else 7
    put("data", data, ("time", "variable", "ensemble", "cell"), (1, 3, 1, cells), fill_value=np.nan)
    put("dates", dates, ("time",), (4,))
    put("latitudes", latitudes.ravel(), ("cell",), (8,))
    put("longitudes", longitudes.ravel(), ("cell",), (8,))
    put("mean", data.mean(axis=(0, 2, 3)), ("variable",), (3,))
    group.attrs.update({"variables": variables, "field_shape": [rows, columns], "flatten_grid": True,
                        "ensemble_dimension": 1, "missing_dates": [], "frequency": "6h", "version": "0.30"})


def main():
    folder = pathlib.Path(sys.argv[1])
    writers = [("zarr2", format2), ("zarr3", format3), ("xarray.zarr", of_xarray),
               ("anemoi2.zarr", lambda path: of_anemoi(path, 2, True)),
               ("anemoi3.zarr", lambda path: of_anemoi(path, 3, False))]
    for name, write in writers:
        shutil.rmtree(folder / name, ignore_errors=True)
        write(str(folder / name))


if __name__ == "__main__":
    main()
