"""Writes tests/io/fixtures/solar.json: where the sun stands by PyEphem (VSOP87), without refraction.

    python3 tests/io/make_solar_fixture.py

Needs ephem. Each row is a time in UTC, latitude and longitude in degrees, the cosine of the zenith angle seen from
there, and the distance of the sun in astronomical units.
"""
import json
import math
import pathlib
import random

import ephem

random.seed(3)
rows = []
for _ in range(200):
    year, month, day = random.randint(1952, 2048), random.randint(1, 12), random.randint(1, 28)
    hour, minute = random.randint(0, 23), random.choice([0, 0, 0, 30])
    place = ephem.Observer()
    place.pressure = 0
    place.elevation = 0
    latitude, longitude = round(random.uniform(-90, 90), 2), round(random.uniform(-180, 360), 2)
    place.lat, place.lon = math.radians(latitude), math.radians(longitude)
    place.date = f"{year}/{month}/{day} {hour}:{minute}:00"
    sun = ephem.Sun(place)
    rows.append([f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}", latitude, longitude,
                 round(math.sin(float(sun.alt)), 9), round(float(sun.earth_distance), 9)])
path = pathlib.Path(__file__).parent / "fixtures/solar.json"
path.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
