"""What commands gave: answers with their frames, which can be read back, drawn and reported.

Units: bytes, blocks, nanoseconds, ratios in 0..1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cachewright import documents, words
from cachewright.answers import AmplificationAnswer, Case, CurvesAnswer, RunAnswer
from cachewright.documents import AnswerFrames, table, values
from cachewright.tables.amplification import AmplificationFrames
from cachewright.types import PathLike

if TYPE_CHECKING:
    import polars as pl
    from _typeshed import DataclassInstance

RESULT_FILE = "result.json"
CURVES_FILE = "mrc.json"
AMPLIFICATION_FILE = "wa.json"
ALL_TENANTS = 0xFFFF_FFFF
ALL = "all"
SERIES_FILE = "series.parquet"
_SERIES = ("case", "window", "time_ns", "tenant", "accesses", "hits")
_SERIES_BLOCKS = ("occupancy_blocks", "quota_blocks")
_ROOMS = ("own_blocks", "common_blocks", "elsewhere_blocks")
# By the numbers in the series: what a tenant holds beside what the division gives it.
STATES = ("none", "supply", "demand", "stable")


@dataclass(frozen=True)
class RunFrames(AnswerFrames[RunAnswer]):
    """The document of a run (`result.json`), and its frames."""

    @property
    def name(self) -> str:
        """The stack's name."""
        return self.answer.name

    @property
    def settings(self) -> dict[str, Any]:
        """The stack in full, with every default resolved."""
        return dict(self.answer.spec)

    @property
    def varied(self) -> list[str]:
        """The dotted keys that differ between cases."""
        return list(self.answer.varied)

    @cached_property
    def cases(self) -> pl.DataFrame:
        """One row per case: `case`, its settings by dotted key, capacity and all counts.

        A drive under the cache has its numbers as `flash_user_pages` and so on.
        """
        rows = [
            {**case_keys(case), **capacity(case), **values(case.total), **flash(case)}
            for case in self.answer.cases
        ]
        return documents.frame(rows)

    @cached_property
    def tenants(self) -> pl.DataFrame:
        """One row per case and tenant: the case's settings, `tenant`, all counts, quota."""
        rows = [
            {**case_keys(case), "tenant": tenant.name, **without_name(tenant)}
            for case in self.answer.cases
            for tenant in case.tenants
        ]
        return documents.frame(rows)

    @cached_property
    def timing(self) -> pl.DataFrame:
        """One row per case and tenant (and `all`) on devices: response times, where time went.

        Columns: the case's settings, `tenant`, `requests`, `mean_ns` and percentiles, `reads`,
        `read_mean_ns`, `read_p99_ns` and the same of writes, throughput, `slowdown` where tenants
        ran alone too, and nanoseconds per part of the mean response.
        """
        from cachewright.tables import timing

        rows = [
            {**case_keys(case), "tenant": line.name, **timing.flat(line)}
            for case in self.answer.cases
            if case.timing
            for line in timing.lines(case)
        ]
        return documents.frame(rows)

    @cached_property
    def workload(self) -> pl.DataFrame:
        """One row per tenant: requests by kind, bytes, distinct blocks, span, skipped records."""
        rows = [
            {**values(tenant), "skipped_examples": "\n".join(tenant.skipped_examples)}
            for tenant in self.answer.tenants
        ]
        return documents.frame(rows)

    @cached_property
    def curves(self) -> pl.DataFrame:
        """Exact LRU miss-ratio curves: `tenant` (or `all`), `size_blocks`, `miss_ratio`."""
        import polars as pl

        rows = [
            (curve.tenant, size, miss)
            for curve in self.answer.curves
            for size, miss in curve.points
        ]
        schema = {"tenant": pl.String, "size_blocks": pl.UInt64, "miss_ratio": pl.Float64}
        return pl.DataFrame(rows, schema=schema, orient="row")

    @cached_property
    def series(self) -> pl.DataFrame:
        """Counts per window of time, case and tenant.

        Columns: `case`, `window`, `time_ns` (its end), `tenant`, `accesses`, `hits`, `hit_ratio`
        (null in an idle window), `occupancy_blocks`, `quota_blocks`, `state` (`supply`, `demand`,
        `stable`; `none` without a quota of its own).
        """
        import polars as pl

        names = [tenant.name for tenant in self.answer.tenants]
        codes = [*range(len(names)), ALL_TENANTS]
        frame = self._series_rows()
        return frame.with_columns(
            pl.col("tenant").replace_strict(codes, [*names, "all"], return_dtype=pl.String),
            pl.col("state").replace_strict(range(len(STATES)), STATES, return_dtype=pl.String),
            hit_ratio=pl.when(pl.col("accesses") > 0).then(pl.col("hits") / pl.col("accesses")),
        ).select(*_SERIES, "hit_ratio", *_SERIES_BLOCKS, "state")

    @cached_property
    def throughput(self) -> pl.DataFrame:
        """What was answered per window of `replay.throughput_window`; no rows without it.

        Columns: `case`, `window`, `time_ns` (its end), `tenant`, `requests`, `bytes`.
        """
        rows = [
            (case.case, window, (window + 1) * found.window_ns, tenant.name, *counted)
            for case in self.answer.cases
            if (found := case.throughput or (case.timing and case.timing.throughput))
            for tenant in found.tenants
            for window, counted in enumerate(tenant.series)
        ]
        return _windows(rows, ("requests", "bytes"))

    @cached_property
    def rooms(self) -> pl.DataFrame:
        """Where tenants' blocks lay at the end of each window; no rows where all lie anywhere.

        Columns: `case`, `window`, `time_ns` (its end), `tenant`, `own_blocks` (in channels that it
        has to itself), `common_blocks`, `elsewhere_blocks`.
        """
        rows = [
            (
                case.case,
                window,
                held.time_ns,
                tenant.name,
                *(held.own_blocks[at], held.common_blocks[at], held.elsewhere_blocks[at]),
            )
            for case in self.answer.cases
            if case.timing and (found := case.timing.rooms)
            for at, tenant in enumerate(found.tenants)
            for window, held in enumerate(found.windows)
        ]
        return _windows(rows, _ROOMS)

    def _series_rows(self) -> pl.DataFrame:
        import polars as pl

        names = (*_SERIES, *_SERIES_BLOCKS, "state")
        if self.answer.series is not None and self.path is not None:
            return documents.parquet(self.path / SERIES_FILE, names)
        kinds = dict.fromkeys(("case", "window", "tenant", "state"), pl.UInt32)
        schema = {name: kinds.get(name, pl.UInt64) for name in names}
        return pl.DataFrame(self.answer.series_rows or (), schema=schema, orient="row")

    def chart(self, name: str | None = None) -> Any:
        """Return a figure of the report as a chart of Altair: the first, or that of a name.

        Errors: `SpecError` for a name that is none, and where there is nothing to draw.
        """
        from cachewright.report import notebook, run

        return notebook.chart(run.figures(self), name)

    def to_pandas(self) -> Any:
        """Return `cases` as a frame of pandas. Errors: `SpecError` where pandas is absent."""
        return documents.to_pandas(self.cases)

    def _repr_html_(self) -> str:
        from cachewright.report import notebook

        return notebook.of_run(self)

    def best(self) -> Case:
        """Return the best case: the smallest cache that meets all goals, else the most hits."""
        from cachewright.tables import summary

        return summary.best_case(self.answer)

    def __repr__(self) -> str:
        cases = self.answer.cases
        top = f", best hit ratio {words.ratio(self.best().total.hit_ratio)}" if cases else ""
        return f"{type(self).__name__}({self.name!r}, {words.counted(len(cases), 'case')}{top})"


