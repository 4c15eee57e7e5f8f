"""Make the sample files beside this script: the same bytes each time, with the same versions of the libraries.

- ``january.nc`` to ``december.nc``: daily temperature and precipitation over Europe, NetCDF4. Together they hold what
  makes archives hard to join: months of 28, 30 and 31 days in chunks of ten days, so that the last chunk of most is
  padded; a February whose temperature is packed as 16-bit integers; and from July on another compression.
- ``classic.nc``: the first week of the year at two pressure levels, NetCDF3 with two record variables and a packed one.
- ``groups.h5``: the weather stations of a small network, HDF5 with nested groups, many kinds of types and filters.

Usage: ``python sample_data/make_sample_data.py [FOLDER]``
"""

import sys
from calendar import month_name, monthrange
from datetime import date
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np

HERE = Path(__file__).parent
YEAR = 2025
MONTHS = {number: name.lower() for number, name in enumerate(month_name) if name}
LATITUDES = np.arange(72.0, 33.0, -1.0, dtype="f4")
LONGITUDES = np.arange(-12.0, 43.0, 1.0, dtype="f4")
DAYS_A_CHUNK = 10
CELLS = 6  # between two independent values of the noise

PACKING = {"scale_factor": 0.01, "add_offset": 273.15}
PACKED_FILL = -32768

STATIONS = [
    # name, code, latitude and longitude in degrees, elevation in metres
    ("Ísafjörður", "BIIS", 66.06, -23.14, 2.0),
    ("Tromsø", "ENTC", 69.65, 18.96, 100.0),
    ("De Bilt", "EHDB", 52.10, 5.18, 1.9),
    ("Zürich", "LSZH", 47.38, 8.57, 556.0),
    ("Kraków", "EPKK", 50.08, 19.80, 237.0),
    ("Sonnblick", "LOSB", 47.05, 12.96, 3109.0),
    ("Αθήνα", "LGAV", 37.94, 23.94, 94.0),
]
HOURS = 31 * 24
HOURS_A_CHUNK = 7 * 24


