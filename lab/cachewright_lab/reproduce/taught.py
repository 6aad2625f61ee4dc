"""What models learn from and the models, each made once and kept below a folder.

For: studies whose schemes predict. Must never know: figures, how models are trained. A workload
replayed alone does not depend on other tenants, so its segments and models serve every mix that it
is in. What is kept has a key of its inputs in its name: another input makes another file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cachewright import _native, api
from cachewright.documents import load
from cachewright.train import ICacheTraining, train_icache, train_mlcache
from cachewright.train.demand import Segments
from cachewright.train.reports import ModelReport, PartitionerReport, TenantReport
from cachewright_lab.reproduce import recut
from cachewright_lab.reproduce.drive_specs import JOINTS, TRAINING, Mix, Setting, Training

if TYPE_CHECKING:
    from cachewright.types import Progress
    from cachewright_lab.reproduce.specs import Workload

REPORT = "training.json"


@dataclass(frozen=True)
class Taught:
    """A model: its file and the report of its training, of one tenant and one seed."""

    path: Path
    tenant: TenantReport

    @property
    def updates(self) -> list[Path]:
        """The models that take over from it while a replay goes on."""
        return [self.path.parent / name for name in self.model.updates or ()]

    @property
    def model(self) -> ModelReport:
        """What is said of the model itself."""
        return self.tenant.models[0]


@dataclass
class Lessons:
    """Segments by setting and workload, and what was trained on them.

    `stack` makes the stack of one workload alone.
    """

    folder: Path
    stack: Callable[[Setting, str], dict[str, Any]]
    workloads: Sequence[Workload]
    training: Training
    found: dict[tuple[Setting, str], Segments] = field(default_factory=dict)

    def basis(self, setting: Setting) -> Setting:
        """Return the setting whose segments serve this one: more granules, the usual interval."""
        steps, granules = self.training.each.steps, self.training.each.granules
        own = granules if granules % setting.granules == 0 else setting.granules
        return replace(setting.usual, steps=steps, granules=own)

    def replayed(self, setting: Setting, workload: str, progress: Progress | None) -> Segments:
        """Return the segments of a basis, from the folder if they are there."""
        known = self.found.get((setting, workload))
        if known is not None:
            return known
        path = self.folder / f"{workload}-{self._key(setting, workload)}.segments.npz"
        if path.is_file():
            segments = recut.read(path, workload)
        else:
            segments = api.segments(
                self.stack(setting, workload),
                granules=setting.granules,
                steps=setting.steps,
                threads=1,
                progress=progress,
            )
            recut.write(segments, path)
        self.found[setting, workload] = segments
        return segments

    def segments(self, setting: Setting, workload: str) -> Segments:
        """Return a workload's segments as a setting cuts them; its basis was replayed before."""
        segments = self.found[self.basis(setting), workload]
        return recut.regrouped(recut.coarser(segments, setting.granules), setting.steps)

    def training_of(self, setting: Setting, seed: int, **own: Any) -> ICacheTraining:
        """Return how a model of a setting is trained."""
        how = {"steps": setting.steps, "granules": setting.granules}
        how |= {} if setting.stride is None else {"stride": setting.stride}
        return replace(self.training.each, **how | setting.of(TRAINING) | own, seed=seed)

    def each(
        self,
        setting: Setting,
        workload: str,
        how: ICacheTraining,
        progress: Progress | None = None,
    ) -> Taught:
        """Return the model of one workload, trained unless it is there."""
        # Without updates there is nothing of them to tell models apart by.
        said = {name: item for name, item in asdict(how).items() if item or name != "retrain_every"}
        key = _hash([self._key(self.basis(setting), workload), said])
        folder = self.folder / f"{workload}-{how.model}-{key}"
        if not (folder / REPORT).is_file():
            train_icache(self.segments(setting, workload), folder, how, progress=progress)
        return _taught(folder)

    def joint(
        self, setting: Setting, mix: Mix, kind: str, progress: Progress | None = None
    ) -> Taught:
        """Return the model of a mix of a kind of `JOINTS`, trained unless it is there."""
        how = replace(self.training.joint, granules=setting.granules, hits=JOINTS[kind])
        own = [self.segments(setting, member.workload) for member in mix.members]
        names = [member.name for member in mix.members]
        keys = [self._key(self.basis(setting), member.workload) for member in mix.members]
        said = {name: item for name, item in asdict(how).items() if (name, item) != ("hits", "all")}
        key = _hash([keys, names, said])
        folder = self.folder / f"{mix.name.replace(' ', '-').lower()}-mlcache-{key}"
        if not (folder / REPORT).is_file():
            together = recut.together(names, own)
            train_mlcache(together, folder / "mlcache.safetensors", how, progress=progress)
            (folder / "mlcache.training.json").rename(folder / REPORT)
        return _taught(folder)

    def _key(self, setting: Setting, workload: str) -> str:
        """Return a hash of all that the segments of a basis are made of."""
        path = next(one.path for one in self.workloads if one.name == workload)
        stack = self.stack(setting, workload)
        for tenant in stack["tenant"]:
            tenant["trace"] = _digest(path)
        return _hash([_native.__version__, stack, setting.steps, setting.granules])


@cache
def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _taught(folder: Path) -> Taught:
    path = folder / REPORT
    report = load(PartitionerReport, json.loads(path.read_text(encoding="utf-8")), str(path))
    tenant = report.tenants[0]
    return Taught((folder / tenant.models[0].file).resolve(), tenant)


def _hash(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
