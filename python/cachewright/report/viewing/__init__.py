"""A local page to browse results below a folder.

For: the command `view`. Must never know: how results are made. `make_server` gives a server of this
machine's own address; it answers reads only, and opens no file that its list does not name.
"""

from __future__ import annotations

from cachewright.report.viewing.server import make_server

__all__ = ["make_server"]
