"""The front of the site: a picture of each answer, and an entry for each kind of reader.

For: `write`, which puts it above the README's text. Must never know: how figures are drawn. The
pictures are made from bundled traces while the site is built, by the calls that stand below them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import cachewright
from cachewright import words
from cachewright.report import run as runs
from cachewright.report import workload
from cachewright.report.figure import Figure, PrintStyle
from cachewright.tables import summary
from cachewright.tables import workload as sentences

PICTURES = "assets/front"
WIDTH_MM, FONT_POINTS = 178.0, 9.0
# The drawing in the README says the same in characters.
DRAWING = "```\n  oltp.csv"

READERS = (
    (
        "Storage engineer",
        "Which policy and which size for my volume?",
        (("Look at a first trace", "docs/tutorials/first-trace.md"),
         ("Size a cache", "docs/tutorials/size-a-cache.md")),
    ),
    (
        "Researcher",
        "My policy beside the published ones, on the same traces.",
        (("A policy of your own", "docs/python.md"), ("Papers reproduced", "lab/README.md")),
    ),
    (
        "FTL designer",
        "Latency and write amplification of a drive, by stage.",
        (("Compare lifetime separations", "docs/tutorials/flash.md"),
         ("Devices", "docs/devices.md")),
    ),
    (
        "Operator",
        "Several volumes behind one flash cache, served over NBD.",
        (("A first server", "docs/tutorials/serve.md"), ("Operate it", "docs/operate.md")),
    ),
    (
        "Data scientist",
        "Frames in, frames out, charts in a notebook.",
        (("From Python", "docs/python.md"), ("From other tools", "docs/coming-from.md")),
    ),
    (
        "Fleet owner",
        "Thousands of volumes: what does each need, and on which host?",
        (("Study a fleet", "docs/tutorials/fleet.md"), ("Plan a fleet", "docs/planning.md")),
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """A question, its answer in a sentence, the figure, and the command that gives both."""

    question: str
    sentence: str
    figure: Figure
    command: str


def write(root: Path, pages: Path) -> None:
    """Put the front above the text of the README in `pages`."""
    page = pages / "README.md"
    text = page.read_text(encoding="utf-8")
    title, rest = text.split("\n", 1)
    start = rest.find(DRAWING)
    if start >= 0:
        end = rest.index("```\n", start + 4) + 4
        rest = rest[:start] + rest[end:]
    blocks = rest.strip().split("\n\n")
    # The promise and the questions come first.
    parts = [title, *blocks[:2], _readers(), *_answers(root, pages / PICTURES), *blocks[2:]]
    page.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _readers() -> str:
    """Return the entries as a grid."""
    cards = []
    for name, question, links in READERS:
        listed = " · ".join(f"[{text}]({path})" for text, path in links)
        cards.append(f"-   **{name}**\n\n    {question}\n\n    {listed}\n")
    return '<div class="grid cards" markdown>\n\n' + "\n".join(cards) + "\n</div>"


def _answers(root: Path, folder: Path) -> Sequence[str]:
    folder.mkdir(parents=True, exist_ok=True)
    shown = []
    for answer in (_policies(root), *_workload(root), _devices(root)):
        path = folder / f"{answer.figure.name}.svg"
        answer.figure.save(path, PrintStyle(WIDTH_MM, FONT_POINTS))
        shown.append(
            f"## {answer.question}\n\n{answer.sentence}\n\n"
            f"![{answer.figure.caption}]({PICTURES}/{path.name}){{ .figure }}\n\n"
            f"```\n{answer.command}\n```"
        )
    return shown


def _policies(root: Path) -> Answer:
    sizes = ["32MiB", "64MiB", "128MiB", "256MiB", "512MiB"]
    policies = ["lru", "arc", "s3-fifo", "lirs", "duel-x", "belady-bypass"]
    settings = {"policy": policies, "capacity": sizes}
    trace = root / "data" / "oltp.csv.zst"
    result = cachewright.compare(trace, settings)
    figure = next(one for one in runs.figures(result) if one.name == "hit-ratio-by-capacity")
    sentence = summary.conclusion(result.answer)
    command = "cachewright compare oltp.csv.zst --policy lru,arc,s3-fifo --capacity 32MiB,256MiB"
    return Answer("Which policy, and how much cache?", sentence, figure, command)


def _workload(root: Path) -> Sequence[Answer]:
    found = cachewright.workload(root / "data" / "mail.csv.zst")
    figures = {one.name: one for one in workload.figures(found)}
    command = "cachewright trace report mail.csv.zst"
    return (
        Answer(
            "What is my volume like?",
            sentences.conclusion(found),
            figures["miss-ratio-curve"],
            command,
        ),
        Answer(
            "When is a block used again?",
            "Re-uses of the same volume by time, and by the cache that would hit.",
            figures["reuse-times-and-distances"],
            command,
        ),
    )


def _devices(root: Path) -> Answer:
    result = cachewright.run(root / "specs" / "tiered.toml")
    figure = next(one for one in runs.figures(result) if one.name == "response-breakdown")
    total = result.answer.cases[0].total
    sentence = (
        f"A cache on an SSD before a disk: {words.duration(total.mean_response_ns)} on average, "
        f"and {words.duration(total.p99_response_ns)} for the slowest hundredth."
    )
    return Answer("Where does the time go?", sentence, figure, "cachewright run specs/tiered.toml")
