"""The command `view`: a local page to browse the results below a folder.

For: starting and stopping the server. Must never know: what its pages show.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from cachewright.cli import output

Root = Annotated[Path, Parameter(help="A folder with result folders in it, at any depth.")]


def view(
    folder: Root,
    /,
    *,
    port: Annotated[int, Parameter(validator=Number(gte=0, lte=65535))] = 0,
) -> None:
    """Browse the results below a folder in a browser, until interrupted.

    The page is served to this machine only. It lists and filters results, opens their reports, sets
    several side by side and overlays their curves.

    Parameters
    ----------
    port
        Port of the page; 0 chooses a free one.

    """
    from cachewright.report.viewing import make_server

    with make_server(folder, port) as server:
        host, chosen = server.server_address[:2]
        output.say(f"view: http://{host!s}:{chosen}/ (stop with Ctrl-C)")
        sys.stdout.flush()
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return
