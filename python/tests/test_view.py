"""The local page of results, asked over its socket and opened in a real browser.

The browser's tests are skipped where no Chromium is installed.
"""

from __future__ import annotations

import http.client
import json
import shutil
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import pytest
from browser import DRAWN, chromium, window
from conftest import trace_text

from cachewright import api
from cachewright.cli import status_of
from cachewright.report import viewing


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with results of several commands at several depths."""
    root = tmp_path_factory.mktemp("results")
    inputs = tmp_path_factory.mktemp("inputs")
    for name, seed in (("a", 1), ("b", 2)):
        (inputs / f"{name}.csv").write_text(trace_text(seed))
        api.mrc(inputs / f"{name}.csv", policies=["lru"], out=root / "curves" / name)
        vary = {"cache.policy": ["lru", "arc"], "cache.capacity": ["256KiB", "512KiB"]}
        api.compare(inputs / f"{name}.csv", vary, out=root / "runs" / name)
    wa = ["wa", str(inputs / "a.csv"), "--op", "60%", "--separation", "none,sepbit"]
    assert status_of([*wa, "--superblock", "64KiB", "--out", str(root / "drive <x>"), "-q"]) == 0
    shutil.copytree(root / "runs" / "a", root / "damaged")
    (root / "damaged" / "result.json").write_text("{}")
    (root / ".hidden").mkdir()
    shutil.copy(root / "runs" / "a" / "result.json", root / ".hidden")
    return root


@pytest.fixture
def server(results: Path) -> Iterator[ThreadingHTTPServer]:
    made = viewing.make_server(results)
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def address(server: ThreadingHTTPServer) -> str:
    host, port = server.server_address[:2]
    return f"{host!s}:{port}"


def ask(server: ThreadingHTTPServer, path: str, host: str | None = None, method: str = "GET"):
    """Return the status and the page that a request gets."""
    connection = http.client.HTTPConnection(address(server))
    connection.request(method, path, headers={"Host": host or address(server)})
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, body


def test_the_list_has_every_result_and_no_part_of_one(server: ThreadingHTTPServer) -> None:
    status, page = ask(server, "/")
    assert status == 200
    names = ["curves/a", "curves/b", "damaged", "drive &lt;x&gt;", "runs/a", "runs/b"]
    assert page.count('type="checkbox"') == len(names)
    assert all(f'value="{name}"' in page for name in names)
    assert "drive <x>" not in page
    assert page.count("</td><td>compare</td><td>lru, arc</td><td>256KiB to 512KiB</td>") == 2
    assert page.count("</a></td><td>hit ratio") >= 2, "the best stands beside the name"
    assert "<td>none, sepbit</td><td>60.0% spare</td>" in page
    assert "</a></td><td>write amplification" in page
    assert "://" not in page.replace("http://www.w3.org", "")


@pytest.mark.parametrize(
    ("path", "status", "part"),
    [
        ("/result?at=runs/a", 200, "Hit ratio by cache size"),
        ("/result?at=drive%20%3Cx%3E", 200, "sepbit"),
        ("/compare?at=runs/a&at=runs/b", 200, "Results side by side"),
        ("/curves?at=curves/a&at=curves/b&at=drive%20%3Cx%3E", 200, "Miss-ratio curves"),
        ("/compare?at=runs/a&at=drive%20%3Cx%3E", 422, "no measure in common"),
        ("/compare?at=runs/a", 422, "at least two"),
        ("/compare", 422, "at least two"),
        ("/curves", 422, "found no curves"),
        ("/result?at=damaged", 422, "damaged/result.json"),
        ("/result?at=../../etc", 404, "no such result"),
        ("/result?at=/etc", 404, "no such result"),
        ("/result?at=.hidden", 404, "no such result"),
        ("/etc/passwd", 404, "no such page"),
        ("/compare?" + "&".join(["at=runs/a"] * 65), 400, "at most 64"),
        ("/favicon.ico", 204, ""),
    ],
)
def test_a_request_gets_a_page(
    server: ThreadingHTTPServer, path: str, status: int, part: str
) -> None:
    found, page = ask(server, path)
    assert found == status
    assert part in page


def test_only_reads_under_the_own_name_are_answered(server: ThreadingHTTPServer) -> None:
    assert ask(server, "/", host="elsewhere.example")[0] == 403
    assert ask(server, "/", host="localhost:1")[0] == 403
    assert ask(server, "/", method="POST")[0] == 501
    assert server.server_address[0] == "127.0.0.1"


def test_a_reader_filters_opens_compares_and_overlays(server: ThreadingHTTPServer) -> None:
    base = f"http://{address(server)}"
    with chromium() as browser, window(browser, 1280) as view:
        page = view.page
        page.goto(f"{base}/")
        page.fill("#filter", "RUNS/A")
        assert page.locator("#results tr:visible").count() == 1
        assert page.inner_text("#count") == "1 of 6"
        page.fill("#filter", "runs")
        for box in page.locator("#results tr:visible input").all():
            box.check()
        page.click("text=Set side by side")
        page.wait_for_function(DRAWN)
        assert page.inner_text("h1") == "Results side by side"
        page.click("text=All results")
        page.check("input[value='curves/a']")
        page.check("input[value='curves/b']")
        page.click("text=Overlay curves")
        page.wait_for_function(DRAWN)
        legend = json.loads(page.locator('script[type="application/json"]').inner_text())
        names = [entry["name"] for entry in legend["legends"][0]["entries"]]
        assert names == ["a", "b"]
        for name in ("runs/a", "drive <x>"):
            page.goto(f"{base}/result?at={quote(name, safe='')}")
            page.wait_for_function(DRAWN)
        assert view.messages == []
        assert all(url.startswith(base) for url in view.requests)
