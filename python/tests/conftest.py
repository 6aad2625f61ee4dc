"""How the product's tests are run: which fixtures there are, and in which order files begin."""

from __future__ import annotations

from typing import Any

import pytest
from fixtures import (  # noqa: F401
    Answer,
    Command,
    StoppedClock,
    by_file,
    clock,
    command,
    fits_schema,
    folder,
    longest_first,
    stack,
    trace_text,
    traces,
)

LONGEST = ("test_documented_commands", "test_site", "test_fleets", "test_report", "test_memory")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest files."""
    longest_first(items, LONGEST)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep the tests of a file in one process, where several run them."""
    return by_file(config, log)
