"""Volumes that judge: which there are, where they lie, and what of them counts.

No constant of any scheme was chosen on the volumes of the groups `elsewhere` and `fresh`; of the
group `later` only what comes after the bundled part counts. A volume of which several seeds were
captured has one name and several files.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from cachewright_lab.study import BUNDLED, LAB, Volume

# Seconds of each bundled volume that judge: what comes before is the bundled cut.
LATER_SINCE, LATER_UNTIL = 40, 70
CUT = LAB / "capture" / "cut.py"
FOLDER = LAB / "data" / "judges"
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


def fresh(folder: Path) -> list[Volume]:
    """Return the fresh captures of a folder, kind by kind and seed by seed."""
    return _captured(folder, "fresh")


def long(folder: Path) -> list[Volume]:
    """Return the captures of ten minutes, kind by kind and seed by seed."""
    return _captured(folder, "long")


def _captured(folder: Path, group: str) -> list[Volume]:
    found: list[Volume] = []
    for kind in KINDS:
        for path in sorted(folder.glob(f"{group}-{kind}-*.csv.zst")):
            number = path.name.removeprefix(f"{group}-{kind}-").removesuffix(".csv.zst")
            if number.isdecimal():
                found.append(Volume(kind, path, group, int(number)))
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
        found.append(Volume(name, path, "later"))
    return found


def elsewhere(traces: Path) -> list[Volume]:
    """Return the volumes for policies that chose no constant, captured and public."""
    captured = [Volume(f"judge-{one}", FOLDER / f"{one}.csv.zst", "elsewhere") for one in JUDGES]
    public = [Volume(one, traces / "public" / path, "elsewhere") for one, path in PUBLIC.items()]
    return captured + public


def written(traces: Path) -> list[Volume]:
    """Return the volumes for drives on which no constant was chosen."""
    files = {name: traces / "captured" / f"{name}.csv.zst" for name in WRITTEN}
    files |= {name: traces / "public" / path for name, path in WRITTEN_PUBLIC.items()}
    return [Volume(name, path, "elsewhere") for name, path in files.items()]
