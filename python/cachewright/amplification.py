"""What `wa` gave: write amplification by scheme, as a document and as polars frames.

For: `Amplification`, and who is best. Must never know: how it is measured, how it is drawn. Units:
pages; `write_amplification` is F/U, `extra_writes` is (F-U)/U, where F are pages programmed to
flash and U pages written by the host. A scheme that reads the future is a bound, not a choice: it
is shown, but never called best.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cachewright import words
from cachewright._native import SpecError

if TYPE_CHECKING:
    import polars as pl

    from cachewright.spec import PathLike

RESULT_FILE = "wa.json"
Case = dict[str, Any]
_NESTED = ("series", "streams", "erases")


@dataclass(frozen=True)
class Amplification:
    """What `wa` returns.

    `document` is the whole result as in `wa.json`; `path` is the result folder, if one was written.
    The frames are made when first asked for.
    """

    document: dict[str, Any]
    path: Path | None = None

    @staticmethod
    def load(path: PathLike) -> Amplification:
        """Read a result folder back. Errors: `SpecError` when there is no readable result."""
        folder = Path(path)
        file = folder / RESULT_FILE
        try:
            return Amplification(json.loads(file.read_text(encoding="utf-8")), folder)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise SpecError(f"{file}: {reason}; expected a folder written by `wa`") from None
        except ValueError as error:
            raise SpecError(f"{file}: {error}, expected a result document (JSON)") from None

    @property
    def name(self) -> str:
        """The stack's name."""
        return str(self.document["name"])

    @property
    def warnings(self) -> list[str]:
        """What to know before believing the numbers."""
        return list(self.document["warnings"])

    @cached_property
    def cases(self) -> pl.DataFrame:
        """One row per case: scheme, counts, both measures, erases as `erases_min` and so on."""
        rows = [
            {
                **{key: item for key, item in case.items() if key not in _NESTED},
                **{f"erases_{key}": item for key, item in case["erases"].items()},
            }
            for case in self.document["cases"]
        ]
        return _frame(rows)

    @cached_property
    def series(self) -> pl.DataFrame:
        """Parts of a drive write: scheme, `drive_writes` (its end), pages, amplification in it."""
        rows = [
            {
                **_scheme(case),
                "drive_writes": end,
                "user_pages": user,
                "flash_pages": flash,
                "write_amplification": flash / user if user else None,
            }
            for case in self.document["cases"]
            for end, user, flash in case["series"]
        ]
        return _frame(rows)

    @cached_property
    def streams(self) -> pl.DataFrame:
        """One row per case and stream: pages from the host and moved pages placed on it."""
        rows = [
            {**_scheme(case), **{key: item for key, item in stream.items() if key != "lifetimes"}}
            for case in self.document["cases"]
            for stream in case["streams"]
        ]
        return _frame(rows)

    @cached_property
    def lifetimes(self) -> pl.DataFrame:
        """Pages per stream and bin of remaining lifetime.

        `most_pages` is the longest lifetime of the bin (a power of two), null for pages that are
        not overwritten any more.
        """
        rows = [
            {
                **_scheme(case),
                "stream": stream["stream"],
                "most_pages": most,
                "user_pages": user,
                "moved_pages": moved,
            }
            for case in self.document["cases"]
            for stream in case["streams"]
            for most, user, moved in stream["lifetimes"]
        ]
        return _frame(rows)

    def best(self) -> Case:
        """Return the case document with the lowest write amplification; bounds do not count."""
        return best_case(self.document["cases"])

    def report(self, path: PathLike, figures: Sequence[str] = ()) -> Path:
        """Write a self-contained HTML report to `path` and return it.

        `figures` names formats (`svg`, `png`, `pdf`) in which every figure is also written to a
        folder `figures` beside the report.
        """
        from cachewright.report import write_amplification_report

        return write_amplification_report(self, Path(path), figures)

    def __repr__(self) -> str:
        best = self.best()
        top = f"best {label(best)}: {words.significant(best['write_amplification'], 4)}"
        return f"Amplification({self.name!r}, {len(self.document['cases'])} cases, {top})"


def best_case(cases: Sequence[Case]) -> Case:
    """Return the case with the fewest flash writes; bounds only when there is nothing else."""
    return min(cases, key=lambda c: (c["bound"], c["write_amplification"], c["case"]))


def by_op(document: dict[str, Any]) -> list[tuple[float, list[Case]]]:
    """Return the cases of each over-provisioning, the fewest flash writes first."""
    found: dict[float, list[Case]] = {}
    for case in sorted(document["cases"], key=lambda c: (c["write_amplification"], c["case"])):
        found.setdefault(case["op"], []).append(case)
    return sorted(found.items())


def label(case: Case) -> str:
    """Return a case's schemes in a few words, a bound told apart."""
    return f"{separation(case)}, {case['reclaim']}"


def separation(case: Case) -> str:
    """Return a case's separation, a bound told apart."""
    return str(case["separation"]) + (" (bound)" if case["bound"] else "")


def drive_sentence(document: dict[str, Any]) -> str:
    """Return the drive in one sentence: size, where that comes from, what was written."""
    size = words.size(document["logical_pages"] * document["page_bytes"])
    origin = "scaled to what is written" if document["scaled"] else "as asked"
    load = f", after a load of {words.count(document['load_pages'])}"
    return (
        f"drive of {size} ({origin}), superblocks of {words.size(document['superblock_bytes'])}, "
        f"{words.count(document['user_pages'])} pages of "
        f"{words.size(document['page_bytes'])} written "
        f"({words.significant(document['drive_writes'])} drive writes"
        f"{', looped' if document['looped'] else ''})"
        f"{load if document['load_pages'] else ''}"
    )


def _scheme(case: Case) -> dict[str, Any]:
    return {key: case[key] for key in ("case", "separation", "reclaim", "op", "bound")}


def _frame(rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    import polars as pl

    return pl.DataFrame(list(rows), infer_schema_length=None)
