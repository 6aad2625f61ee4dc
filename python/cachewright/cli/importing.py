"""The command `import mqsim`: configurations of other simulators as stack files.

For: reading their files, writing ours, showing what was not mapped. Must never know: how they are
mapped.
"""

from __future__ import annotations

from pathlib import Path

from cyclopts import App

from cachewright import _native, targets, words
from cachewright.cli import options, output

app = App(name="import", help="Make stack files of other simulators' configurations.")


@app.command
def mqsim(
    config: Path,
    workload: Path | None = None,
    *,
    out: Path = Path(),
    force: options.Force = False,
) -> None:
    """Make a stack file of each scenario of MQSim's configuration.

    Every tag is mapped or listed: in the stack file as a comment, and as a note here.

    Parameters
    ----------
    config
        The configuration of the drive (`ssdconfig.xml`).
    workload
        The scenarios (`workload.xml`); without them, a stack file without tenants.
    out
        Folder to write to.
    force
        Write over files that exist.

    """
    files = [(str(path), _text(path)) for path in (config, workload) if path is not None]
    scenarios = _native.import_mqsim(files[0], files[1] if len(files) > 1 else None)
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


def _text(path: Path) -> str:
    """Return the text of a file. Errors: `SpecError` when there is none or it is no UTF-8."""
    expected = "expected a file of MQSim's (XML)"
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise _native.SpecError(f"{path}: {words.reason(error)}; {expected}") from None
    except UnicodeDecodeError:
        raise _native.SpecError(f"{path}: found bytes that are no UTF-8, {expected}") from None
