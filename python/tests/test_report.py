"""The report: one file that opens offline, with everything in it.

For: `cachewright.report`. Must never know: how results are made.
"""

from __future__ import annotations

import copy
import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from recorded import result_document, result_of

from cachewright import RunError
from cachewright.report import marks
from cachewright.report.plots import printable

NAMESPACES = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
LIBRARY = re.compile(r'<script type="module">.*?</script>', re.DOTALL)


class _Tags(HTMLParser):
    """Collects open tags and whether all are closed in order."""

    VOID = frozenset({"meta", "br", "link", "img", "input", "hr"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("single", [True, False])
def test_the_page_stands_alone(tmp_path: Path, single: bool) -> None:
    path = result_of(result_document(single)).report(tmp_path / "deep" / "report.html")
    text = path.read_text(encoding="utf-8")
    assert len(LIBRARY.findall(text)) == 2, "Vega and what draws with it, once"
    assert "default-src 'none'" in text
    own = LIBRARY.sub("", text)
    assert set(re.findall(r"\w+://[^\s\"'<>)]+", own)) <= NAMESPACES
    assert not re.search(r"(src|href)=\"(?!#)", own)
    tags = _Tags()
    tags.feed(text)
    assert tags.open == []
    assert not {"link", "img", "iframe"} & tags.seen
    assert len(text) < 5_000_000
    assert "prefers-color-scheme: dark" in text
    assert "mixed &lt;tenants&gt;" in text
    assert "<tenants>" not in text


def test_the_page_names_the_warm_up(tmp_path: Path) -> None:
    document = copy.deepcopy(result_document())
    plain = result_of(document).report(tmp_path / "r.html").read_text(encoding="utf-8")
    assert "warms the cache only" not in plain
    document["spec"]["replay"] = {"warmup": "16500ms"}
    text = result_of(document).report(tmp_path / "w.html").read_text(encoding="utf-8")
    assert "; what arrives in the first 16500ms warms the cache only" in text


def test_the_page_says_what_was_found(tmp_path: Path) -> None:
    text = result_of(result_document()).report(tmp_path / "r.html").read_text(encoding="utf-8")
    assert "18 combinations" in text
    for size in ("32MiB", "64MiB", "128MiB"):
        assert f"<strong>best at capacity {size}</strong>: s3-fifo, hull: hit ratio " in text
    assert "Tenants in the case with the highest hit ratio, s3-fifo, hull, 128MiB" in text
    for heading in (
        "Hit ratio by cache size",
        "Policies at 128MiB",
        "What each tenant gets",
        "Miss-ratio curves",
        "Hit ratio over time",
        "Cache held by each tenant",
        "Workload",
        "Settings in full",
    ):
        assert f"<h2>{heading}</h2>" in text
    assert "line 3, column 2: found `&lt;x&gt;`, expected R or W" in text
    assert text.count('<div class="figure">') == text.count("<noscript><svg") == 6
    assert "#123456" not in text
    assert "currentColor" in text


def test_every_chart_says_in_words_what_it_shows(tmp_path: Path) -> None:
    text = result_of(result_document()).report(tmp_path / "r.html").read_text(encoding="utf-8")
    labels = re.findall(r'<div class="chart" role="img" aria-label="([^"]+)">', text)
    assert len(labels) == text.count('class="chart"')
    assert labels[0] == (
        "Hit ratio by cache size, shared. One line per policy; one panel per partition. "
        "By policy: s3-fifo, arc, lru. Hit ratio from 0.3600 to 0.6450."
    )


def test_the_same_result_gives_the_same_bytes(tmp_path: Path) -> None:
    pages = []
    for name in ("one", "two"):
        path = result_of(result_document()).report(tmp_path / name / "r.html", ["svg"])
        figures = sorted((tmp_path / name / "figures").iterdir())
        pages.append([path.read_bytes(), *(figure.read_bytes() for figure in figures)])
        # Whatever was drawn before leaves no trace.
        result_of(result_document(single=True)).report(tmp_path / "other.html")
    assert pages[0] == pages[1]


def test_names_cannot_end_the_script_that_holds_them(tmp_path: Path) -> None:
    document = copy.deepcopy(result_document())
    name = "</script><!--<script>\u2028'\"& é"
    for case in document["cases"]:
        case["tenants"][0]["name"] = name
    for tenant in (document["tenants"][0], document["curves"][0]):
        tenant["name" if "name" in tenant else "tenant"] = name
    text = result_of(document).report(tmp_path / "r.html").read_text(encoding="utf-8")
    blocks = re.findall(r'<script type="application/json">(.*?)</script>', text, re.DOTALL)
    assert len(blocks) == 6
    legends = [json.loads(block)["legends"] for block in blocks]
    assert any(legend[0]["entries"][0]["name"] == name for legend in legends)
    assert not any(character in block for block in blocks for character in "<>&")


def test_names_that_cannot_be_drawn_are_replaced(tmp_path: Path) -> None:
    document = copy.deepcopy(result_document())
    for case in document["cases"]:
        case["tenants"][0]["name"] = "a\x00b\x1b[31m"
    document["tenants"][0]["name"] = "a\x00b\x1b[31m"
    path = result_of(document).report(tmp_path / "r.html", ["svg", "png"])
    text = path.read_text(encoding="utf-8")
    assert "a\\ufffdb\\ufffd[31m" in text


def test_a_result_without_curves_or_windows_has_a_page(tmp_path: Path) -> None:
    document = copy.deepcopy(result_document(single=True))
    document["curves"], document["series_rows"] = [], []
    text = result_of(document).report(tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<svg" not in text
    assert "<script" not in text
    assert "<h2>Tenants</h2>" in text


def test_figures_are_written_in_every_format(tmp_path: Path) -> None:
    result_of(result_document()).report(tmp_path / "r.html", ["svg", "png", "pdf"])
    starts = {"svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF"}
    for kind, start in starts.items():
        files = sorted((tmp_path / "figures").glob(f"*.{kind}"))
        assert len(files) == 6
        assert all(file.read_bytes().startswith(start) for file in files)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="file"):
        result_of(result_document(single=True)).report(tmp_path / "file" / "r.html")


def test_what_charts_cannot_draw_is_replaced_wherever_it_stands() -> None:
    found = printable({"a\ud800": [("x\n", 1), math.inf, math.nan, 0.5], "b": None})
    assert found == {"a\ufffd": [["x\ufffd", 1], None, None, 0.5], "b": None}


@pytest.mark.parametrize(
    ("values", "domain"),
    [([1.0, 3.0], [0.9, 3.1]), ([0.01, 1.0], [0.0, 1.0495]), ([2, 2], [1.9, 2.1])],
)
def test_no_mark_lies_on_the_edge_of_its_plot(values: list[float], domain: list[float]) -> None:
    found = marks.around([*values, None]).to_dict()["domain"]
    assert found == pytest.approx(domain)
    assert found[0] < min(values)
