"""The tables of `reproduce PAPER --quick` are what they were before.

For: changes that promise to change no number. Must never know: any figure.

Tables are kept in `kept/PAPER.md`, beside digests of their unrounded numbers.
What `test_reproduce` has run in the same session is taken from its folders (of rc-rnn these are two
figures). Else every figure is run: about three minutes for the five papers. A change that moves
numbers on purpose writes them anew, and its difference is read before it is taken:

    CACHEWRIGHT_WRITE_ANSWERS=1 python -m pytest tests/test_reproduced_answers.py

Not compared: the claims, of which a quick run decides none; how long a model takes to answer, which
a clock measures (`answer takes` of icache, table III); what JAX has trained, where its version or
the instructions of the processor are not those of the kept tables.
"""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import kept_tables as papers
import pytest
from fixtures import Command

WRITES = "CACHEWRIGHT_WRITE_ANSWERS" in os.environ
SHOWN = 10


def needs_what_trained(paper: str) -> None:
    """Skip a paper whose models would not be those of the kept tables."""
    if paper not in papers.LEARNED:
        return
    for name in ("jax", "optax", "sklearn"):
        pytest.importorskip(name, reason="needs jax, optax and scikit-learn")
    if not WRITES and papers.made_on(paper) != papers.machine():
        pytest.skip(f"the models of {paper} were trained by other versions or instructions")


@pytest.mark.parametrize("paper", papers.PAPERS)
def test_tables_are_the_kept_ones(
    paper: str, folder: Path, command: Command, tmp_path_factory: pytest.TempPathFactory
) -> None:
    needs_what_trained(paper)
    found = papers.runs(paper, tmp_path_factory.getbasetemp())
    if not found or (WRITES and not found[0].whole):
        words = ["reproduce", paper, "--quick", "--specs", papers.SPECS, "--out", "tables"]
        answer = command(*words)
        assert answer.status == 0, answer.err
        found = [papers.Run(paper, folder / "tables")]
    if WRITES:
        papers.write(found[0])
    for run in found:
        differences = list(itertools.islice(papers.differences(run), SHOWN))
        assert not differences, f"{paper}: not as kept:\n" + "\n".join(differences)


def test_columns_of_times_are_left_out() -> None:
    text = "### Claims of the paper\n\n| a |\n|---|\n\n### T\n\n| model | answer takes | MSE |\n"
    text += "|---|--:|--:|\n| mlp | 1.8us | 0.1 |\n\n### T\n\n| x |\n|---|\n"
    found = papers.sections(text)
    assert list(found) == ["T", "T (2)"]
    assert found["T"] == "| model | MSE |\n| --- | --: |\n| mlp | 0.1 |"