def smooth_noise(rng: np.random.Generator, days: int, shape: tuple[int, int]) -> np.ndarray:
    """Weather that lasts a few days and spans some hundred kilometres; mean 0, standard deviation about 1."""
    coarse = rng.standard_normal((days + 4, shape[0] // CELLS + 2, shape[1] // CELLS + 2))
    coarse = (coarse[:-4] + 2 * coarse[1:-3] + 3 * coarse[2:-2] + 2 * coarse[3:-1] + coarse[4:]) / np.sqrt(19)
    rows, columns = np.arange(shape[0]) / CELLS, np.arange(shape[1]) / CELLS
    return interpolate(interpolate(coarse, rows, axis=1), columns, axis=2) * 1.4


def interpolate(values: np.ndarray, positions: np.ndarray, axis: int) -> np.ndarray:
    """Linear interpolation along one axis."""
    below = positions.astype(int)
    weight = (positions - below).reshape([-1 if i == axis else 1 for i in range(values.ndim)])
    return np.take(values, below, axis) * (1 - weight) + np.take(values, below + 1, axis) * weight


def air_temperature(rng: np.random.Generator, first_day: int, days: int) -> np.ndarray:
    """Daily mean temperature at 2 m, in kelvin, on (day, latitude, longitude)."""
    day = np.arange(first_day, first_day + days)[:, None, None]
    lat = LATITUDES[None, :, None].astype("f8")
    lon = LONGITUDES[None, None, :].astype("f8")
    season = -np.cos(2 * np.pi * (day - 20) / 365)
    climate = 300 - 0.52 * (lat - 30) + season * (5 + 0.12 * (lat - 34) + 0.09 * (lon + 12)) - 0.11 * (lon + 12)
    alps = -7 * np.exp(-(((lat - 46.5) / 1.5) ** 2) - ((lon - 10.5) / 4) ** 2)
    wave = 3 * np.sin(2 * np.pi * (lon / 48 - day / 6) + lat / 9)
    return climate + alps + wave + 2 * smooth_noise(rng, days, (lat.size, lon.size))


def precipitation(rng: np.random.Generator, days: int) -> np.ndarray:
    """Daily sum, in millimetres, on (day, latitude, longitude); zero on the many dry days."""
    wet = smooth_noise(rng, days, (LATITUDES.size, LONGITUDES.size)) - 0.6
    return 7 * np.maximum(wet, 0) ** 1.5


def round_to(values: np.ndarray, step: float) -> np.ndarray:
    """Values that deflate well: multiples of a power of two."""
    return (np.round(values / step) * step).astype("f4")


def make_month(path: Path, month: int) -> None:
    first = date(YEAR, month, 1)
    _, days = monthrange(YEAR, month)
    first_day = (first - date(YEAR, 1, 1)).days
    rng = np.random.default_rng(YEAR * 100 + month)
    with netCDF4.Dataset(path, "w", format="NETCDF4") as file:
        file.setncatts(
            {
                "Conventions": "CF-1.11",
                "title": f"Daily weather over Europe, {first:%B %Y}",
                "source": "synthetic: a climate, a travelling wave and smooth noise",
                "history": f"{YEAR}-12-01 made by make_sample_data.py",
                "grid_spacing_degrees": np.float32(1.0),
            }
        )
        make_axes(file, np.arange(first_day, first_day + days))
        temperature = air_temperature(rng, first_day, days)
        storage = {"zlib": True, "shuffle": month < 7, "complevel": 5 if month < 7 else 9}
        make_temperature(file, temperature, storage, packed=month == 2)
        rain = make_field(file, "tp", "f4", storage, fill_value=np.float32(-9999.0))
        rain.setncatts({"long_name": "precipitation", "units": "mm", "cell_methods": "time: sum"})
        rain[:] = round_to(precipitation(rng, days), 1 / 16)


def make_axes(file: netCDF4.Dataset, days: np.ndarray) -> None:
    file.createDimension("time", None)
    file.createDimension("lat", LATITUDES.size)
    file.createDimension("lon", LONGITUDES.size)
    time = file.createVariable("time", "i4", ("time",), chunksizes=(512,))
    time.setncatts(
        {
            "standard_name": "time",
            "units": f"days since {YEAR}-01-01 00:00:00",
            "calendar": "proleptic_gregorian",
            "axis": "T",
        }
    )
    time[:] = days
    make_coordinates(file, LATITUDES, LONGITUDES)


def make_coordinates(file: netCDF4.Dataset, latitudes: np.ndarray, longitudes: np.ndarray) -> None:
    for name, standard_name, units, axis, values in (
        ("lat", "latitude", "degrees_north", "Y", latitudes),
        ("lon", "longitude", "degrees_east", "X", longitudes),
    ):
        variable = file.createVariable(name, "f4", (name,))
        variable.setncatts({"standard_name": standard_name, "units": units, "axis": axis})
        variable[:] = values


def make_temperature(file: netCDF4.Dataset, values: np.ndarray, storage: dict[str, Any], *, packed: bool) -> None:
    variable = make_field(file, "t2m", "i2" if packed else "f4", storage, fill_value=PACKED_FILL if packed else None)
    variable.setncatts({"standard_name": "air_temperature", "long_name": "2 metre temperature", "units": "K"})
    variable.cell_methods = "time: mean"
    if packed:
        variable.setncatts(PACKING)
        variable.set_auto_maskandscale(False)
        packed_values = np.round((values - PACKING["add_offset"]) / PACKING["scale_factor"]).astype("i2")
        packed_values[3:5, 20:24, 30:36] = PACKED_FILL  # a satellite's gap
        variable[:] = packed_values
    else:
        variable[:] = round_to(values, 1 / 32)


def make_field(
    file: netCDF4.Dataset, name: str, dtype: str, storage: dict[str, Any], fill_value: float | None
) -> netCDF4.Variable:
    return file.createVariable(
        name,
        dtype,
        ("time", "lat", "lon"),
        **storage,
        chunksizes=(DAYS_A_CHUNK, LATITUDES.size, LONGITUDES.size),
        fill_value=fill_value,
    )


def make_classic(path: Path) -> None:
    """Write a classic file, whose record variables are interleaved: a record of each, then the next ones."""
    days, every = 7, 3
    rng = np.random.default_rng(YEAR + 1)
    surface = air_temperature(rng, 0, days)[:, ::every, ::every]
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as file:
        file.setncatts(
            {"Conventions": "CF-1.11", "title": f"First week of {YEAR} at two levels", "levels": np.int16(2)}
        )
        for name, size in (("time", None), ("level", 2), ("lat", surface.shape[1]), ("lon", surface.shape[2])):
            file.createDimension(name, size)
        time = file.createVariable("time", "f8", ("time",))
        time.units = f"hours since {YEAR}-01-01 00:00:00"
        time[:] = 24.0 * np.arange(days)
        level = file.createVariable("level", "f4", ("level",))
        level.units = "hPa"
        level[:] = 1000.0, 850.0
        make_coordinates(file, LATITUDES[::every], LONGITUDES[::every])
        air = file.createVariable("ta", "i2", ("time", "level", "lat", "lon"), fill_value=PACKED_FILL)
        air.setncatts({"standard_name": "air_temperature", "units": "K", **PACKING})
        air[:] = np.stack([surface, surface - 9.5], axis=1)


def make_groups(path: Path) -> None:
    rng = np.random.default_rng(YEAR)
    with h5py.File(path, "w", track_order=True) as file:
        file.attrs["title"] = "Hourly observations of a small station network"
        file.attrs["institution"] = np.bytes_("Example Weather Service")
        file.attrs["revision"] = np.int16(7)
        file.attrs["bounding_box"] = np.array([-24.0, 37.0, 25.0, 70.0])
        file.attrs["keywords"] = np.array(["weather", "météo", "Wetter"], dtype=h5py.string_dtype())
        file.attrs["quality_controlled"] = np.bool_(1)
        file.attrs["calibration"] = np.array([[1.0, 0.0], [0.0, 1.0]], dtype=">f4")
        make_stations(file.create_group("stations"))
        make_observations(file.create_group(f"observations/{YEAR}/01"), rng)
        file["latest"] = h5py.SoftLink(f"/observations/{YEAR}/01")


def make_stations(group: h5py.Group) -> None:
    position = np.dtype([("latitude", "<f4"), ("longitude", "<f4")])
    record = np.dtype([("wmo_id", "<i4"), ("code", "S4"), ("position", position), ("elevation", "<f8")])
    rows = [(i * 1000 + 7, code, (lat, lon), elevation) for i, (_, code, lat, lon, elevation) in enumerate(STATIONS, 1)]
    group["records"] = np.array(rows, dtype=record)
    group["records"].attrs["description"] = "one row a station; position in degrees, elevation in metres"
    group.create_dataset("names", data=[row[0] for row in STATIONS], dtype=h5py.string_dtype())
    group["codes"] = np.array([row[1] for row in STATIONS], dtype="S4")
    group["automatic"] = np.array([row[4] < 500 for row in STATIONS])
    group["datum"] = np.float64(6371229.0)
    group["datum"].attrs.update({"long_name": "radius of the Earth", "units": "m"})
    group["remarks"] = h5py.Empty("S80")


def make_observations(group: h5py.Group, rng: np.random.Generator) -> None:
    hour = np.arange(HOURS)[:, None]
    lat = np.array([row[2] for row in STATIONS])
    elevation = np.array([row[4] for row in STATIONS])
    drift = np.cumsum(rng.normal(0, 0.25, (HOURS, len(STATIONS))), axis=0)
    drift -= np.linspace(0, 1, HOURS)[:, None] * drift[-1]
    diurnal = -np.cos(2 * np.pi * (hour - 3) / 24)
    temperature = 26 - 0.48 * lat - 0.0065 * elevation + 2.2 * diurnal + drift
    humidity = np.clip(np.round(78 - 6 * diurnal - 1.5 * drift), 15, 100)
    pressure = 1013.2 * np.exp(-elevation / 8000) + 0.8 * drift + 4 * np.sin(2 * np.pi * hour / 130)
    wind = rng.normal((2.0, 0.5), 3.5, (HOURS, len(STATIONS), 2))

    inflated = {"compression": "gzip", "shuffle": True, "fletcher32": True}
    make_series(group, "temperature", round_to(temperature, 1 / 16), "degC", **inflated)
    make_series(group, "humidity", humidity.astype("u1"), "%", compression="lzf", fillvalue=255)
    make_series(group, "pressure", pressure.astype("f4"), "hPa", scaleoffset=1)
    group.create_dataset("wind", data=np.round(wind, 1).astype(">f4"))  # contiguous, big-endian
    group["wind"].attrs.update({"units": "m s-1", "components": ["eastward", "northward"]})
    make_snow(group)
    group.create_dataset("warnings", (0, 2), "i4", maxshape=(None, 2), chunks=(64, 2))  # none was issued


def make_snow(group: h5py.Group) -> None:
    """Add a series of which only one station reports, and only in the first week: most chunks are never written."""
    shape, chunks = (HOURS, len(STATIONS)), (HOURS_A_CHUNK, 1)
    snow = group.create_dataset("snow_depth", shape, "i2", chunks=chunks, compression="gzip", fillvalue=-1)
    snow[:HOURS_A_CHUNK, 5] = 240 + np.arange(HOURS_A_CHUNK) // 24
    snow.attrs["units"] = "cm"


def make_series(group: h5py.Group, name: str, values: np.ndarray, units: str, **filters: object) -> None:
    """Add an hourly series in chunks of a week, the last of which is padded."""
    chunks = (HOURS_A_CHUNK, values.shape[1])
    dataset = group.create_dataset(name, data=values, chunks=chunks, maxshape=(None, values.shape[1]), **filters)
    dataset.attrs["units"] = units


def main(folder: Path) -> None:
    for month, name in MONTHS.items():
        make_month(folder / f"{name}.nc", month)
    make_classic(folder / "classic.nc")
    make_groups(folder / "groups.h5")
    for path in sorted([*folder.glob("*.nc"), *folder.glob("*.h5")]):
        print(f"{path.name:14} {path.stat().st_size:>9,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
