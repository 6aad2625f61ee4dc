"""The site of the documents: it builds without a warning, and opens whole without a network.

For: `scripts/site`. Must never know: the text of any page. A server on this machine gives the
pages; a request to anywhere else, or a message of the browser's console, fails. Skipped where the
builder (extra `docs`) or a Chromium is not installed.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from browser import HANG_GUARD_MS, chromium, window

from cachewright import registries

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from scripts.site import cells, gather, schemes, tutorials  # noqa: E402


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs", reason="needs the extra `docs`")
    from scripts.site import build

    before = Path.cwd()
    try:
        return build.build(tmp_path_factory.mktemp("site"))
    finally:
        os.chdir(before)


@pytest.fixture
def address(site: Path) -> Iterator[str]:
    handler = partial(_Quiet, directory=str(site))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_every_page_of_the_repository_is_in_the_site(site: Path) -> None:
    for source in (*ROOT.glob("docs/**/*.md"), *ROOT.glob("*.md")):
        path = source.relative_to(ROOT)
        page = (
            path.with_name("index.html") if path.name == "README.md" else path.with_suffix(".html")
        )
        assert (site / page).is_file(), path
    for stage, _, _ in schemes.STAGES:
        for entry in registries.list(stage):
            text = (site / schemes.FOLDER / stage / f"{entry.name}.html").read_text("utf-8")
            assert entry.source.split("'")[0].split("&")[0][:20] in text


def test_every_page_opens_without_network_and_without_messages(site: Path, address: str) -> None:
    pages = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))
    assert len(pages) > 100
    wrong: list[str] = []
    with chromium() as browser:
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        context.set_default_timeout(HANG_GUARD_MS)
        page = context.new_page()
        shown = ""
        page.on("console", lambda said: wrong.append(f"{shown}: {said.type}: {said.text}"))
        page.on("pageerror", lambda error: wrong.append(f"{shown}: {error}"))

        def routed(route: Any) -> None:
            if urlsplit(route.request.url).netloc == urlsplit(address).netloc:
                route.continue_()
            else:
                wrong.append(f"{shown}: asked for {route.request.url}")
                route.abort()

        context.route("**/*", routed)
        for shown in pages:
            answer = page.goto(f"{address}/{quote(shown)}")
            if answer.status != 200:
                wrong.append(f"{shown}: status {answer.status}")
            broken = (
                "() => [...document.images].filter((i) => i.complete && !i.naturalWidth).length"
            )
            if page.evaluate(broken):
                wrong.append(f"{shown}: a figure is not drawn")
        context.close()
    assert wrong == []


def test_the_search_finds_a_scheme(site: Path, address: str) -> None:
    with chromium() as browser:
        for place in (address, site.as_uri()):
            with window(browser, 1280) as view:
                view.page.goto(f"{place}/index.html")
                view.page.click("input.md-search__input")
                view.page.keyboard.type("tinylfu")
                link = ".md-search-result__link[href*='schemes/policies/w-tinylfu']"
                view.page.wait_for_selector(link)
                assert view.messages == []
                assert [url for url in view.requests if not url.startswith(place)] == []


@pytest.mark.parametrize("source", tutorials.sources(ROOT), ids=lambda path: path.stem)
def test_a_tutorial_ran(source: Path, site: Path) -> None:
    found = cells.cells_of(source.read_text(encoding="utf-8"))
    notebook = json.loads((site / tutorials.FOLDER / f"{source.stem}.ipynb").read_text("utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert len(code) == sum(cell.language != "" for cell in found) >= 4
    assert sum(len(cell["outputs"]) for cell in code) >= 3


def test_all_tutorials_are_there() -> None:
    assert {path.stem for path in tutorials.sources(ROOT)} >= set(tutorials.FIRST)


def test_cells_are_run_in_order_and_show_what_they_gave(folder: Path) -> None:
    page = (
        "# A\n\n```toml a.toml\nx = 1\n```\n\n```toml\ny = 2\n```\n\n"
        "```python\nname = open('a.toml').read()\nprint(name.strip())\n1 + 1\n```\n\n"
        "```sh\ncachewright --version\n```\nend\n"
    )
    found = cells.cells_of(page)
    assert [cell.language for cell in found] == ["", "toml", "", "python", "sh", ""]
    outputs = cells.run(found)
    assert outputs[3] == [cells.Output("text", "x = 1\n"), cells.Output("text", "2\n")]
    assert outputs[4][0].text.strip()
    shown = tutorials.page_of(found, outputs)
    assert "```text\nx = 1\n```" in shown
    with pytest.raises(RuntimeError, match="exit status 2"):
        cells.run(cells.cells_of("```sh\ncachewright run nowhere.toml\n```\n"))
    with pytest.raises(RuntimeError, match="expected `cachewright`"):
        cells.run(cells.cells_of("```sh\nrm -r x\n```\n"))


def test_links_to_folders_and_files_are_kept_whole(tmp_path: Path) -> None:
    root, target = tmp_path / "root", tmp_path / "target"
    (root / "specs").mkdir(parents=True)
    (root / "specs" / "a.toml").write_text("a = 1\n")
    (root / "figure.svg").write_text("<svg/>")
    (root / "README.md").write_text("[s](specs) ![f](figure.svg) [x](https://x.example)\n")
    gather.gather(root, target)
    assert "[s](specs/index.md)" in (target / "README.md").read_text()
    assert "```toml\na = 1\n```" in (target / "specs" / "index.md").read_text()
    assert (target / "figure.svg").read_text() == "<svg/>"


def test_a_row_of_a_table_belongs_to_the_scheme_that_its_first_cells_name(tmp_path: Path) -> None:
    (tmp_path / "p.md").write_text(
        "# Page\n\n## Costs\n\nBytes per block:\n\n| policy | bytes |\n|---|--:|\n"
        "| `lru` | 24 |\n| lru-k | 30 |\n\nText.\n"
    )
    (table,) = schemes.tables_of(tmp_path, tmp_path / "p.md")
    assert (table.heading, table.caption) == ("Costs", "Bytes per block:")
    shown = "\n".join(schemes._measured(tmp_path, "lru", [table]))
    assert "| `lru` | 24 |" in shown
    assert "lru-k" not in shown


def test_a_broken_link_fails_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mkdocs", reason="needs the extra `docs`")
    from mkdocs.exceptions import Abort
    from scripts.site import build

    def only(root: Path, target: Path) -> list[Path]:
        target.mkdir(parents=True)
        (target / "README.md").write_text("# A\n\n[b](nowhere.md)\n")
        return []

    monkeypatch.setattr(gather, "gather", only)
    monkeypatch.setattr(schemes, "write", lambda root, pages: [])
    monkeypatch.setattr(tutorials, "write", lambda root, pages: [])
    with pytest.raises(Abort):
        build.build(tmp_path / "site")
