"""Writes tests/io/fixtures/makani.h5, a yearly file as Makani's data_process/annotate_dataset.py leaves it.

    python3 tests/io/make_makani_fixture.py

Needs h5py and numpy. Values are formula() of samples/conventions_test.cpp, of level -1, 0 and 850.
"""
import pathlib

import h5py
import numpy

LATITUDES, LONGITUDES = numpy.linspace(90, -90, 13), numpy.arange(0.0, 360, 15)
CHANNELS = ["u10m", "t2m", "t850"]  # of fixed length 4: the first and the last fill it


def formula(hours, level, latitude, longitude):
    lat, lon = numpy.radians(latitude), numpy.radians(longitude)
    return (250 + 20 * numpy.sin(lat) + 5 * numpy.cos(lon - numpy.radians(7)) + 2 * numpy.sin(3 * lon)
            + 0.125 * hours + level / 64)


hours, levels = numpy.arange(4) * 6.0, numpy.array([-1.0, 0.0, 850.0])
fields = formula(hours[:, None, None, None], levels[None, :, None, None], LATITUDES[:, None], LONGITUDES)
scales = {"timestamp": 1580515200 + 3600 * hours, "lat": LATITUDES.astype("f4"), "lon": LONGITUDES.astype("f4")}
with h5py.File(pathlib.Path(__file__).parent / "fixtures/makani.h5", "w", libver="latest") as file:
    file.create_dataset("fields", data=fields.astype("f4"))
    for name, values in scales.items():
        file.create_dataset(name, data=values)
    file.create_dataset("channel", len(CHANNELS), dtype=h5py.string_dtype(length=4))
    file["channel"][...] = CHANNELS
    for d, name in enumerate(("timestamp", "channel", "lat", "lon")):
        file[name].make_scale(name)
        file["fields"].dims[d].attach_scale(file[name])
    for d, label in enumerate(("Timestamp in UTC time zone", "Channel name", "Latitude in degrees", "Longitude in degrees")):
        file["fields"].dims[d].label = label
