"""Policies written in Python: names, refusals before a run, broken rules, errors.

For: `cachewright.policies`. Must never know: how policies decide.
"""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from conftest import Command

import cachewright
from cachewright import Verdict
from cachewright.examples import FifoCache, LruCache

FILE = """
from cachewright.examples import LruCache

class Mine(LruCache):
    pass

class Scaled(LruCache):
    def __init__(self, capacity, share=1.0):
        super().__init__(max(1, int(capacity * share)))

    def resize(self, capacity):
        return super().resize(capacity)

not_a_class = 7
"""


class AccessOnly:
    """Has no method beside `access`, and admits nothing."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity

    def access(self, block: int, write: bool) -> Verdict:
        return Verdict.BYPASS


def hits(result: cachewright.Result) -> list[int]:
    return [case["total"]["hits"] for case in result.document["cases"]]


def test_every_spelling_names_the_same_policy(stack: Path) -> None:
    (stack.parent / "mine.py").write_text(FILE)
    expected = hits(cachewright.run(stack))
    named = stack.with_name("named.toml")
    named.write_text(stack.read_text().replace('"lru"', '"python:mine.py:Mine"'))
    bare = stack.with_name("bare.toml")
    bare.write_text(stack.read_text().replace('"lru"', '"mine"'))
    table = stack.with_name("table.toml")
    table.write_text(stack.read_text().replace('"lru"', '{ name = "mine" }'))
    mine = {"mine": LruCache}
    for found in [
        cachewright.run(named),
        cachewright.run(bare, policies=mine),
        cachewright.run(table, policies=mine),
        cachewright.run(stack, settings={"policy": LruCache}),
        cachewright.run(stack, settings={"policy": "mine"}, policies=mine),
        cachewright.run(stack, settings={"cache.policy": "python:mine"}, policies=mine),
        cachewright.compare(stack, {"policy": [LruCache]}),
        cachewright.compare(stack, {"policy": ["python:cachewright.examples:LruCache"]}),
        cachewright.simulate("a.csv", LruCache, "64 blocks"),
    ][:-1]:
        assert hits(found) == expected
    alone = cachewright.simulate("a.csv", LruCache, "64 blocks")
    assert hits(alone) == hits(cachewright.simulate("a.csv", "lru", "64 blocks"))


def test_the_command_line_compares_a_policy_of_a_file(stack: Path, command: Command) -> None:
    (stack.parent / "mine.py").write_text(FILE)
    found = command("compare", stack, "--vary", "policy=lru,python:mine.py:Mine", "--json")
    assert found.status == 0, found.err
    one, other = json.loads(found.out)["cases"]
    assert one["total"] == other["total"]
    assert command("compare", stack, "--vary", "policy=lru,python:mine.py:Mine").status == 0


def test_settings_become_keywords_of_the_class(stack: Path) -> None:
    (stack.parent / "mine.py").write_text(FILE)
    half = {"name": "python:mine.py:Scaled", "share": 0.5}
    found = cachewright.run(stack, settings={"policy": half})
    smaller = cachewright.run(stack, settings={"capacity": "256KiB"})
    assert hits(found) == hits(smaller)
    assert found.document["spec"]["cache"]["policy"] == half
    with pytest.raises(cachewright.SpecError, match="unexpected keyword argument 'depth'"):
        cachewright.run(stack, settings={"policy": {"name": "python:mine.py:Mine", "depth": 1}})


def test_answers_of_python_policies_are_never_kept(stack: Path) -> None:
    out = stack.parent / "out"
    (stack.parent / "mine.py").write_text(FILE)
    vary = {"policy": ["lru", "python:mine.py:Mine"]}
    first = cachewright.compare(stack, vary, out=out)
    (stack.parent / "mine.py").write_text(
        FILE.replace("(LruCache)", "(FifoCache)", 1).replace(
            "import LruCache", "import FifoCache, LruCache"
        )
    )
    second = cachewright.compare(stack, vary, out=out)
    assert second.document["reused"] == 1
    assert hits(second)[0] == hits(first)[0]
    assert hits(second)[1] == hits(cachewright.run(stack, settings={"policy": "fifo"}))[0]


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ("python:none.py:Mine", "found no file"),
        ("python:mine.py:Other", "found no `Other` in mine.py"),
        ("python:mine.py:not_a_class", "something that is no class"),
        ("python:mine", "expected `python:FILE.py:CLASS`"),
        ("python:", "expected `python:FILE.py:CLASS`"),
        ("python:no.such.module:X", "found no module `no.such.module`"),
        ("python:broken.py:Mine", r"ZeroDivisionError: division by zero \(broken.py, line 2\)"),
        ("python:odd.py:Mine", r"SyntaxError: .*\(odd.py, line 1\)"),
        ("lruu", "nearest is `lru`"),
    ],
)
def test_a_policy_that_is_not_found_is_refused(
    stack: Path, command: Command, policy: str, said: str
) -> None:
    (stack.parent / "mine.py").write_text(FILE)
    (stack.parent / "broken.py").write_text("\n1 / 0\n")
    (stack.parent / "odd.py").write_text("class :\n")
    with pytest.raises(cachewright.SpecError, match=said):
        cachewright.run(stack, settings={"policy": policy})
    found = command("run", stack, "--set", f"policy={policy}")
    assert found.status == 2
    assert found.err.startswith("error: ")


def test_a_check_looks_for_the_file_and_does_not_run_it(stack: Path) -> None:
    (stack.parent / "broken.py").write_text("1 / 0\n")
    settings = {"policy": "python:broken.py:Mine"}
    found = cachewright.check(stack, settings=settings)["cache"]["policy"]
    assert found == {"name": "python:broken.py:Mine"}
    with pytest.raises(cachewright.SpecError, match="found no file"):
        cachewright.check(stack, settings={"policy": "python:none.py:Mine"})


def test_names_that_could_mean_two_policies_are_refused(stack: Path) -> None:
    class Mine(LruCache):
        pass

    one = Mine

    class Mine(FifoCache):  # type: ignore[no-redef]
        pass

    with pytest.raises(cachewright.SpecError, match="two policies called `Mine`"):
        cachewright.compare(stack, {"policy": [one, Mine]})
    with pytest.raises(cachewright.SpecError, match="a built-in policy"):
        cachewright.run(stack, policies={"lru": LruCache})
    with pytest.raises(cachewright.SpecError, match="found an object of type int"):
        cachewright.run(stack, policies={"mine": 3})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"partition": "hull"}, "no method `resize`, which it needs for `cache.partition`: `hull`"),
        ({"write": "read-only"}, "no method `remove`, which it needs for `cache.write`"),
    ],
)
def test_a_missing_method_is_refused_before_the_run(
    stack: Path, settings: dict[str, str], said: str
) -> None:
    def progress(stage: str, done: int, total: int | None) -> None:
        raise AssertionError(stage)

    with pytest.raises(cachewright.SpecError, match=said):
        cachewright.run(stack, settings={"policy": AccessOnly, **settings}, progress=progress)
    assert hits(cachewright.run(stack, settings={"policy": AccessOnly})) == [0]


def test_trims_need_a_method_remove(stack: Path) -> None:
    with (stack.parent / "a.csv").open("a") as trace:
        trace.write("1,T,0,8192,4000000\n")
    policy = {"policy": AccessOnly}
    with pytest.raises(cachewright.SpecError, match="trims in the trace of tenant `a`"):
        cachewright.run(stack, settings=policy)
    assert hits(cachewright.run(stack, settings={**policy, "cache.trim": "ignore"})) == [0]


@pytest.mark.parametrize("verb", ["mrc", "plan"])
def test_other_commands_refuse_python_policies(stack: Path, verb: str) -> None:
    settings = {"policy": "python:cachewright.examples:LruCache", "tenant.a.goal_hit_ratio": "0.1"}
    settings["tenant.b.goal_hit_ratio"] = "0.1"
    with pytest.raises(cachewright.SpecError, match="python"):
        getattr(cachewright, verb)(stack, settings=settings)


def test_a_partition_by_the_policy_s_own_curve_is_refused(stack: Path) -> None:
    own = {"name": "hull", "own_policy": True}
    with pytest.raises(cachewright.SpecError, match="own_policy = false"):
        cachewright.run(stack, settings={"policy": LruCache, "partition": own})


class Rule(LruCache):
    """Follows the rules until access `at`, and then answers with `answer`."""

    at = 100

    def __init__(self, capacity: int) -> None:
        super().__init__(capacity)
        self.seen = 0

    def access(self, block: int, write: bool) -> Any:
        self.seen += 1
        return self.wrong(block) if self.seen >= self.at else super().access(block, write)

    def wrong(self, block: int) -> Any:
        raise NotImplementedError


class HitsAll(Rule):
    def wrong(self, block: int) -> Any:
        return Verdict.HIT


class BypassesAll(Rule):
    def wrong(self, block: int) -> Any:
        return Verdict.BYPASS


class AdmitsAll(Rule):
    def wrong(self, block: int) -> Any:
        return Verdict.admit()


class AdmitsAgain(Rule):
    def wrong(self, block: int) -> Any:
        cached = block in self.blocks
        return Verdict.admit(next(iter(self.blocks))) if cached else Verdict.BYPASS


class EvictsAbsent(Rule):
    at = 1

    def wrong(self, block: int) -> Any:
        return Verdict.admit(block + 1)


class EvictsItself(Rule):
    at = 1

    def wrong(self, block: int) -> Any:
        return Verdict.admit(block)


class SaysTrue(Rule):
    def wrong(self, block: int) -> Any:
        return True


class SaysNothing(Rule):
    def wrong(self, block: int) -> Any:
        return None


class SaysMuch(Rule):
    def wrong(self, block: int) -> Any:
        return "x" * 1000


class Divides(Rule):
    def wrong(self, block: int) -> Any:
        return 1 // 0


class Exits(Rule):
    def wrong(self, block: int) -> Any:
        raise SystemExit(3)


BROKEN = [
    (HitsAll, "returned a hit on a block that is not cached"),
    (BypassesAll, "returned a bypass of a block that is cached"),
    # Two cases run at once, one with a cache of both tenants, one with one of each.
    (AdmitsAll, "already|an admission without an eviction into a cache that holds (128|64) of "),
    (AdmitsAgain, "returned the admission of a block that is cached already"),
    (EvictsAbsent, "access 1 .* the eviction of block 1, which is not cached"),
    (EvictsItself, "access 1 .* the eviction of block 0, which is not cached"),
    (SaysTrue, "returned True, expected a `cachewright.Verdict`"),
    (SaysNothing, r"access 100 \(block \d+\): returned None, expected"),
    (SaysMuch, "returned 'x{59}[.]{3}, expected"),
    (Divides, r"ZeroDivisionError: .*\(test_policy_rules.py, line \d+\)"),
    (Exits, "SystemExit: 3"),
]


@pytest.mark.parametrize(("policy", "said"), BROKEN)
def test_a_broken_rule_ends_the_run(stack: Path, policy: Any, said: str) -> None:
    out = stack.parent / "out"
    with pytest.raises(cachewright.PolicyError, match=f"policy `python:{policy.__name__}`"):
        cachewright.run(stack, settings={"policy": policy}, out=out)
    with pytest.raises(cachewright.PolicyError, match=said):
        cachewright.compare(stack, {"policy": ["lru", policy], "partition": ["shared", "equal"]})
    assert not (out / "result.json").exists()


def test_the_exception_of_a_policy_is_the_cause(stack: Path) -> None:
    with pytest.raises(cachewright.PolicyError) as caught:
        cachewright.run(stack, settings={"policy": Divides})
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_failing_policy_ends_a_command_with_status_one(stack: Path, command: Command) -> None:
    text = "from cachewright import Verdict\nclass Mine:\n    def __init__(self, n): pass\n"
    text += "    def access(self, block, write): return Verdict.HIT\n"
    (stack.parent / "mine.py").write_text(text)
    found = command("run", stack, "--set", "policy=python:mine.py:Mine")
    assert found.status == 1
    assert found.err.startswith("error: policy `python:mine.py:Mine`: access 1 (block 0)")


class ShrinksWrongly(LruCache):
    answer: Any = None

    def resize(self, capacity: int) -> Any:
        super().resize(capacity)
        return self.answer


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (None, "`resize` to .* returned None, expected a list of the blocks"),
        ([], "`resize` left .* expected .* more to leave"),
        ([4_000_000], "`resize` returned the eviction of block 4000000, which is not cached"),
        (["x"], "expected a list"),
    ],
)
def test_a_resize_that_breaks_a_rule_ends_the_run(stack: Path, answer: Any, said: str) -> None:
    policy = type("Shrinks", (ShrinksWrongly,), {"answer": answer})
    settings = {"policy": policy, "partition": "hull", "replay.interval": "500us"}
    with pytest.raises(cachewright.PolicyError, match=said):
        cachewright.run(stack, settings=settings)


class CannotForget(LruCache):
    def remove(self, block: int) -> None:
        raise KeyError(block)


def test_an_error_of_remove_ends_the_run(stack: Path) -> None:
    settings = {"policy": CannotForget, "write": "read-only"}
    with pytest.raises(cachewright.PolicyError, match=r"`remove` of block \d+: KeyError: \d+"):
        cachewright.run(stack, settings=settings)


class FailsLater(LruCache):
    made = 0

    def __init__(self, capacity: int) -> None:
        super().__init__(capacity)
        FailsLater.made += 1
        if FailsLater.made > 1:
            raise ValueError("one is enough")


def test_a_class_that_fails_to_make_a_cache_is_refused(stack: Path) -> None:
    class Never:
        def __init__(self, capacity: int) -> None:
            raise ValueError("not today")

    with pytest.raises(cachewright.SpecError, match="ValueError: not today"):
        cachewright.run(stack, settings={"policy": Never})
    with pytest.raises(cachewright.SpecError, match="type `object` without a method `access`"):
        cachewright.run(stack, settings={"policy": lambda capacity: object()})
    FailsLater.made = 0
    with pytest.raises(cachewright.PolicyError, match=r"a cache of .* ValueError: one is enough"):
        cachewright.run(stack, settings={"policy": FailsLater})


def test_a_run_with_a_python_policy_can_be_cancelled(stack: Path) -> None:
    called = threading.Event()

    class Waits(LruCache):
        def access(self, block: int, write: bool) -> Verdict:
            called.wait()
            return super().access(block, write)

    def progress(stage: str, done: int, total: int | None) -> bool:
        called.set()
        return False

    with pytest.raises(cachewright.RunError, match="cancelled"):
        cachewright.run(stack, settings={"policy": Waits}, progress=progress)
