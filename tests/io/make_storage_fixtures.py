"""Writes the files of tests/io/fixtures/storage: one small array in every type and layout on disk.

    python3 tests/io/make_storage_fixtures.py

Needs h5py, netCDF4 and numpy. The numbers are those of value(), which tests/io/files/storage_test.cpp computes
again. Names say how a variable is stored: "f4be_gzip_shuffle".
"""
import itertools
import pathlib

import h5py
import netCDF4
import numpy

HERE = pathlib.Path(__file__).parent / "fixtures" / "storage"
SHAPE = (3, 8, 9)
CHUNKS = (2, 3, 5)
FILL = 77
TYPES = ["u1", "i1"] + [f"{kind}{order}" for kind, order in itertools.product(
    ("u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8"), ("le", "be"))]
FILTERS = {
    "contiguous": {},
    "chunked": {"chunks": CHUNKS},
    "gzip": {"chunks": CHUNKS, "compression": "gzip"},
    "gzip_shuffle": {"chunks": CHUNKS, "compression": "gzip", "shuffle": True},
    "gzip_shuffle_fletcher": {"chunks": CHUNKS, "compression": "gzip", "shuffle": True, "fletcher32": True},
    "fletcher": {"chunks": CHUNKS, "fletcher32": True},
    "lzf": {"chunks": CHUNKS, "compression": "lzf"},
}


def value(kind):
    """Whole numbers that every type holds, halves in floating point."""
    i, j, k = numpy.indices(SHAPE)
    whole = (i * 37 + j * 11 + k * 3) % 101
    return whole if kind[0] == "u" else whole - 50 if kind[0] == "i" else whole * 0.5 - 25


def dtype(name):
    return numpy.dtype({"le": "<", "be": ">"}.get(name[2:], "") + name[:2])


def write_hdf5(path, libver, types):
    with h5py.File(path, "w", libver=libver) as file:
        for name in types:
            layouts = FILTERS if name == "f4le" else ("contiguous", "gzip_shuffle_fletcher")
            for layout in layouts:
                data_set = file.create_dataset(f"{name}_{layout}", SHAPE, dtype(name), **FILTERS[layout])
                data_set[...] = value(name).astype(dtype(name))
        # A filter that a chunk went without, and chunks that were never written.
        gaps = file.create_dataset("gaps", SHAPE, "<f4", chunks=CHUNKS, compression="gzip", shuffle=True,
                                   fillvalue=FILL)
        gaps[0:2, 0:3, 0:5] = value("f4")[0:2, 0:3, 0:5]
        part = value("f4")[0:2, 3:6, 0:5].astype("<f4")
        gaps.id.write_direct_chunk((0, 3, 0), part.tobytes(), filter_mask=3)
        file.create_dataset("never_written", SHAPE, "<f4", fillvalue=FILL)
        file.create_dataset("half", data=value("f4").astype("<f2"))
        file.create_dataset("scalar", data=numpy.float32(FILL))


def write_bools(path):
    """False and true, which h5py stores as names for numbers of one byte."""
    with h5py.File(path, "w", libver="earliest") as file:
        for layout in ("contiguous", "gzip_shuffle_fletcher"):
            file.create_dataset(f"bool_{layout}", data=value("u1") % 2 == 1, **FILTERS[layout])


def write_netcdf(path, version):
    with netCDF4.Dataset(path, "w", format=version) as file:
        file.createDimension("time", None)
        for name, extent in zip("yx", SHAPE[1:]):
            file.createDimension(name, extent)
        kinds = ["i1", "i2", "i4", "f4", "f8"]
        if version not in ("NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET"):
            kinds += ["u1", "u2", "u4", "i8", "u8"]
        records = {kind: file.createVariable(f"{kind}_records", kind, ("time", "y", "x")) for kind in kinds}
        fixed = {kind: file.createVariable(f"{kind}_fixed", kind, ("y", "x")) for kind in kinds}
        for kind in kinds:
            records[kind][:] = value(kind).astype(kind)
            fixed[kind][:] = value(kind)[1].astype(kind)
        if version != "NETCDF4":
            return
        file.createVariable("short", "f4", ("time", "y", "x"), fill_value=FILL)[0] = value("f4")[0]
        # It has the name of a dimension and is no coordinate.
        file.createVariable("x", "f4", ("time", "y", "x"))[:] = value("f4")
        file.createGroup("below").createVariable("f4_records", "f4", ("time", "y", "x"), zlib=True)[:] = value("f4")


def write_sole_record(path):
    """The records of a sole record variable are not padded."""
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("time", None)
        file.createDimension("x", SHAPE[2])
        whole = file.createVariable("i1_sole", "i1", ("time", "x"))
        whole[:] = value("i1")[:, 1].astype("i1")


HERE.mkdir(parents=True, exist_ok=True)
write_hdf5(HERE / "earliest.h5", "earliest", TYPES)
write_hdf5(HERE / "latest.h5", ("v110", "v110"), ["f4le"])
write_bools(HERE / "bools.h5")
for name, version in (("cdf1", "NETCDF3_CLASSIC"), ("cdf2", "NETCDF3_64BIT_OFFSET"),
                      ("cdf5", "NETCDF3_64BIT_DATA"), ("netcdf4", "NETCDF4")):
    write_netcdf(HERE / f"{name}.nc", version)
write_sole_record(HERE / "sole.nc")
