"""The command `import mqsim`: configurations of other simulators as stack files.

For: reading their files, writing ours, showing what was not mapped. Must never know: how they are
mapped.
"""

from __future__ import annotations

import os
from pathlib import Path

from cyclopts import App

from cachewright import _native, targets, words
from cachewright.cli import options, output

app = App(name="import", help="Make stack files from other simulators' configurations.")


@app.command
def mqsim(
    config: Path,
    workload: Path | None = None,
    *,
    out: Path = Path(),
    force: options.Force = False,
) -> None:
    """Make a stack file from each scenario of MQSim's configuration.

    Every tag is mapped or listed: in the stack file as a comment, and as a note here. Paths of
    traces are relative to the folder of the workload, else to the current one, as in MQSim.

    Parameters
    ----------
    config
        The configuration of the drive (`ssdconfig.xml`).
    workload
        The scenarios (`workload.xml`); without them, a stack file without tenants.
    out
        Folder to write to.
    force
        Replace files that exist.

    """
    files = [(str(path), _text(path)) for path in (config, workload) if path is not None]
    places = {}
    if workload is not None:
        traces = _native.mqsim_traces(files[1])
        places = {trace: _place(trace, workload.parent, out) for trace in traces}
    scenarios = _native.import_mqsim(files[0], files[1] if len(files) > 1 else None, places)
    texts: dict[Path, str] = {}
    for name, stack, synth_name, synth, _ in scenarios:
        texts[out / f"{name}.toml"] = stack
        if synth is not None:
            texts[out / synth_name] = synth
    sources = [path for path in (config, workload) if path is not None]
    targets.check_all(texts, sources, overwrite=force, how=targets.FORCE)
    for path, text in texts.items():
        targets.write_whole(path, text)
    for name, _, _, _, notes in scenarios:
        for note in notes:
            output.note(f"{name}: {note}")
        output.say(f"{out / name}.toml: {words.counted(len(notes), 'note')}")


def _place(trace: str, folder: Path, out: Path) -> tuple[str, str]:
    """Return the path of a trace for a stack file in `out`, and what is to be said of it.

    Relative paths are looked up in the workload's folder, then in the current one.
    """
    given = Path(trace)
    if not given.exists() and not (folder / given).exists():
        given = Path(trace.replace("\\", "/"))
    if given.is_absolute():
        return str(given), "" if given.exists() else "found no such file"
    beside = folder / given
    note, found = "", beside
    if not beside.exists():
        note = f"found no such file in {folder.resolve()}"
        if given.exists():
            note, found = f"{note}; taken from the current folder, as MQSim does", given
    return Path(os.path.relpath(found.resolve(), out.resolve())).as_posix(), note


def _text(path: Path) -> str:
    """Return the text of a file. Errors: `SpecError` when there is none or it is no UTF-8."""
    expected = "expected a file of MQSim's (XML)"
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise _native.SpecError(f"{path}: {words.reason(error)}; {expected}") from None
    except UnicodeDecodeError:
        raise _native.SpecError(f"{path}: found bytes that are no UTF-8, {expected}") from None
