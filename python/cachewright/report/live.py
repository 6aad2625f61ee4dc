"""What makes the figures of a page live: Vega's libraries and the page's own script.

For: the end of every page with figures. Must never know: the figures. Both stand in the page, once;
its policy forbids to load anything.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

# Vega makes functions of its expressions, which the policy calls `unsafe-eval`.
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline' 'unsafe-eval'; "
    "img-src data:; base-uri 'none'; form-action 'none'"
)
# Where scripts are off, the still figures stand in the place of the live ones.
WITHOUT_SCRIPTS = "<noscript><style>.panels { display: none; }</style></noscript>\n"


@cache
def scripts() -> str:
    """Return the scripts of a page with figures."""
    import vl_convert

    from cachewright.report.figure import VEGA_LITE

    library = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VEGA_LITE)
    own = (files("cachewright.report") / "live.js").read_text(encoding="utf-8")
    return f'<script type="module">{library}</script>\n<script type="module">{own}</script>\n'
