"""Links between the pages of the repository lead somewhere.

For: every Markdown page. Must never know: what a page says; links to other sites are not followed.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# A test by file and name, as pages of design name those that hold a decision.
NAMED_TEST = re.compile(r"`([\w./-]+\.(?:rs|py))::(\w+)`")
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)")


def test_links_between_pages_lead_to_files() -> None:
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benches/*.md")]
    pages += [*ROOT.glob("data/*.md"), *ROOT.glob("lab/**/*.md")]
    links = [(page, link) for page in pages for link in LINK.findall(page.read_text("utf-8"))]
    assert len(links) > 20
    broken = [
        f"{page.relative_to(ROOT)}: {link}"
        for page, link in links
        if not (page.parent / link).exists()
    ]
    assert broken == []


def _has_test(path: Path, name: str) -> bool:
    """Whether a file has a test of this name, and not only a function."""
    if not path.is_file():
        return False
    text = path.read_text("utf-8")
    if path.suffix == ".py":
        return name.startswith("test_") and f"def {name}(" in text
    attributes = r"#\[test\]\n(?:\s*(?:#|///).*\n)*"
    return re.search(rf"{attributes}\s*fn {name}\(", text) is not None


def test_tests_that_pages_of_design_name_are_there() -> None:
    pages = [(page.name, page.read_text("utf-8")) for page in ROOT.glob("docs/design/*.md")]
    named = [(page, *names) for page, text in pages for names in NAMED_TEST.findall(text)]
    assert len(named) > 20
    missing = [
        f"{page}: {path}::{name}" for page, path, name in named if not _has_test(ROOT / path, name)
    ]
    assert missing == []
