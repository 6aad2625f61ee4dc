"""`reproduce --traces`: a user's own volumes in place of the reference traces.

For: which files are taken, times as shares of their spans, what is left out. Must never know: how
figures are drawn.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from fixtures import Command

from cachewright import SpecError
from cachewright_lab.reproduce import drive_mixes, load, mixes, specs, volumes

SPECS = Path(__file__).resolve().parents[1] / "papers"
WORDS = ["--traces", "volumes", "--specs", SPECS, "--out", "r"]
MS = 1_000_000


def volume(folder: Path, name: str, requests: int = 2000, step_ms: int = 10) -> Path:
    """Write reads and writes of a zone of 4 MiB, one every `step_ms`, beginning at an hour."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.csv"
    start = 3600 * 1000 * MS
    lines = ["time_ns,op,offset_bytes,length_bytes,volume"]
    for at in range(requests):
        op = "write" if at % 3 == 0 else "read"
        offset = (at * at * 7919 % 1024) * 4096
        lines.append(f"{start + at * step_ms * MS},{op},{offset},4096,0")
    path.write_text("\n".join(lines) + "\n")
    return path


def test_policies_are_compared_on_given_volumes(folder: Path, command: Command) -> None:
    for name in ("mail", "web"):
        volume(folder / "volumes", name)
    answer = command("reproduce", "rc-rnn", "fig1", *WORDS)
    assert answer.status == 0, answer.err
    assert "the volumes of volumes stand for mail, web" in answer.err
    assert "no volume stands for oltp, file" in answer.err
    header = next(line for line in answer.out.splitlines() if line.startswith("scheme"))
    assert header.split() == ["scheme", "mail", "web", "mean"]
    assert command("reproduce", "rc-rnn", "fig1", *WORDS).out == answer.out


def test_mixes_of_given_volumes_share_a_drive(folder: Path, command: Command) -> None:
    for name in ("mail", "web"):
        volume(folder / "volumes", name)
    answer = command("reproduce", "icache", "fig1", *WORDS)
    assert answer.status == 0, answer.err
    assert "Mix 2" in answer.out
    assert "<nav>" not in Path("r/index.html").read_text(), "there is one figure"
    assert "Mix 1" not in answer.out, "it needs oltp"


def test_times_of_a_machine_are_shares_of_the_shortest_span(folder: Path) -> None:
    for name, requests in (("oltp", 2001), ("web", 4001)):
        volume(folder / "volumes", name, requests)
    what = load("icache", "fig1", quick=False, specs=SPECS, traces=folder / "volumes")
    assert isinstance(what, drive_mixes.DriveMixes)
    machine = what.common.machines["mqsim"]
    span = 2000 * 10 * MS
    assert machine["tenant"]["stop"] == f"{span * 9 // 10}ns"
    assert machine["replay"]["warmup"] == f"{span * 9 // 10 * 6 // 10}ns"
    assert machine["replay"]["interval"] == f"{span * 9 // 10 // 36}ns"
    slower = what.common.machines["modern"]
    assert slower["tenant"]["stop"] == machine["tenant"]["stop"], "in time of the trace"
    [figure] = what.figures
    stack = what._alone(figure.setting, "oltp")
    scale = figure.setting.time_scale
    assert scale == slower["tenant"]["time_scale"] == 2.0
    assert stack["tenant"][0]["stop"] == f"{2 * (span * 9 // 10)}ns", "as it is replayed"


def test_a_span_is_from_the_first_request_to_the_last(folder: Path) -> None:
    path = volume(folder / "volumes", "mail", 101)
    assert volumes.span_ns(path) == 100 * 10 * MS


def test_a_manifest_names_files_otherwise(folder: Path) -> None:
    volume(folder / "volumes", "a")
    (folder / "volumes" / "volumes.toml").write_text('["MSR web_3"]\npath = "a.csv"\n')
    wanted = [{"name": "mail", "path": "x"}, {"name": "MSR web_3", "path": "y", "judges": True}]
    tables = volumes.given(folder / "volumes", wanted)
    assert [one["name"] for one in tables] == ["MSR web_3"]
    assert Path(tables[0]["path"]) == (folder / "volumes" / "a.csv").resolve()
    assert tables[0]["judges"] is True


