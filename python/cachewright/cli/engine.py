"""Options of engines, and commands on every volume of a dataset.

For: `--engine` and its companions; what commands show of a dataset. Must never know: where tasks
run, what a command computes. A command on a dataset exits with 1 when a volume has no answer or a
file cannot be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from cachewright._native import RunError, SpecError, parse_bytes
from cachewright.cli import options, output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cachewright.cli.replay import Job, Wanted
    from cachewright.fleet.datasets.volumes import Dataset
    from cachewright.fleet.job import How, Rates
    from cachewright.fleet.over import Answered, Unread

RESULTS = Path("results")
FAILED_SHOWN = 10
# Volumes of one file beyond which reading it for each of them is said to take long.
MANY = 20
NATURAL = Number(gte=0)


@Parameter(name="*", group="Engine")
@dataclass
class EngineArgs:
    """Where volumes or cases run, each as a task."""

    engine: Literal["local", "ray"] | None = None
    """Run each volume or case as a task: on processes of this machine, or on Ray."""

    workers: Annotated[int, Parameter(validator=NATURAL)] = 0
    """Tasks at once; 0 for one per processor."""

    address: str | None = None
    """Address of a Ray cluster; without it Ray is started in this process."""

    memory: str | None = None
    """Memory that all running tasks together may declare (`16GiB`); all of the machine's by
    default."""

    retries: Annotated[int, Parameter(validator=NATURAL)] = 3
    """How often a task is repeated if its worker was lost."""

    retry_failed: options.On = False
    """Repeat tasks that failed before."""

    def how(self) -> How:
        """Return the same for a job. Errors: `SpecError` for a wrong size."""
        from cachewright.fleet.job import How

        return How(
            self.engine or "local",
            self.workers,
            self.address,
            None if self.memory is None else parse_bytes(self.memory),
            self.retries,
            self.retry_failed,
        )


def is_dataset(source: Path) -> bool:
    """Return whether a source is a folder, a glob, a URL or a manifest."""
    from cachewright.fleet.datasets import files

    return files.is_dataset(str(source))


def is_many(source: Path, engine: EngineArgs | None) -> bool:
    """Return whether a source is taken volume by volume: a dataset, or a trace with an engine.

    Errors: `SpecError` for a stack file with an engine, which is one task.
    """
    from cachewright.stack import is_stack_path

    if is_dataset(source):
        return True
    if engine is None or engine.engine is None:
        return False
    if is_stack_path(source):
        raise SpecError(
            f"--engine: found the stack file {source}, which is one task here; expected a trace or "
            "a dataset"
        )
    return True


def alone(args: object, names: Sequence[str]) -> None:
    """Refuse options that only a single trace or stack has. Errors: `SpecError`.

    Not `--report`: a dataset's page is written in any case.
    """
    given = args if isinstance(args, Mapping) else vars(args)
    for name in names:
        if given[name]:
            raise SpecError(f"--{name}: found a dataset, expected a single trace or a stack file")


def over(
    command: str,
    source: Path,
    out: Path | None,
    arguments: Mapping[str, Any],
    engine: EngineArgs | None,
    trace: options.TraceArgs | None,
    show: options.ShowArgs,
    inputs: Sequence[Path] = (),
    rank_by: str | None = None,
) -> Answered:
    """Run a command on every volume of a dataset, and show what it found, volume by volume.

    Errors: as `fleet.over`; `RunError` when a volume has no answer or a file cannot be read.
    """
    from cachewright import words
    from cachewright.cli.progress import progress
    from cachewright.fleet import over as fleet

    args, read = engine or EngineArgs(), reading(trace)
    # Each command has a folder of its own: answers of another one are not replaced.
    folder = out or RESULTS / f"{_name(source)}-{command.replace('_', '-')}"
    with progress() as on_progress:
        found = fleet.over(
            command,
            str(source),
            folder,
            arguments,
            reading=read,
            how=args.how(),
            volume=None if trace is None else trace.volume,
            inputs=inputs,
            opened=note_large,
            progress=on_progress,
        )
    if show.json:
        output.print_json(list(found.answers()))
    elif show.csv:
        import polars as pl

        output.print_csv(pl.read_parquet(folder / fleet.ROWS).to_dicts())
    else:
        _show_volumes(command, found, rank_by)
        answered = found.volumes - len(found.failed)
        output.say(f"{words.counted(answered, 'volume')}: {sentence(found.rates)}")
        output.say(f"answers: {folder / fleet.ANSWERS}")
        output.say(f"rows: {folder / fleet.ROWS}")
    refuse(found.failed, found.unread)
    return found


def _show_volumes(command: str, found: Answered, rank_by: str | None) -> None:
    """Print the table of volumes, write their page, and say what they show together."""
    from cachewright import words
    from cachewright.report import volumes as page
    from cachewright.tables import volumes

    summed = volumes.of(command, found.named(), rank_by)
    if summed is None:
        return
    output.show(summed.table)
    if summed.table.left_out:
        output.say(f"{words.count(summed.table.left_out)} more are in the files\n")
    output.say("; ".join(filter(None, (summed.sentence, found.unread.sentence()))))
    output.say(f"report: {page.write(command, summed, found.folder)}")


def cases_first(job: Job, wanted: Wanted, engine: EngineArgs) -> Wanted:
    """Run every case of a job as a task; return where `replay` finds them.

    Errors: as `fleet.cases.run_cases`; `SpecError` for `--fresh`.
    """
    from cachewright.cli.progress import progress
    from cachewright.cli.replay import RESULTS, name_of
    from cachewright.fleet.cases import run_cases

    if wanted.fresh:
        raise SpecError("--fresh: found an engine, which goes on; expected a new folder for --out")
    folder = wanted.out or RESULTS / name_of(job)
    with progress() as on_progress:
        run_cases(
            job.stack,
            job.vary,
            folder,
            settings=job.settings,
            how=engine.how(),
            progress=on_progress,
        )
    return wanted._replace(out=folder)


def reading(trace: options.TraceArgs | None) -> Any:
    """Return how every file of a dataset is opened."""
    from cachewright.fleet.datasets.manifest import Reading

    how = (trace or options.TraceArgs()).options()
    return Reading(how.format, how.on_bad_record, dict(how.options))


def sentence(rates: Rates) -> str:
    """Return what tasks took, in words."""
    from cachewright import words

    each = rates.seconds / max(rates.tasks, 1)
    return (
        f"{words.duration(each * 1e9)} of a worker each, at most {words.size(rates.peak_bytes)} "
        "of memory"
    )


def note_large(dataset: Dataset) -> None:
    """Note the files that are read again for each of many volumes."""
    from cachewright import words

    for path, volumes in dataset.read_often(MANY).items():
        output.note(
            f"{path}: {words.count(volumes)} volumes, for each of which the file is read again; "
            "`dataset convert` makes a file of each volume, which is faster"
        )


def unread(failed: Sequence[tuple[str, str]]) -> None:
    """Note files that cannot be read or volumes that failed, with their errors."""
    from cachewright import words

    for name, error in failed[:FAILED_SHOWN]:
        output.note(error if error.startswith(name) else f"{name}: {error}")
    if len(failed) > FAILED_SHOWN:
        output.note(f"and {words.count(len(failed) - FAILED_SHOWN)} more")


def refuse(failed: Sequence[tuple[str, str]], files: Unread | None = None) -> None:
    """List the volumes that failed and the files that cannot be read. Errors: `RunError` if any."""
    from cachewright import words

    reasons = []
    if files is not None:
        unread(files.failed)
        reasons.append(files.sentence())
    if failed:
        unread(failed)
        counted = words.counted(len(failed), "volume")
        reasons.append(f"{counted} without an answer; `--retry-failed` tries them again")
    if said := ", ".join(filter(None, reasons)):
        raise RunError(said)


def _name(source: Path) -> str:
    """Return a name for the results of a dataset."""
    name = source.parent.name if source.name == "manifest.parquet" else source.name
    return name.split(".")[0].replace("*", "") or "dataset"
