"""The command `fleet study`.

For: what many volumes are like, and which policy suits how many of them. Must never know: how a
volume is measured, where tasks run.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from cachewright.cli import engine as engines
from cachewright.cli import options, output
from cachewright.cli.parsing import split_values
from cachewright.cli.progress import progress

REPORT_FILE = "report.html"
app = App(name="fleet", help="Study many volumes together.")
Location = Annotated[Path, Parameter(help="A dataset: a folder, a glob, a URL or a manifest.")]


@Parameter(name="*")
@dataclass
class StudyArgs:
    """What is measured of each volume."""

    policy: str = "lru,sieve,s3-fifo,arc"
    """Replacement policies, separated by commas."""

    sizes: str = "0.1%wss,1%wss,10%wss,40%wss"
    """Cache sizes, separated by commas; %wss is a share of each volume's working set."""

    rate: float = 0.05
    """Share of blocks that is sampled; small volumes are sampled more, up to all."""

    close: float = 0.01
    """Policies whose sampled hit ratios differ by less than this are simulated exactly."""

    block: str = "4KiB"
    """Cache block."""

    separation: str = "none,2r,sepbit"
    """Separations of drives, separated by commas; an empty text leaves drives out."""

    op: str = "7%"
    """Over-provisioning of drives."""

    superblock: str = "1MiB"
    """Superblock of drives."""


@app.command
def study(
    location: Location,
    /,
    *,
    out: Path,
    plan: StudyArgs | None = None,
    report: options.On = False,
    show: options.ShowArgs | None = None,
    trace: options.TraceArgs | None = None,
    engine: engines.EngineArgs | None = None,
) -> None:
    """Show distributions over the volumes of a dataset, and on what share each policy wins.

    Each volume is sampled first, and simulated exactly where policies are close.

    Parameters
    ----------
    out
        Folder for study.json, volumes.parquet and hits.parquet.
    report
        Also write report.html into the folder.

    """
    from cachewright.fleet import study as studies
    from cachewright.tables import studied

    shown, args = options.shown(show), plan or StudyArgs()
    separations = split_values(args.separation) if args.separation.strip() else []
    wanted = studies.Plan(
        split_values(args.policy),
        split_values(args.sizes),
        args.rate,
        args.close,
        args.block,
        separations,
        {"op": [args.op], "superblock": args.superblock},
    )
    with progress() as on_progress:
        found = studies.study(
            str(location),
            out,
            wanted,
            reading=engines.reading(trace),
            how=(engine or engines.EngineArgs()).how(),
            opened=engines.note_large,
            progress=on_progress,
        )
    if shown.json:
        output.print_json(found.document)
    elif shown.csv:
        output.print_csv(found.document["wins"])
    else:
        _show(found.document)
        output.conclude(studied.conclusion(found.document))
        output.say()
        output.say(engines.sentence(found.rates))
        output.say(f"result: {out}")
    if report:
        from cachewright.report import fleet

        path = fleet.write(found, out / REPORT_FILE)
        if not shown.is_data:
            output.say(f"report: {path}")
    if not shown.is_data and (trace is None or not trace.given()):
        output.follow(_next_command(location, found.document))
    engines.refuse(found.failed, found.unread)


def _next_command(location: Path, document: dict[str, object]) -> str:
    """Return the comparison, volume by volume, at the size that suits most of them."""
    from cachewright.tables import conclusion, studied

    chosen = studied.advised(document)
    if chosen is None:
        return ""
    policies = ",".join(dict.fromkeys(["lru", chosen.policy]))
    return conclusion.command("compare", location, "--policy", policies, "--capacity", chosen.size)


def _show(document: dict[str, object]) -> None:
    """Print what was studied, the classes, the wins and the distributions."""
    from cachewright.report import fleet

    output.say(fleet.lead(document))
    output.say()
    for table in (fleet.classes(document), fleet.wins(document), fleet.distributions(document)):
        output.show(table)
