"""Pictures of papers' pages: drawn from claims and tables, and known to be of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cachewright import SpecError
from cachewright_lab import pages, pictures
from cachewright_lab.pages import Paper, Picture

TABLE = """Max slowdown, 256MiB:

| mix | tenants | shared | icache |
|---|--:|--:|--:|
| Mix 1 | 2 | 1.42 | **1.19** |
| Mix 2 | 2 | 2.5 ± 0.1 | 1.85 = equal |
| 2 tenants, leaving one out, least | 2 | 2.06 | 1.62 |
"""
PAGE = f"""# a paper

<!-- begin picture claims -->
<!-- end -->

<!-- begin claims -->
<!-- end -->

<!-- begin picture fig8 -->
<!-- end -->

<!-- begin table fig8 -->
{TABLE}<!-- end -->
"""
CLAIMS = """
[[claim]]
name = "beside shared"
claim = "It falls"
source = "figure 8"
paper = "-42 %"
measure = "fig8/beside"
unit = "change"
at_most = -0.42

[[claim]]
name = "never"
claim = "It cannot be seen"
source = "section 9"
paper = "2 times"
untested = "the drive is not sold any more"
"""
DIGEST = """{"schema_version": 1, "paper": "one",
"own": {"figures": {}, "measures": {"fig8/beside": -0.5}, "tables": {}},
"elsewhere": {"figures": {}, "measures": {}, "tables": {}}}"""


def paper(folder: Path) -> Paper:
    """Return a paper with two claims and one table."""
    specs = folder / "papers" / "one"
    specs.mkdir(parents=True)
    (specs / "README.md").write_text(PAGE)
    (specs / "claims.toml").write_text(CLAIMS)
    (specs / "digest.json").write_text(DIGEST)
    (specs / "fig8.toml").write_text('[figure]\ntitle = "8"\n')
    return Paper.of(folder, "one")


def test_bars_are_of_rows_and_columns() -> None:
    """Counts and rows that say how far a mean can be trusted are no bars."""
    rows = pictures.of_table("fig8", TABLE, ()).plot.panels[0].layers[0].data.values
    found = {(one["row"], one["column"]): one["value"] for one in rows}
    assert found == {
        ("Mix 1", "shared"): 1.42,
        ("Mix 1", "icache"): 1.19,
        ("Mix 2", "shared"): 2.5,
        ("Mix 2", "icache"): 1.85,
    }


def test_a_panel_is_of_one_column() -> None:
    """Columns of different units have an axis each; a column that is not there is refused."""
    plot = pictures.of_table("fig8", TABLE, ("shared", "icache")).plot
    assert [panel.names for panel in plot.panels] == [2, 2]
    expected = "picture `fig8`: found column `equal`, expected one of `mix`, `tenants`, `shared`"
    with pytest.raises(SpecError, match=expected):
        pictures.of_table("fig8", TABLE, ("equal",))
    with pytest.raises(SpecError, match="found a table without numbers"):
        pictures.of_table("fig8", "| a | b |\n|---|---|\n| x | y |\n", ())


def test_a_picture_is_known_to_be_of_its_table(tmp_path: Path) -> None:
    """A picture is stale when its table or a value of its claims is another one."""
    one = paper(tmp_path)
    wanted = pages.pictures_of(one)
    assert [picture.path.name for picture in wanted] == ["claims.svg", "fig8.svg"]
    for picture in wanted:
        assert not pictures.is_of(picture.path, picture.source())
        picture.draw()
        assert pictures.is_of(picture.path, picture.source())
        assert picture.path.read_text().count("</svg>") == 1
    one.page.write_text(PAGE.replace("1.42", "1.43"))
    assert [pictures.is_of(p.path, p.source()) for p in wanted] == [True, False]
    one.page.write_text(PAGE.replace("begin table fig8", "begin table fig9"))
    with pytest.raises(SpecError, match="picture `fig8`: found no `table fig8` on the page"):
        wanted[1].source()


def test_a_page_opens_with_its_counts(tmp_path: Path) -> None:
    """Claims that cannot be tested are counted apart from those that were missed."""
    one = paper(tmp_path)
    one.page.write_text(PAGE.partition("<!-- begin picture fig8")[0])
    text = pages.written(one)
    assert "**2 claims: 1 met, 1 not testable here.**" in text
    assert "![claims](pictures/claims.svg)" in text
    assert Picture.of(paper(tmp_path / "again"), "picture fig4: a; b").columns == ("a", "b")
