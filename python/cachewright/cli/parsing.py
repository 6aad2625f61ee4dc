"""How the text of options is read.

For: values that are pairs, lists or shares. Must never know: what a setting means; the experiment
crate checks keys, values and units.
"""

from __future__ import annotations

from cachewright._native import SpecError

_OPENERS = {"[": "]", "{": "}", "(": ")"}
_QUOTES = "\"'"
FIGURE_KINDS = ("svg", "png", "pdf")


def split_pair(text: str, option: str) -> tuple[str, str]:
    """Split KEY=VALUE. Errors: `SpecError` when there is no `=` or no key."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise SpecError(f"{option}: found `{text}`, expected KEY=VALUE")
    return key.strip(), value.strip()


def settings(texts: list[str] | None) -> dict[str, str]:
    """Return the pairs of `--set`; of one key given twice the last holds."""
    return dict(split_pair(text, "--set") for text in texts or ())


def vary(texts: list[str]) -> dict[str, list[str]]:
    """Return the pairs of `--vary KEY=V1,V2,...`; a key given twice adds its values."""
    found: dict[str, list[str]] = {}
    for text in texts:
        key, value = split_pair(text, "--vary")
        found.setdefault(key, []).extend(split_values(value))
    if any(not value for values in found.values() for value in values):
        raise SpecError(f"--vary: found an empty value in `{' '.join(texts)}`, expected KEY=V1,V2")
    return found


def figure_kinds(text: str | None) -> list[str]:
    """Return the kinds of figure files asked for. Errors: `SpecError` for an unknown one."""
    kinds = comma_list(text)
    unknown = [kind for kind in kinds if kind not in FIGURE_KINDS]
    if unknown:
        raise SpecError(f"--figures: found `{unknown[0]}`, expected svg, png or pdf")
    return kinds


def split_values(text: str) -> list[str]:
    """Split at commas that stand in no bracket and no quotation.

    >>> split_values('lru,{ name = "s3-fifo", small_share = 0.2 },arc')
    ['lru', '{ name = "s3-fifo", small_share = 0.2 }', 'arc']
    """
    parts, start, depth, quote = [], 0, 0, ""
    for index, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in _QUOTES:
            quote = char
        elif char in _OPENERS:
            depth += 1
        elif char in _OPENERS.values():
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    return [*parts, text[start:].strip()]


def comma_list(text: str | None) -> list[str]:
    """Split a plain comma-separated option; nothing gives an empty list."""
    return [part.strip() for part in text.split(",")] if text else []


def share(text: str) -> float:
    """Return a part of a whole (`70%`, `0.7`). Errors: `SpecError`."""
    try:
        return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise SpecError(f"--share: found `{text}`, expected a part such as 70%") from None
