"""One phase of an application: `run_application.py NAME prepare|run JSON`.

For: the child process that a capture starts. Must never know: how a trace is recorded. JSON holds
the place and the settings.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from application import Application, Place, settled
from backups import Backups
from databases import Oltp, Scan
from desktops import Desktops
from dss import Dss
from factorise import Lu
from farm import Farm
from mail import Mail
from media import Video
from queues import Queue
from search import Search
from series import Series
from servers import File, Web
from stores import Kv, Overwrite

APPLICATIONS: tuple[type[Application], ...] = (
    *(Oltp, Scan, Dss, Kv, Mail, File, Web, Video, Lu, Overwrite),
    *(Queue, Search, Series, Desktops, Backups, Farm),
)
KINDS = {one.name: one for one in APPLICATIONS}


def main() -> None:
    """Run the phase."""
    name, phase, text = sys.argv[1:]
    wanted = json.loads(text)
    place = wanted["place"]
    data, scratch = (Path(place.pop(key)) for key in ("data", "scratch"))
    try:
        application = settled(KINDS[name], Place(data, scratch, **place), wanted["settings"])
        if phase == "prepare":
            application.prepare()
        else:
            application.run()
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        sys.exit(f"{name}: {phase}: {error}")


if __name__ == "__main__":
    main()
