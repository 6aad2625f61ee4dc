"""The navigation of the site: which pages stand in which section, in which order.

For: `of`. Must never know: the text of any page. A page that no section takes is a warning of the
builder, and so an error.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

# Sections: pages in their order; a pattern stands for what earlier lines have not taken.
SECTIONS: list[tuple[str, list[str]]] = [
    ("Home", ["README.md"]),
    (
        "Start",
        [
            "docs/README.md",
            "docs/coming-from.md",
            "docs/workload.md",
            "docs/which-scheme.md",
            "docs/training.md",
            "docs/python.md",
            "docs/serve.md",
            "docs/serve-guarantees.md",
            "docs/serve-reference.md",
            "docs/operate.md",
            "docs/rehearse.md",
        ],
    ),
    ("Tutorials", []),
    (
        "Manual",
        [
            "docs/stack-file.md",
            "docs/command-line.md",
            "docs/results.md",
            "docs/result.md",
            "docs/trace-format.md",
            "docs/formats.md",
            "docs/*.md",
            "data/*.md",
        ],
    ),
    ("Schemes", []),
    (
        "Laboratory",
        [
            "lab/README.md",
            "lab/papers/*/README.md",
            "lab/reproduce.md",
            "lab/judgement.md",
            "lab/*.md",
            "lab/*/README.md",
        ],
    ),
    (
        "Design",
        [
            "ARCHITECTURE.md",
            "DESIGN.md",
            "docs/design/*.md",
            "CONTRIBUTING.md",
            "CHANGELOG.md",
        ],
    ),
    ("Measurements", ["benches/README.md", "benches/*.md", "crates/**/*.md"]),
]


def of(pages: Path, made: dict[str, list[Any]]) -> list[Any]:
    """Return the navigation over the gathered pages; sections of `made` are given whole."""
    taken = set(_paths(made))
    found: list[Any] = []
    for title, patterns in SECTIONS:
        if title in made:
            found.append({title: made[title]})
            continue
        section = []
        for pattern in patterns:
            for path in sorted(pages.glob(pattern)):
                name = path.relative_to(pages).as_posix()
                if name not in taken:
                    taken.add(name)
                    section.append(name)
        if section:
            found.append({title: section})
    return found


def _paths(made: Any) -> list[str]:
    """Return the paths in a part of the navigation."""
    if isinstance(made, str):
        return [made]
    values = made.values() if isinstance(made, dict) else made
    return [path for one in values for path in _paths(one)]
