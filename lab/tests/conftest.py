"""How the laboratory's tests are run, with the fixtures of the product's tests.

`pythonpath` in `pyproject.toml` leads to them.
"""

from __future__ import annotations

from typing import Any

import pytest
from fixtures import by_file, clock, command, folder, longest_first, stack, traces  # noqa: F401

LONGEST = ("test_reproduce", "test_reproduced_answers")
# What the first writes, the last reads.
TOGETHER = frozenset(LONGEST)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest files."""
    longest_first(items, LONGEST)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep the tests of a file in one process, where several run them."""
    return by_file(config, log, TOGETHER)