@dataclass(frozen=True)
class CurveFrames(AnswerFrames[CurvesAnswer]):
    """Miss-ratio curves per tenant and policy (`mrc.json`), all on one grid of sizes."""

    @property
    def notes(self) -> list[str]:
        """What to know of the curves, a sentence for many of them."""
        return list(self.answer.notes)

    @cached_property
    def policies(self) -> list[str]:
        """The policies, in the order asked for."""
        return list(dict.fromkeys(curve.policy for curve in self.answer.curves))

    def frame(self) -> pl.DataFrame:
        """Return the curves side by side: a row per tenant, window and size.

        Columns: `tenant`, `window` (null for the whole trace), `size_blocks`, `size_bytes`, and the
        miss ratio of each policy under its name (null where a sample has no say).
        """
        import polars as pl

        block = self.answer.block_bytes
        found: dict[tuple[str, int | None], dict[int, dict[str, float]]] = {}
        for curve in self.answer.curves:
            sizes = found.setdefault((curve.tenant, curve.window), {})
            for size, miss, _, _ in curve.points:
                sizes.setdefault(size, {})[curve.policy] = miss
        rows = [
            (tenant, window, size, size * block, *(misses.get(name) for name in self.policies))
            for (tenant, window), sizes in found.items()
            for size, misses in sorted(sizes.items())
        ]
        blocks = {"size_blocks": pl.UInt64, "size_bytes": pl.UInt64}
        schema = {"tenant": pl.String, "window": pl.UInt32, **blocks}
        schema |= dict.fromkeys(self.policies, pl.Float64)
        return pl.DataFrame(rows, schema=schema, orient="row")

    @cached_property
    def points(self) -> pl.DataFrame:
        """One row per point of every curve.

        Columns: `tenant`, `policy`, `window`, `method`, `size_blocks`, `size_bytes`,
        `miss_ratio` and its confidence interval `low`..`high` (null when exact).
        """
        block = self.answer.block_bytes
        rows = [
            {
                "tenant": curve.tenant,
                "policy": curve.policy,
                "window": curve.window,
                "method": curve.method,
                "size_blocks": size,
                "size_bytes": size * block,
                "miss_ratio": miss,
                "low": low,
                "high": high,
            }
            for curve in self.answer.curves
            for size, miss, low, high in curve.points
        ]
        return documents.frame(rows)

    @cached_property
    def latency(self) -> pl.DataFrame:
        """Response times by cache size; empty unless asked for.

        Columns: `tenant`, `policy`, `size_blocks`, `size_bytes`, `hit_ratio`, `requests`,
        `mean_ns` and percentiles, as in a result's `timing`. Size 0 is the cache switched off.
        """
        from cachewright.tables import timing

        block = self.answer.block_bytes
        rows = [
            {
                "tenant": curve.tenant,
                "policy": curve.policy,
                "size_blocks": point.size_blocks,
                "size_bytes": point.size_blocks * block,
                "hit_ratio": point.hit_ratio,
                "requests": point.requests,
                **timing.percentiles(point),
            }
            for curve in self.answer.latency or ()
            for point in curve.points
        ]
        return documents.frame(rows)

    @cached_property
    def verify(self) -> pl.DataFrame:
        """Curves against exact simulation; empty unless asked for.

        Columns: `tenant`, `policy`, `size_blocks`, `curve`, `exact`, `error`.
        """
        return documents.frame([values(one) for one in self.answer.verify])

    def chart(self, name: str | None = None) -> Any:
        """Return a figure of the curves as a chart of Altair: the first, or that of a name.

        Errors: `SpecError` for a name that is none, and where there is nothing to draw.
        """
        from cachewright.report import curves, notebook

        return notebook.chart(curves.figures(self.answer), name)

    def to_pandas(self) -> Any:
        """Return `frame` as a frame of pandas. Errors: `SpecError` where pandas is absent."""
        return documents.to_pandas(self.frame())

    def _repr_html_(self) -> str:
        from cachewright.report import notebook

        return notebook.of_curves(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.answer.name!r}, {len(self.answer.curves)} curves)"


