#!/usr/bin/env python3
"""Cachewright beside MQSim on the scenarios that MQSim ships: response times and processor time.

For: `benches/mqsim.py --mqsim FOLDER`, or MQSIM=FOLDER, where FOLDER holds a built `MQSim` with its
`ssdconfig.xml`, `workload.xml` and `traces`; skipped with a message where there is none. Both sides
run whole processes on the same files, one right after the other: ours is `cachewright run` on what
`cachewright import mqsim` made of them. With `--rounds N` times are medians of as many turns of
both. The interpreter must have the package, and may keep compiled files of it, as an installed
package has them. Must never know: how either side works. Units: microseconds of response, seconds
of processor time.
"""

from __future__ import annotations

import argparse
import copy
import os
import resource
import statistics
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "target" / "mqsim"
SKIPPED = 0


@dataclass(frozen=True)
class Case:
    """Flows of a shipped scenario, counted from 0, and the class that all are given, if any."""

    name: str
    scenario: int
    flows: tuple[int, ...]
    one_class: str | None = None


@dataclass(frozen=True)
class Measured:
    """What one side found and used."""

    responses_us: list[float]
    map_reads: int
    map_programs: int
    cpu_s: float


CASES = [
    Case("scenario 1, flow 0 alone", 0, (0,)),
    Case("scenario 1, flow 1 alone", 0, (1,)),
    Case("scenario 1", 0, (0, 1)),
    Case("scenario 2, flow 0 alone", 1, (0,)),
    Case("scenario 2, one class", 1, (0, 1), "HIGH"),
    Case("scenario 2", 1, (0, 1)),
    Case("scenario 3", 2, (0,)),
]


def main() -> int:
    """Run all cases and print two tables."""
    options = arguments()
    folder = options.mqsim
    if folder is None or not (folder / "MQSim").exists():
        place = "no folder was named" if folder is None else f"found none in {folder}"
        hint = "name the folder of a built MQSim with --mqsim or in MQSIM"
        print(f"skipped: {place}; {hint}", file=sys.stderr)
        return SKIPPED
    folder = folder.resolve()
    KEPT.mkdir(parents=True, exist_ok=True)
    rows = []
    for case in CASES:
        workload = write_workload(folder, case, options.requests)
        sides = [
            (theirs(folder, workload), ours(folder, workload, options.cachewright))
            for _ in range(max(options.rounds, 1))
        ]
        their, our = (median(runs) for runs in zip(*sides, strict=True))
        rows.append((case, their, our))
    print_responses(rows)
    print_processor_time(rows, start_up(options.cachewright))
    return 0


def arguments() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    there = os.environ.get("MQSIM")
    parser.add_argument("--mqsim", type=Path, default=Path(there) if there else None)
    command = ROOT / ".venv" / "bin" / "cachewright"
    parser.add_argument("--cachewright", type=Path, default=command)
    parser.add_argument("--requests", type=int, default=300_000, help="of each synthetic flow")
    parser.add_argument("--rounds", type=int, default=1, help="turns of both sides per scenario")
    return parser.parse_args()


def write_workload(folder: Path, case: Case, requests: int) -> Path:
    """Write the flows of a case as a workload of their own; return its path."""
    scenarios = ElementTree.parse(folder / "workload.xml").getroot().findall("IO_Scenario")
    flows = list(scenarios[case.scenario])
    root = ElementTree.Element("MQSim_IO_Scenarios")
    scenario = ElementTree.SubElement(root, "IO_Scenario")
    for index in case.flows:
        flow = copy.deepcopy(flows[index])
        for tag, text in changes(case, requests):
            found = flow.find(tag)
            if found is not None:
                found.text = text
        path = flow.find("File_Path")
        if path is not None:
            path.text = str(folder / (path.text or ""))
        scenario.append(flow)
    name = case.name.replace(", ", "-").replace(" ", "-")
    place = KEPT / f"{name}.xml"
    ElementTree.ElementTree(root).write(place, encoding="us-ascii", xml_declaration=True)
    return place


def changes(case: Case, requests: int) -> list[tuple[str, str]]:
    """Return the tags of a flow that a case sets."""
    ends = [("Stop_Time", "0"), ("Total_Requests_To_Generate", str(requests))]
    return ends if case.one_class is None else [*ends, ("Priority_Class", case.one_class)]


