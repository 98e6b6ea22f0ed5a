"""Writes the small NetCDF files of tests/io/fixtures and what netCDF4 and numpy say that they hold.

    python3 tests/io/make_fixtures.py [era5_t2m_uk_2019-03.nc]

Needs netCDF4 and numpy. All files lie on one grid of 7 x 8 points, latitude from south to north.
"""
import json
import pathlib
import sys

import netCDF4
import numpy

HERE = pathlib.Path(__file__).parent / "fixtures"
LATITUDES = numpy.linspace(50, 53, 7)
LONGITUDES = numpy.linspace(-2, 1.5, 8)
TIMES = 12  # 6-hourly from 2020-02-27T00:00, over the leap day
START_1900 = 1053264  # hours from 1900-01-01 to then
START_1970 = 1582761600
random = numpy.random.default_rng(7)


def smooth(times, mean, amplitude):
    t = numpy.arange(times)[:, None, None]
    wave = numpy.sin(0.7 * t + LATITUDES[None, :, None]) + numpy.cos(0.4 * t - LONGITUDES[None, None, :])
    return mean + amplitude * (wave + 0.1 * random.standard_normal(wave.shape))


def axes(file, names, as_type):
    for name, values, units in zip(names, (LATITUDES, LONGITUDES), ("degrees_north", "degrees_east")):
        file.createDimension(name, len(values))
        variable = file.createVariable(name, as_type, (name,))
        variable.units = units
        variable[:] = values


def packed(path):
    """As the Climate Data Store's legacy NetCDF: int16, 64-bit offset."""
    with netCDF4.Dataset(path, "w", format="NETCDF3_64BIT_OFFSET") as file:
        axes(file, ("latitude", "longitude"), "f4")
        file.createDimension("time", TIMES)
        time = file.createVariable("time", "i4", ("time",))
        time.units, time.calendar = "hours since 1900-01-01 00:00:00.0", "gregorian"
        time[:] = START_1900 + 6 * numpy.arange(TIMES)
        t2m = file.createVariable("t2m", "i2", ("time", "latitude", "longitude"), fill_value=-32767)
        t2m.missing_value = numpy.int16(-32766)
        t2m.scale_factor, t2m.add_offset, t2m.units = 0.00052, 280.125, "K"
        t2m.set_auto_maskandscale(False)
        values = numpy.round((smooth(TIMES, 281, 4) - 280.125) / 0.00052).astype("i2")
        values[3, 2, 5] = -32767
        values[4, 0, 0] = -32766
        t2m[:] = values


def levels(path, first, count):
    """As the Climate Data Store's new NetCDF-4: levels, text coordinates, NaN."""
    with netCDF4.Dataset(path, "w", format="NETCDF4") as file:
        axes(file, ("latitude", "longitude"), "f8")
        file.createDimension("valid_time", count)
        file.createDimension("pressure_level", 3)
        time = file.createVariable("valid_time", "i8", ("valid_time",))
        time.units, time.calendar, time.standard_name = "seconds since 1970-01-01", "proleptic_gregorian", "time"
        time[:] = START_1970 + 6 * 3600 * (first + numpy.arange(count))
        level = file.createVariable("pressure_level", "f8", ("pressure_level",))
        level.units = "hPa"
        level[:] = [1000, 850, 500]
        file.createVariable("number", "i8", ()).long_name = "ensemble member"
        expver = file.createVariable("expver", str, ("valid_time",))
        for i in range(count):
            expver[i] = "0001"
        t = file.createVariable("t", "f4", ("valid_time", "pressure_level", "latitude", "longitude"),
                                fill_value=numpy.nan, zlib=True, chunksizes=(1, 2, 4, 8))
        t.units = "K"
        field = numpy.stack([smooth(TIMES, mean, 3) for mean in (285, 275, 255)], axis=1)
        t[:] = field[first:first + count]


