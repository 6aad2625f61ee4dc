"""The commands `dataset index|convert`.

For: finding out what many traces hold, and making native Parquet of them. Must never know: any
format, where tasks run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from cachewright import words
from cachewright._native import SpecError, parse_duration
from cachewright.cli import engine as engines
from cachewright.cli import options, output
from cachewright.cli.progress import progress

app = App(name="dataset", help="Index and convert many traces at once.")
Location = Annotated[
    Path, Parameter(help="A folder, a glob, a URL that fsspec opens (`s3://...`), or a trace.")
]


@app.command
def index(
    location: Location,
    /,
    *,
    out: Path | None = None,
    quiet: options.Quiet = False,
    trace: options.TraceArgs | None = None,
    engine: engines.EngineArgs | None = None,
) -> None:
    """Write the manifest of a dataset: what each volume of each file holds.

    An interrupted index is continued; unchanged files are not read again.

    Parameters
    ----------
    out
        The manifest, a Parquet file (`manifest.parquet` in the folder).

    """
    from cachewright.fleet.datasets import manifest

    output.be_quiet(quiet)
    _whole_files(trace)
    with progress() as on_progress:
        found = manifest.index(
            str(location),
            out,
            reading=engines.reading(trace),
            how=(engine or engines.EngineArgs()).how(),
            progress=on_progress,
        )
    good = found.rows.filter(found.rows["error"].is_null())
    requests = int(good["requests"].sum())
    output.say(
        f"{words.counted(found.files, 'file')}, {words.counted(good.height, 'volume')}, "
        f"{words.counted(requests, 'request')}: {engines.sentence(found.rates)}"
    )
    output.say(f"manifest: {found.path}")
    engines.unread(found.failed)


@app.command
def convert(
    location: Location,
    out: Path,
    /,
    *,
    every: str | None = None,
    quiet: options.Quiet = False,
    trace: options.TraceArgs | None = None,
    engine: engines.EngineArgs | None = None,
) -> None:
    """Write every volume of a dataset as native Parquet, with a manifest.

    Parameters
    ----------
    out
        The folder to write; each volume has a folder in it.
    every
        Split each volume by time, one file per period (`24h`).

    """
    from cachewright.fleet.datasets import convert as conversion

    output.be_quiet(quiet)
    _whole_files(trace)
    every_ns = None if every is None else parse_duration(every)
    if every_ns == 0:
        raise SpecError(f"--every: found `{every}`, expected a longer duration")
    with progress() as on_progress:
        found = conversion.convert(
            str(location),
            out,
            every_ns=every_ns,
            reading=engines.reading(trace),
            how=(engine or engines.EngineArgs()).how(),
            progress=on_progress,
        )
    volumes = found.manifest.rows["volume"].n_unique()
    output.say(
        f"{words.counted(volumes, 'volume')} in {words.counted(found.parts, 'file')}: "
        f"{engines.sentence(found.rates)}"
    )
    output.say(f"manifest: {found.manifest.path}")
    engines.unread(found.unread)
    engines.refuse(found.failed)


def _whole_files(trace: options.TraceArgs | None) -> None:
    """Refuse to take one volume. Errors: `SpecError`."""
    if trace is not None and trace.volume is not None:
        raise SpecError("--volume: found a volume, expected all of them in a manifest")