def processor_time(command: list[str], folder: Path) -> float:
    """Run a command in a folder; return its seconds of processor time."""

    def used() -> float:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return children.ru_utime + children.ru_stime

    compiled = {key: text for key, text in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    before = used()
    done = subprocess.run(
        command,
        cwd=folder,
        env=compiled,
        check=False,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode != 0:
        words = (done.stderr or done.stdout).strip()
        raise SystemExit(f"error: `{' '.join(command)}` failed: {words[-500:]}")
    return used() - before


def median(runs: tuple[Measured, ...]) -> Measured:
    """Return what equal runs found, with the median of their times. Errors: runs that differ."""
    if any(replace(run, cpu_s=0.0) != replace(runs[0], cpu_s=0.0) for run in runs):
        raise SystemExit("error: found different results in equal runs, expected the same")
    return replace(runs[0], cpu_s=statistics.median(run.cpu_s for run in runs))


def theirs(folder: Path, workload: Path) -> Measured:
    """Run MQSim."""
    command = [str(folder / "MQSim"), "-i", "ssdconfig.xml", "-w", str(workload)]
    cpu_s = processor_time(command, folder)
    root = ElementTree.parse(workload.with_name(f"{workload.stem}_scenario_1.xml")).getroot()
    flows = root.iter("Host.IO_Flow")
    responses = [float(flow.findtext("Device_Response_Time", "nan")) for flow in flows]
    ftl = next(root.iter("SSDDevice.FTL")).attrib
    reads = int(ftl["Issued_Flash_Read_CMD_For_Mapping"])
    return Measured(responses, reads, int(ftl["Issued_Flash_Program_CMD_For_Mapping"]), cpu_s)


def ours(folder: Path, workload: Path, cachewright: Path) -> Measured:
    """Import the same files and run them."""
    from cachewright import Result

    config = str(folder / "ssdconfig.xml")
    command = [str(cachewright), "import", "mqsim", config, str(workload), "--force"]
    processor_time([*command, "--out", str(KEPT)], KEPT)
    out = KEPT / workload.stem
    stack = str(workload.with_suffix(".toml"))
    cpu_s = processor_time([str(cachewright), "run", stack, "--out", str(out), "--fresh"], KEPT)
    timing = Result.load(out).answer.cases[0].timing
    if timing is None or timing.drive is None:
        raise SystemExit(f"error: {out}: found no drive, expected one that is the whole machine")
    responses = [tenant.mean_ns / 1e3 for tenant in timing.tenants]
    return Measured(responses, timing.drive.map_misses, timing.drive.map_programs, cpu_s)


def start_up(cachewright: Path) -> float:
    """Return the processor time of a run of a few requests without devices."""
    trace, stack = KEPT / "idle.csv", KEPT / "idle.toml"
    trace.write_text("".join(f"0,R,{4096 * page},4096,{page}\n" for page in range(10)))
    cache = '[cache]\npolicy = "lru"\ncapacity = "64KiB"\n'
    tenant = f'[[tenant]]\nname = "idle"\ntrace = "{trace.name}"\n'
    stack.write_text(f'name = "idle"\n{cache}{tenant}')
    command = [str(cachewright), "run", str(stack), "--out", str(KEPT / "idle"), "--fresh"]
    return statistics.median(processor_time(command, KEPT) for _ in range(5))


def print_responses(rows: list[tuple[Case, Measured, Measured]]) -> None:
    """Print mean responses and the pages of the mapping table read and programmed."""
    print("| scenario | flow | MQSim us | here us | off % | map reads | map programs |")
    print("|---|---|--:|--:|--:|--:|--:|")
    for case, their, our in rows:
        pairs = zip(case.flows, their.responses_us, our.responses_us, strict=True)
        for position, (flow, expected, found) in enumerate(pairs):
            reads = f"{their.map_reads:,} / {our.map_reads:,}" if position == 0 else ""
            programs = f"{their.map_programs:,} / {our.map_programs:,}" if position == 0 else ""
            name = case.name if position == 0 else ""
            off = 100 * (found / expected - 1)
            print(
                f"| {name} | {flow} | {expected:,.0f} | {found:,.1f} | {off:+.1f} | {reads} "
                f"| {programs} |"
            )


def print_processor_time(rows: list[tuple[Case, Measured, Measured]], idle_s: float) -> None:
    """Print the seconds of both sides and their ratio."""
    print("\n| scenario | MQSim s | here s | ratio | without start-up |")
    print("|---|--:|--:|--:|--:|")
    for case, their, our in rows:
        work_s = max(our.cpu_s - idle_s, 1e-3)
        print(
            f"| {case.name} | {their.cpu_s:.2f} | {our.cpu_s:.2f} "
            f"| {their.cpu_s / our.cpu_s:.1f} | {their.cpu_s / work_s:.1f} |"
        )
    print(f"\nstart-up of the command line: {idle_s:.2f} s")


if __name__ == "__main__":
    sys.exit(main())