def case_keys(case: Case) -> dict[str, Any]:
    """Return a case's number and its settings by dotted key, as text."""
    settings = {key: words.setting(item) for key, item in case.settings.items()}
    return {"case": case.case, **settings}


def capacity(case: Case) -> dict[str, Any]:
    """Return the size of a case's cache in blocks and bytes."""
    return {
        "capacity_blocks": case.capacity_blocks,
        "block_bytes": case.block_bytes,
        "capacity_bytes": case.capacity_blocks * case.block_bytes,
    }


def flash(case: Case) -> dict[str, Any]:
    """Return the numbers of the drive under a case's cache; empty without one."""
    found = values(case.flash) if case.flash else {}
    return {f"flash_{k}": v for k, v in found.items() if isinstance(v, int | float)}


def without_name(tenant: DataclassInstance) -> dict[str, Any]:
    """Return a tenant's values but for its name; tables inside as tables."""
    return {key: item for key, item in table(tenant).items() if key != "name"}


def _windows(rows: Sequence[tuple[Any, ...]], counts: Sequence[str]) -> pl.DataFrame:
    """Return counts by case, window and tenant, in the order of a result folder's files."""
    import polars as pl

    known = {"case": pl.UInt32, "window": pl.UInt32, "time_ns": pl.UInt64, "tenant": pl.String}
    schema = {**known, **dict.fromkeys(counts, pl.UInt64)}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    return frame.sort("case", "window", maintain_order=True)


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

    def report(
        self, path: PathLike, figures: Sequence[str] = (), *, rank_by: str | None = None
    ) -> Path:
        """Write a self-contained HTML report to `path` and return it.

        `figures` names formats (`svg`, `png`, `pdf`) in which every figure is also written to a
        folder `figures` beside the report. `rank_by` is what is best: `hits`, `mean`, `p99`,
        `write-amplification`, `flash-writes`, `slowdown` or `goals`; by default what the stack is
        about. Errors: `SpecError` for what no case has.
        """
        from cachewright.report import write_report

        return write_report(self, Path(path), figures, rank_by=rank_by)