def test_what_the_spec_says_of_a_reference_trace_is_not_taken_for_another(folder: Path) -> None:
    volume(folder / "volumes", "mail")
    reference = {"path": "x", "load": "y", "span": "121s", "capacity": "4GiB"}
    reference |= {"format": "mqsim", "time_scale": 1.0, "change": "81s", "windows": 600}
    wanted = [{"name": "mail", "kind": "mail", **reference}]
    found = volumes.given(folder / "volumes", wanted)[0]
    assert set(found) == {"name", "path", "kind"}


@pytest.mark.parametrize(
    ("files", "manifest", "expected"),
    [
        ((), None, "found nothing, expected a folder of traces"),
        (("other",), None, "found no trace of mail, web"),
        (("mail", "mail.part"), None, "expected one trace of `mail`"),
        (("mail",), '[mial]\npath = "mail.csv"\n', "`mial`: expected a workload such as `mail`"),
        (("mail",), "[mail]\n", "`mail`: found no `path`"),
        (("mail",), '[mail]\npath = "b.csv"\n', "found no file, expected a trace"),
        (("mail",), "[mail", "volumes.toml: "),
    ],
)
def test_a_folder_that_does_not_fit_is_refused(
    folder: Path, command: Command, files: tuple[str, ...], manifest: str | None, expected: str
) -> None:
    for name in files:
        volume(folder / "volumes", name, 10)
    if manifest is not None:
        (folder / "volumes" / "volumes.toml").write_text(manifest)
    answer = command("reproduce", "rc-rnn", "fig1", *WORDS)
    assert answer.status == 2
    assert expected in answer.err
    assert not (folder / "r").exists()


def test_small_traces_and_given_ones_exclude_each_other(folder: Path) -> None:
    with pytest.raises(SpecError, match="`--quick` and `--traces`"):
        load("rc-rnn", None, quick=True, specs=SPECS, traces=folder)


def test_every_paper_takes_what_volumes_there_are(folder: Path) -> None:
    for paper in ("shiro", "soft-qos", "icache", "oc-cache", "rc-rnn"):
        setup = specs.setup_in(SPECS / paper, quick=True)
        for one in setup.document["trace"]:
            volume(folder / paper, str(one["name"]), 10, step_ms=1000)
        assert load(paper, None, quick=False, specs=SPECS, traces=folder / paper).figures


def test_volumes_without_calls_have_no_recorded_pauses(folder: Path) -> None:
    for name in ("oltp", "scan"):
        volume(folder / "volumes", name)
    what = load("soft-qos", "fig7a", quick=False, specs=SPECS, traces=folder / "volumes")
    assert isinstance(what, mixes.Mixes)
    assert set(what.without_calls) == {"oltp"}, "the scan pauses for a time of its own"
    (figure,) = what.figures
    tenants = what._stack(figure, figure.tenants)["tenant"]
    assert all("pauses" not in tenant for tenant in tenants)
    assert any("oltp.csv has no calls by process" in note for note in mixes.notes(what))


def test_progress_names_the_figure_of_a_mix() -> None:
    said: list[str] = []

    def tell(stage: str, done: int, total: int | None) -> bool:
        said.append(stage)
        return True

    figure = load("soft-qos", "fig7a", quick=True, specs=SPECS).figures[0]
    told = mixes._told(figure, 2, 9, tell)
    assert told is not None
    told("replaying", 1, 2)
    assert said == ["fig7a (figure 2 of 9): replaying"]


def test_a_trace_that_is_too_short_to_train_on_is_named(folder: Path, command: Command) -> None:
    for name in ("mail", "web"):
        volume(folder / "volumes", name, 500)
    answer = command("reproduce", "rc-rnn", "table5", *WORDS)
    assert answer.status == 2
    assert "mail: mail.csv: found " in answer.err
