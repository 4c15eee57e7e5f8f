"""Make the sample files of Open-Meteo's format, laid out as Open-Meteo publishes them.

``open_meteo/temperature_2m/chunk_N.om``: two consecutive files of hourly temperature over the Alps, 121 hours each, on
a grid whose columns are no multiple of the chunks'; the first file lacks what was not measured. Their times stand only
in their names and in ``open_meteo/static/meta.json``.

Needs omfiles, which writes the format: a development dependency.

Usage: ``python sample_data/make_open_meteo.py [FOLDER]``
"""

import json
import sys
from pathlib import Path

import numpy as np
import omfiles

HERE = Path(__file__).parent
FIRST = 4058  # of the files, which begins on 6 January 2026 at 02:00
STEPS = 121
META = {
    "chunk_time_length": STEPS,
    "temporal_resolution_seconds": 3600,
    "update_interval_seconds": 10800,
    "last_run_initialisation_time": (FIRST + 2) * STEPS * 3600,
    "data_end_time": (FIRST + 2) * STEPS * 3600,
}
LATITUDES = np.linspace(43.5, 49.0, 23)
LONGITUDES = np.linspace(5.0, 15.5, 43)


def temperature(hours: np.ndarray) -> np.ndarray:
    """Temperature in degrees Celsius, on (row, column, hour): colder in the mountains, warmer in the afternoon."""
    rng = np.random.default_rng(2026)
    lat, lon = LATITUDES[:, None, None], LONGITUDES[None, :, None]
    mountains = np.exp(-(((lat - 46.5) / 1.2) ** 2) - ((lon - 10.0) / 4.5) ** 2)
    day = -np.cos(2 * np.pi * (hours - 3 + lon / 15) / 24)
    weather = np.cumsum(rng.normal(0, 0.3, hours.size)) + 2 * np.sin(hours / 40 + lon / 5)
    return 6 - 0.6 * (lat - 43.5) - 12 * mountains + (3 - mountains) * day + weather


def main(folder: Path) -> None:
    hours = np.arange(FIRST * STEPS, (FIRST + 2) * STEPS)
    values = temperature(hours).astype("f4")
    values[3:5, 7:12, 20:60] = np.nan
    (folder / "temperature_2m").mkdir(parents=True, exist_ok=True)
    (folder / "static").mkdir(exist_ok=True)
    (folder / "static" / "meta.json").write_text(json.dumps(META, indent=2) + "\n")
    for number in range(2):
        path = folder / "temperature_2m" / f"chunk_{FIRST + number}.om"
        part = np.ascontiguousarray(values[..., number * STEPS : (number + 1) * STEPS])
        writer = omfiles.OmFileWriter.at_path(str(path))
        chunks = [1, max(6, 3072 // STEPS), STEPS]
        writer.close(
            writer.write_array(
                part, chunks, scale_factor=20.0, compression="pfor_delta_2d_int16", name="temperature_2m"
            )
        )
        print(f"{path.name:14} {path.stat().st_size:>9,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "open_meteo")
