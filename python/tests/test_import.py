"""`cachewright import mqsim` writes stack files and lists what it did not map."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from cachewright.cli import DONE, WRONG, status_of

CONFIG = """<?xml version="1.0" encoding="us-ascii"?>
<Execution_Parameter_Set>
  <Device_Parameter_Set>
    <Flash_Channel_Count>4</Flash_Channel_Count>
    <Colour>blue</Colour>
  </Device_Parameter_Set>
</Execution_Parameter_Set>
"""

WORKLOAD = """<MQSim_IO_Scenarios>
  <IO_Scenario>
    <IO_Flow_Parameter_Set_Synthetic>
      <Average_No_of_Reqs_in_Queue>4</Average_No_of_Reqs_in_Queue>
      <Stop_Time>0</Stop_Time>
      <Total_Requests_To_Generate>100</Total_Requests_To_Generate>
    </IO_Flow_Parameter_Set_Synthetic>
  </IO_Scenario>
</MQSim_IO_Scenarios>
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Return a configuration and a workload."""
    config, workload = tmp_path / "ssd.xml", tmp_path / "load.xml"
    config.write_text(CONFIG)
    workload.write_text(WORKLOAD)
    return config, workload


def test_scenarios_become_stack_files(
    files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, workload = files
    out = tmp_path / "stacks"
    command = ["import", "mqsim", str(config), str(workload), "--out", str(out)]
    assert status_of(command) == DONE
    shown = capsys.readouterr()
    assert "line 5: `Colour` is not a tag of MQSim" in shown.err
    assert f"{out / 'load.toml'}: " in shown.out
    stack = tomllib.loads((out / "load.toml").read_text())
    assert stack["device"]["ssd"]["channels"] == 4
    assert stack["tenant"][0] == {
        "name": "flow-0",
        "trace": "load.synth.toml",
        "format": "synth",
        "volume": "flow-0",
        "queue_depth": 4,
    }
    synth = tomllib.loads((out / "load.synth.toml").read_text())
    assert synth["tenant"][0]["count"] == 100
    assert status_of(command) == WRONG, "files that exist are left alone"
    assert "existing file" in capsys.readouterr().err
    assert status_of([*command, "--force"]) == DONE


def test_a_value_that_is_none_is_refused_with_its_line(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    config, _ = files
    config.write_text(CONFIG.replace(">4<", ">none<"))
    assert status_of(["import", "mqsim", str(config)]) == WRONG
    error = capsys.readouterr().err
    assert "line 4: `Flash_Channel_Count`: found `none`, expected a whole number" in error


def flow(kind: str, *tags: str) -> str:
    """Return a workload of one flow."""
    group = f"IO_Flow_Parameter_Set_{kind}"
    inner = f"<IO_Scenario><{group}>{''.join(tags)}</{group}></IO_Scenario>"
    return f"<MQSim_IO_Scenarios>{inner}</MQSim_IO_Scenarios>"


@pytest.mark.parametrize("out", ["xml", "stacks/deep", "."])
def test_traces_are_found_from_the_folder_of_the_workload(
    out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    xml = tmp_path / "xml"
    (xml / "traces").mkdir(parents=True)
    (xml / "ssd.xml").write_text(CONFIG)
    (xml / "load.xml").write_text(flow("Trace_Based", "<File_Path>traces/a.trace</File_Path>"))
    trace = xml / "traces" / "a.trace"
    trace.write_text("1000 0 0 8 1\n2000 0 64 8 0\n")
    monkeypatch.chdir(tmp_path)
    command = ["import", "mqsim", "xml/ssd.xml", "xml/load.xml", "--out", out]
    assert status_of(command) == DONE
    assert "File_Path" not in capsys.readouterr().err
    path = tmp_path / out / "load.toml"
    found = tomllib.loads(path.read_text())["tenant"][0]["trace"]
    assert not Path(found).is_absolute()
    assert (path.parent / found).resolve() == trace
    assert status_of(["run", str(path)]) == DONE, "the stack file runs as it is"


def test_traces_beside_the_current_folder_or_nowhere_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    xml, here = tmp_path / "xml", tmp_path / "here"
    xml.mkdir()
    here.mkdir()
    (xml / "ssd.xml").write_text(CONFIG)
    (xml / "load.xml").write_text(flow("Trace_Based", "<File_Path>a.trace</File_Path>"))
    monkeypatch.chdir(here)
    command = ["import", "mqsim", "../xml/ssd.xml", "../xml/load.xml", "--out", "../xml", "--force"]
    assert status_of(command) == DONE
    shown = capsys.readouterr().err
    assert f"`File_Path` = a.trace: found no such file in {xml.resolve()}" in shown
    assert tomllib.loads((xml / "load.toml").read_text())["tenant"][0]["trace"] == "a.trace"
    (here / "a.trace").write_text("1000 0 0 8 1\n")
    assert status_of(command) == DONE
    assert "taken from the current folder, as MQSim does" in capsys.readouterr().err
    assert tomllib.loads((xml / "load.toml").read_text())["tenant"][0]["trace"] == "../here/a.trace"


def test_flows_stop_at_their_time(tmp_path: Path) -> None:
    (tmp_path / "ssd.xml").write_text(CONFIG)
    tags = [
        "<Average_No_of_Reqs_in_Queue>2</Average_No_of_Reqs_in_Queue>",
        "<Stop_Time>5000000</Stop_Time>",
        "<Priority_Class>URGENT</Priority_Class>",
    ]
    (tmp_path / "load.xml").write_text(flow("Synthetic", *tags))
    files = [str(tmp_path / name) for name in ("ssd.xml", "load.xml")]
    assert status_of(["import", "mqsim", *files, "--out", str(tmp_path)]) == DONE
    out = tmp_path / "result"
    assert status_of(["run", str(tmp_path / "load.toml"), "--out", str(out)]) == DONE
    result = json.loads((out / "result.json").read_text())
    tenant = result["cases"][0]["tenants"][0]
    # Two are under way; the last answer comes after the stop.
    assert 5_000_000 <= tenant["finished_ns"] < 6_000_000
    assert 40 < tenant["requests"] < 200