def constants(path):
    """CDF-1; a constant field with a time, and one with longitude before latitude."""
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as file:
        axes(file, ("lat", "lon"), "f4")
        file.createDimension("time", 1)
        time = file.createVariable("time", "i4", ("time",))
        time.units = "hours since 1900-01-01"
        time[:] = 0
        lsm = file.createVariable("lsm", "f4", ("time", "lat", "lon"))
        lsm.units = "1"
        lsm[:] = random.random((1, 7, 8))
        z = file.createVariable("z", "f8", ("lon", "lat"))
        z.units, z.valid_min, z.valid_max = "m2 s-2", 0.0, 900.0
        z[:] = 1000 * random.random((8, 7))


def records(path):
    """CDF-5, an unlimited time in days, unsigned packing, a dimension of one member."""
    with netCDF4.Dataset(path, "w", format="NETCDF3_64BIT_DATA") as file:
        axes(file, ("lat", "lon"), "f8")
        file.createDimension("time", None)
        file.createDimension("member", 1)
        time = file.createVariable("time", "f8", ("time",))
        time.units, time.calendar = "days since 2020-02-27 00:00:00", "proleptic_gregorian"
        tp = file.createVariable("tp", "u2", ("time", "member", "lat", "lon"), fill_value=65535)
        tp.scale_factor, tp.add_offset, tp.units = 1e-4, 0.0, "m"
        for i in range(1, TIMES):  # an accumulation: nothing at the first time
            time[i - 1] = 0.25 * i
            tp[i - 1] = numpy.abs(smooth(1, 0, 0.5))


def plain(values):
    values = numpy.ma.filled(numpy.ma.asarray(values, dtype="f8"), numpy.nan)
    return [None if numpy.isnan(x) else float(x) for x in values.ravel()]


def statistics(series, lead):
    series = numpy.ma.filled(numpy.ma.asarray(series, dtype="f8"), numpy.nan)
    increments = series[lead:] - series[:-lead]
    return {"mean": float(numpy.nanmean(series)), "deviation": float(numpy.nanstd(series)),
            "increment_deviation": float(numpy.nanstd(increments))}


def read(path, name):
    with netCDF4.Dataset(path) as file:
        values = file[name][:]
        return numpy.ma.masked_invalid(numpy.ma.asarray(values, dtype="f8"))


def main():
    HERE.mkdir(exist_ok=True)
    packed(HERE / "packed.nc")
    state = random.bit_generator.state
    levels(HERE / "levels_1.nc", 0, 5)
    random.bit_generator.state = state  # both files are parts of one series
    levels(HERE / "levels_2.nc", 5, TIMES - 5)
    constants(HERE / "static.nc")
    records(HERE / "records.nc")

    t2m = read(HERE / "packed.nc", "t2m")
    t = numpy.ma.concatenate([read(HERE / f"levels_{i}.nc", "t") for i in (1, 2)])
    tp = read(HERE / "records.nc", "tp")[:, 0]
    expected = {
        "numpy": numpy.__version__, "netCDF4": netCDF4.__version__,
        "t2m": plain(t2m), "t_850": plain(t[:, 1]), "t_500": plain(t[:, 2]), "tp": plain(tp),
        "lsm": plain(read(HERE / "static.nc", "lsm")), "z": plain(read(HERE / "static.nc", "z").T),
        # Over 2020-02-27 to 2020-02-28, increments over 6 hours.
        "statistics": {"t2m": statistics(t2m[:8], 1), "t_850": statistics(t[:8, 1], 1),
                       "lsm": statistics(numpy.repeat(read(HERE / "static.nc", "lsm"), 2, axis=0), 1)},
    }
    if len(sys.argv) > 1:
        with netCDF4.Dataset(sys.argv[1]) as file:
            uk = file["t2m"][:24 * 24]
        expected["era5_uk"] = statistics(uk, 6)  # 2019-03-01 to 2019-03-24
        expected["era5_uk_last"] = plain(read(sys.argv[1], "t2m")[743, 32, 40:])
    (HERE / "expected.json").write_text(json.dumps(expected) + "\n")


main()