@dataclass(frozen=True, repr=False)
class Curves(CurveFrames):
    """What `mrc` returns: miss-ratio curves per tenant and policy, all on one grid of sizes."""

    @staticmethod
    def load(path: PathLike) -> Curves:
        """Read a result folder back. Errors: `SpecError` when there are no readable curves."""
        file = Path(path) / CURVES_FILE
        return Curves(documents.read(CurvesAnswer, file, "a folder written by `mrc`"), file.parent)

    def figure(self, path: PathLike, *, width: str | None = None) -> Path:
        """Draw the miss ratios by cache size to `path` (`.svg`, `.png` or `.pdf`).

        `width` is `column`, `middle`, `page` or millimetres (`120mm`); without it the figure is as
        large as a slide. Errors: `RunError` when the file is of another kind or cannot be written,
        `SpecError` for a width that no page has.
        """
        from cachewright.report import write_miss_ratio_figure
        from cachewright.report.figure import PrintStyle

        return write_miss_ratio_figure(self, Path(path), PrintStyle.of(width))

    def report(self, path: PathLike, figures: Sequence[str] = ()) -> Path:
        """Write a self-contained HTML report to `path` and return it; `figures` as of `Result`."""
        from cachewright.report import write_curves_report

        return write_curves_report(self, Path(path), figures)

    def latency_figure(self, path: PathLike, *, width: str | None = None) -> Path:
        """Draw the response times by cache size to `path` (`.svg`, `.png` or `.pdf`).

        `width` is as of `figure`. Errors: `RunError` when there are none or the file cannot be
        written, `SpecError` for a width that no page has.
        """
        from cachewright.report import write_latency_figure
        from cachewright.report.figure import PrintStyle

        return write_latency_figure(self, Path(path), PrintStyle.of(width))


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
