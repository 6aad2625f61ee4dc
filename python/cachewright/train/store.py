"""Trained models and their report as a folder.

For: `Trainings`: files by name, `training.json`, `models.toml`. Must never know: how models were
trained.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cachewright import targets
from cachewright._native import SpecError
from cachewright.documents import table, values
from cachewright.stack import toml_value
from cachewright.train.reports import CachingReport, Control, KindsReport, PartitionerReport

if TYPE_CHECKING:
    from cachewright.train.lesson import Learned

REPORT, TABLES = "training.json", "models.toml"
SUFFIX, FLOAT_SUFFIX = ".safetensors", ".f32.safetensors"


@dataclass(frozen=True)
class Trainings:
    """Model files by name, and what is to be said of them (`training.json`)."""

    files: dict[str, bytes]
    report: Any

    @property
    def document(self) -> dict[str, Any]:
        """The report as JSON values."""
        return table(self.report)

    def write(self, folder: Path, report: str = REPORT) -> None:
        """Write all files and the report."""
        for place, content in self.files.items():
            targets.write_whole(folder / place, content)
        text = json.dumps(self.document, indent=2, ensure_ascii=False) + "\n"
        targets.write_whole(folder / report, text)


@dataclass(frozen=True)
class PartitionerTrainings(Trainings):
    """Models of `icache` or `mlcache`."""

    report: PartitionerReport

    def write_tables(self, folder: Path) -> None:
        """Write, for each seed, the tables that tell a stack its tenants' models."""
        tables: dict[Path, str] = {}
        for tenant in self.report.tenants:
            for model in tenant.models:
                path = folder / model.file
                lines = f"[[tenant]]\nname = {toml_value(tenant.name)}\n"
                lines += f"model = {toml_value(path.resolve())}\n"
                updates = [(folder / name).resolve() for name in model.updates or ()]
                texts = ", ".join(toml_value(one) for one in updates)
                lines += f"model_updates = [{texts}]\n\n" if updates else "\n"
                tables[path.parent] = tables.get(path.parent, "") + lines
        for parent, text in tables.items():
            targets.write_whole(parent / TABLES, text)


@dataclass(frozen=True)
class KindsTrainings(Trainings):
    """A model that tells kinds of workloads apart."""

    report: KindsReport


@dataclass(frozen=True)
class CachingTrainings(Trainings):
    """Caching models of a kind of workload."""

    report: CachingReport

    def with_control(self, control: Control) -> CachingTrainings:
        """Return the same with what another learner reached in the report."""
        report = CachingReport(**values(self.report), control=control)
        return CachingTrainings(self.files, report)


def add(files: dict[str, bytes], place: str, learned: Learned) -> None:
    """Take a model's files. Errors: `SpecError` when two tenants' names give one file."""
    if place in files:
        raise SpecError(f"two tenants would both be written to {place}; rename one")
    files[place] = learned.file
    if learned.float_file is not None:
        files[float_name(place)] = learned.float_file


def report_name(kind: str) -> str:
    """Return the name of the report beside the caching models of a kind."""
    return f"{file_name(kind, 1, 1).removesuffix(SUFFIX)}.json"


def float_name(place: str) -> str:
    """Return the name of a model's f32 file."""
    return place.removesuffix(SUFFIX) + FLOAT_SUFFIX


def update_name(place: str, number: int) -> str:
    """Return the file of a model's update, counted from 1."""
    return f"{place.removesuffix(SUFFIX)}.update{number}{SUFFIX}"


def file_name(tenant: str, seed: int, seeds: int) -> str:
    """Return a model's file: the tenant's name, in a folder per seed where there are several."""
    plain = "".join(char if char.isalnum() or char in "-_." else "-" for char in tenant)
    return f"{plain}{SUFFIX}" if seeds == 1 else f"seed{seed}/{plain}{SUFFIX}"
