"""`cachewright import mqsim` writes stack files and lists what it did not map."""

from __future__ import annotations

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
