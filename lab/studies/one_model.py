#!/usr/bin/env python3
"""One model for many volumes, or one for each, or learning online? Writes lab/one-model.md.

For: `lab/studies/one_model.py --captures DIR --traces DIR --out DIR --write`. A kind has two
captures: what trains sees the first, the second judges. One model learns from the first captures of
all kinds but the one that it is judged on. Must never know: how a scheme decides. Finished models
and cases are kept in the folder of results.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import marked_pages
import one_model_caching
import one_model_drives
from judge_volumes import JUDGES, KINDS, LAB, fresh
from one_model_kinds import Kind, Outcome, table

PAGE = LAB / "one-model.md"
STUDIES = {"caching": one_model_caching.outcomes, "drives": one_model_drives.outcomes}


def kinds(traces: Path, captures: Path) -> list[Kind]:
    """Return the kinds of which two captures are there; say which are not."""
    captured, judges = traces / "captured", LAB / "data" / "judges"
    files = [(name, f"{name}.csv.zst") for name in JUDGES]
    pairs = [Kind(name, captured / file, judges / file) for name, file in files]
    found = fresh(captures)
    for name in KINDS:
        seeds = [volume.path for volume in found if volume.name == name]
        if len(seeds) > 1:
            pairs.append(Kind(name, seeds[0], seeds[1]))
        else:
            print(f"one_model: left out, fewer than two captures: {name}", file=sys.stderr)
    missing = [kind.name for kind in pairs if not (kind.trains.is_file() and kind.judges.is_file())]
    if missing:
        print(f"one_model: left out, no file: {', '.join(missing)}", file=sys.stderr)
    return [kind for kind in pairs if kind.name not in missing]


def measured(study: str, given: argparse.Namespace) -> Sequence[Outcome]:
    """Run one study; keep and return what came out."""
    out = given.out / study
    out.mkdir(parents=True, exist_ok=True)
    found = list(STUDIES[study](kinds(given.traces, given.captures), out))
    if not found:
        raise SystemExit(f"{given.captures}: found no kind for {study}, expected two captures each")
    kept = json.dumps([one._asdict() for one in found], indent=1)
    (given.out / f"{study}.json").write_text(kept)
    return found


def main() -> int:
    """Do what the command line says; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--captures", type=Path, required=True, help="folder of fresh captures")
    parser.add_argument("--traces", type=Path, required=True, help="folder with captured/")
    parser.add_argument("--out", type=Path, required=True, help="folder for results")
    parser.add_argument("--only", choices=STUDIES, action="append", help="the study to run")
    parser.add_argument("--write", action="store_true", help="write the tables into the page")
    given = parser.parse_args()
    for study in given.only or STUDIES:
        text = table(measured(study, given))
        print(f"{study}\n\n{text}\n")
        if given.write:
            marked_pages.write(PAGE, {study: text})
    return 0


if __name__ == "__main__":
    sys.exit(main())
