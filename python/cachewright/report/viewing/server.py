"""The server of `view`: this machine's own address, reads only.

For: turning a request into a page. Must never know: what a page shows. A name in a request is
looked up in the list of results and never joined to a path. A request for another host's name is
refused, so that a page from elsewhere cannot read results under a name of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from cachewright import words
from cachewright._native import Error, SpecError
from cachewright.report.viewing import pages
from cachewright.report.viewing.catalogue import Entry, scan

ADDRESS = "127.0.0.1"
ICON = "/favicon.ico"
# Results that one page may compare.
MAX_CHOSEN = 64
SECONDS_PER_REQUEST = 30


def make_server(root: Path, port: int = 0) -> ThreadingHTTPServer:
    """Return a server of the results below `root`; port 0 takes a free one.

    Errors: `SpecError` for a root that is no folder, or a port that is not free.
    """
    if not root.is_dir():
        kind = "a file" if root.exists() else "no such folder"
        raise SpecError(f"{root}: found {kind}, expected a folder with results below it")
    try:
        server = ThreadingHTTPServer((ADDRESS, port), partial(_Handler, root.resolve()))
    except OSError as error:
        raise SpecError(
            f"--port: found {port} ({words.reason(error)}), expected a free port"
        ) from None
    server.daemon_threads = True
    return server


class _Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    timeout = SECONDS_PER_REQUEST
    server_version, sys_version = "cachewright", ""

    def __init__(self, root: Path, *arguments: object) -> None:
        self.root = root
        super().__init__(*arguments)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        """Answer with a page."""
        if not self._is_own_host():
            self._send(HTTPStatus.FORBIDDEN, pages.refused("expected a request to this machine"))
            return
        asked = urlsplit(self.path)
        if asked.path == ICON:
            self._send(HTTPStatus.NO_CONTENT, "")
            return
        try:
            names = parse_qs(asked.query, max_num_fields=MAX_CHOSEN).get("at", [])
            self._send(HTTPStatus.OK, self._page(asked.path, names))
        except LookupError as error:
            self._send(HTTPStatus.NOT_FOUND, pages.refused(str(error.args[0])))
        except (Error, OSError) as error:
            self._send(HTTPStatus.UNPROCESSABLE_ENTITY, pages.refused(str(error)))
        except ValueError:
            sentence = f"found too many results, expected at most {MAX_CHOSEN}"
            self._send(HTTPStatus.BAD_REQUEST, pages.refused(sentence))

    def _page(self, path: str, names: Sequence[str]) -> str:
        entries = scan(self.root)
        if path == "/":
            return pages.listing(self.root, list(entries.values()))
        chosen = [self._entry(entries, name) for name in names]
        match path:
            case "/result" if len(chosen) == 1:
                return pages.one(chosen[0])
            case "/compare":
                return pages.compared(chosen)
            case "/curves":
                return pages.curves(chosen)
        raise LookupError("found no such page, expected one of the list")

    def _entry(self, entries: dict[str, Entry], name: str) -> Entry:
        if name not in entries:
            raise LookupError(f"{name}: found no such result, expected one of the list")
        return entries[name]

    def _is_own_host(self) -> bool:
        _, port, *_ = self.connection.getsockname()
        return self.headers.get("Host") in {f"{ADDRESS}:{port}", f"localhost:{port}"}

    def _send(self, status: HTTPStatus, page: str) -> None:
        body = page.encode("utf-8", errors="replace")
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Keep standard error for errors."""
