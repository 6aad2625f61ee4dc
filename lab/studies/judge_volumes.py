"""Volumes that judge: which there are, where they lie, and what of them counts.

For: judge*.py. Must never know: schemes. No constant of any scheme was chosen on the
volumes of the groups `elsewhere` and `fresh`; of the group `later` only what comes after the
bundled part counts. A volume of which several seeds were captured has one name and several files.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

LAB = Path(__file__).resolve().parents[1]
ROOT = LAB.parent
# Seconds of each bundled volume that judge: what comes before is the bundled cut.
LATER_SINCE, LATER_UNTIL = 40, 70
CUT = LAB / "capture" / "cut.py"
BUNDLED = ("oltp", "mail", "web", "lu")
JUDGES = ("oltp", "mail", "web", "file")
PUBLIC = {
    "cloudphysics": "cloudphysics-libcachesim/cloudPhysicsIO.vscsi.zst",
    "msr-web_3": "msr-full-small-volumes/web_3.csv.zst",
    "msr-rsrch_1": "msr-full-small-volumes/rsrch_1.csv.zst",
    "dtrs": "ms-dtrs-ssdsim/DTRS1K.trace.zst",
    "wsrch": "mqsim/wsrch-small.trace.zst",
    "fin1": "ssdsim-example-fin1/example.ascii",
}
# Volumes that are written often enough for drives. `shiro-x` chose constants on `overwrite-mild`,
# `overwrite-bigwal` and `oltp`, which are not among them. Stores that write whole tables and trim
# them leave nothing to separate; one of them stands for all.
WRITTEN = ("overwrite-skewed", "overwrite-lsm", "mail")
WRITTEN_PUBLIC = {"cloudphysics": PUBLIC["cloudphysics"]}
KINDS = ("queue", "search", "series", "desktops", "backups", "farm")


class Volume(NamedTuple):
    """One capture: its name, its file, and its seed where there are several."""

    name: str
    group: str
    path: Path
    seed: int = 0

    @property
    def label(self) -> str:
        """Return a name that no other capture has."""
        return f"{self.group}-{self.name}-{self.seed}"

    @property
    def load(self) -> Path:
        """Return the capture of what was before the run."""
        return self.path.with_name(self.path.name.replace(".csv.zst", ".load.csv.zst"))

    def tenant(self) -> dict[str, Any]:
        """Return the volume as a tenant of a stack."""
        return {"name": self.label, "trace": str(self.path)}


def fresh(folder: Path) -> list[Volume]:
    """Return the fresh captures of a folder, kind by kind and seed by seed."""
    found: list[Volume] = []
    for kind in KINDS:
        for path in sorted(folder.glob(f"fresh-{kind}-*.csv.zst")):
            number = path.name.removeprefix(f"fresh-{kind}-").removesuffix(".csv.zst")
            if number.isdecimal():
                found.append(Volume(kind, "fresh", path, int(number)))
    return found


def later(traces: Path, out: Path) -> list[Volume]:
    """Cut the later parts of the bundled volumes into a folder and return them."""
    found = []
    for name in BUNDLED:
        source, path = traces / "captured" / f"{name}.csv.zst", out / f"{name}.csv.zst"
        if source.is_file() and not path.is_file():
            part = path.with_suffix(".part")
            places = (str(source), str(part), str(LATER_UNTIL), str(LATER_SINCE))
            subprocess.run([sys.executable, str(CUT), *places], check=True, stdout=sys.stderr)
            part.replace(path)
        found.append(Volume(name, "later", path))
    return found


def elsewhere(traces: Path) -> list[Volume]:
    """Return the volumes for policies that chose no constant, captured and public."""
    judges = LAB / "data" / "judges"
    captured = [Volume(f"judge-{one}", "elsewhere", judges / f"{one}.csv.zst") for one in JUDGES]
    public = [Volume(one, "elsewhere", traces / "public" / path) for one, path in PUBLIC.items()]
    return captured + public


def written(traces: Path) -> list[Volume]:
    """Return the volumes for drives on which no constant was chosen."""
    captured = [Volume(one, "elsewhere", traces / "captured" / f"{one}.csv.zst") for one in WRITTEN]
    public = [
        Volume(one, "elsewhere", traces / "public" / path) for one, path in WRITTEN_PUBLIC.items()
    ]
    return captured + public


def present(volumes: list[Volume]) -> list[Volume]:
    """Return the volumes whose files are there; say which are not."""
    missing = [volume.label for volume in volumes if not volume.path.is_file()]
    if missing:
        print(f"judge: left out, no file: {', '.join(missing)}")
    return [volume for volume in volumes if volume.path.is_file()]
