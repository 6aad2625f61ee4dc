"""What commands gave: documents and frames that can be read back, drawn and reported.

For: `Result`, `Curves` and `Amplification`, built from the documents of the experiment room or read
back from a result folder. Must never know: how to run, how a report looks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cachewright import documents
from cachewright.amplification import AmplificationFrames
from cachewright.answers import AmplificationAnswer, CurvesAnswer, RunAnswer
from cachewright.result_frames import CurveFrames, RunFrames
from cachewright.types import PathLike

RESULT_FILE = "result.json"
CURVES_FILE = "mrc.json"
AMPLIFICATION_FILE = "wa.json"


@dataclass(frozen=True, repr=False)
class Result(RunFrames):
    """What `run`, `compare` and `simulate` return."""

    @staticmethod
    def load(path: PathLike) -> Result:
        """Read a result folder back.

        Errors: `SpecError` when there is no readable result, or one of another version.
        """
        file = Path(path) / RESULT_FILE
        found = documents.read(RunAnswer, file, "a result of `run` or `compare`")
        return Result(found, file.parent)

    def report(self, path: PathLike, figures: Sequence[str] = ()) -> Path:
        """Write a self-contained HTML report to `path` and return it.

        `figures` names formats (`svg`, `png`, `pdf`) in which every figure is also written to a
        folder `figures` beside the report.
        """
        from cachewright.report import write_report

        return write_report(self, Path(path), figures)


@dataclass(frozen=True, repr=False)
class Curves(CurveFrames):
    """What `mrc` returns: miss-ratio curves per tenant and policy, all on one grid of sizes."""

    @staticmethod
    def load(path: PathLike) -> Curves:
        """Read a result folder back. Errors: `SpecError` when there are no readable curves."""
        file = Path(path) / CURVES_FILE
        return Curves(documents.read(CurvesAnswer, file, "a folder written by `mrc`"), file.parent)

    def figure(self, path: PathLike) -> Path:
        """Draw the miss ratios by cache size to `path` (`.svg`, `.png` or `.pdf`).

        Errors: `RunError` when the file is of another kind or cannot be written.
        """
        from cachewright.report.curve_file import write_miss_ratio_figure

        return write_miss_ratio_figure(self, Path(path))

    def report(self, path: PathLike, figures: Sequence[str] = ()) -> Path:
        """Write a self-contained HTML report to `path` and return it; `figures` as of `Result`."""
        from cachewright.report import write_curves_report

        return write_curves_report(self, Path(path), figures)

    def latency_figure(self, path: PathLike) -> Path:
        """Draw the response times by cache size to `path` (`.svg`, `.png` or `.pdf`).

        Errors: `RunError` when there are none or the file cannot be written.
        """
        from cachewright.report import write_latency_figure

        return write_latency_figure(self, Path(path))


@dataclass(frozen=True, repr=False)
class Amplification(AmplificationFrames):
    """What `wa` returns."""

    @staticmethod
    def load(path: PathLike) -> Amplification:
        """Read a result folder back.

        Errors: `SpecError` when there is no readable result, or one of another version.
        """
        file = Path(path) / AMPLIFICATION_FILE
        found = documents.read(AmplificationAnswer, file, "a result of `wa`")
        return Amplification(found, file.parent)

    def report(self, path: PathLike, figures: Sequence[str] = ()) -> Path:
        """Write a self-contained HTML report to `path` and return it.

        `figures` names formats (`svg`, `png`, `pdf`) in which every figure is also written to a
        folder `figures` beside the report.
        """
        from cachewright.report import write_amplification_report

        return write_amplification_report(self, Path(path), figures)
