#!/usr/bin/env python3
"""Prints what python/pyproject.toml asks for, one requirement per line.

For: installing dependencies and development tools before the extension is built, so that later
builds need no network. Must never know: versions; they stand in pyproject.toml alone.
"""

import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parent.parent / "python" / "pyproject.toml"


def main() -> None:
    """Print dependencies and the extras."""
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    # The laboratory is installed from this tree.
    wanted = [one for name, extra in extras.items() if name != "lab" for one in extra]
    print("\n".join([*project["dependencies"], *wanted]))


if __name__ == "__main__":
    main()
