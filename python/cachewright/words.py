"""Numbers as people read them: counts, sizes, durations and ratios with sensible precision.

For: every table, chart and message of the package. Must never know: what the numbers mean.
Units: bytes and nanoseconds come in, text goes out; `nothing` stands for an absent value. The text
of a number keeps its value, so that a table of texts is a table of numbers too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

NOTHING = "-"
# From this share of a unit on, three digits round up to one of it.
ROUNDS_UP = 0.9995

# Digits of a size that reads back as no more.
KEPT_DIGITS = 4

_BINARY = (("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10))
_TIMES = ((3_600e9, "h"), (60e9, "min"), (1e9, "s"), (1e6, "ms"), (1e3, "us"))


class Number(str):
    """The text of a number, with the value it was made from (in the unit of the caller)."""

    __slots__ = ("value",)
    value: float | None

    def __new__(cls, text: str, value: float | None = None) -> Self:
        """Return `text` that keeps `value`."""
        made = super().__new__(cls, text)
        made.value = value
        return made


def value_of(text: str) -> float | None:
    """Return the value that a text was made from; nothing for any other text."""
    return text.value if isinstance(text, Number) else None


def significant(number: float, digits: int = 3) -> str:
    """Return `number` with `digits` significant digits, without exponent or trailing zeros."""
    return Number(_significant(number, digits), number)


def _significant(number: float, digits: int) -> str:
    if number == 0:
        return "0"
    text = f"{number:.{digits}g}"
    if "e" not in text:
        return text
    if abs(number) >= 1:
        return f"{float(text):,.0f}"
    from decimal import Decimal

    return f"{Decimal(text):f}"


def fixed(number: float | None, digits: int) -> str:
    """Return `number` with so many decimals: `1.540`."""
    return NOTHING if number is None else Number(f"{number:.{digits}f}", number)


def change(value: float, base: float, digits: int = 1) -> str:
    """Return how far `value` is above or below `base`, in per cent: `+4.2%`; its value a share."""
    return NOTHING if base == 0 else signed(value / base - 1, digits)


def signed(share: float, digits: int = 1) -> str:
    """Return a share in per cent with its sign: `-4.2%`."""
    return Number(f"{100 * share:+.{digits}f}%", share)


def times(value: float, base: float) -> str:
    """Return how many times `base` a value is: `1.17`."""
    return NOTHING if base == 0 else significant(value / base)


def count(number: float | None) -> str:
    """Return a count with thousands separated: `1,234,567`."""
    return NOTHING if number is None else Number(f"{number:,.0f}", number)


def counted(number: int, noun: str) -> str:
    """Return a count with its noun: `1 request`, `2,000 requests`."""
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"


def size(size_bytes: float | None) -> str:
    """Return a size in the largest binary unit that keeps it at or above one: `1.5GiB`."""
    if size_bytes is None:
        return NOTHING
    for unit, shift in _BINARY:
        scaled = size_bytes / (1 << shift)
        if scaled >= ROUNDS_UP:
            text = f"{scaled:.0f}" if scaled == int(scaled) else significant(scaled)
            return Number(f"{text}{unit}", size_bytes)
    return Number(f"{size_bytes:.0f}B", size_bytes)


def readable(text: str, size_bytes: int) -> str:
    """Return the text of a size; one of many digits in a larger unit, to four digits.

    >>> readable("410208KiB", 410208 << 10), readable("16MiB", 16 << 20), readable("10%wss", 7)
    ('400.6MiB', '16MiB', '10%wss')
    """
    digits = text.removesuffix("B").rstrip("KMGTi")
    is_long = text.endswith("B") and digits.isdigit() and len(digits) > KEPT_DIGITS
    return size_at_least(size_bytes) if is_long else text


def size_at_most(size_bytes: int) -> str:
    """Return a size that reads back as no more than this: what a key may be set to."""
    for unit, shift in _BINARY:
        if whole := size_bytes >> shift:
            digits = max(KEPT_DIGITS - len(str(whole)), 0)
            number, part = divmod((size_bytes * 10**digits) >> shift, 10**digits)
            text = f"{number}.{part:0{digits}d}".rstrip("0").rstrip(".") if part else f"{number}"
            return Number(f"{text}{unit}", size_bytes)
    return Number(f"{size_bytes}B", size_bytes)


def size_at_least(size_bytes: int) -> str:
    """Return a size that reads back as no less than this, to four digits."""
    for unit, shift in _BINARY:
        if whole := size_bytes >> shift:
            scale = 10 ** max(KEPT_DIGITS - len(str(whole)), 0)
            number = -((-size_bytes * scale) >> shift) / scale
            return Number(f"{number:f}".rstrip("0").rstrip(".") + unit, size_bytes)
    return Number(f"{size_bytes}B", size_bytes)


def duration(time_ns: float | None) -> str:
    """Return a duration in the largest unit that keeps it at or above one: `2.5s`."""
    if time_ns is None:
        return NOTHING
    for scale, unit in _TIMES:
        if time_ns >= scale * ROUNDS_UP:
            return Number(f"{significant(time_ns / scale)}{unit}", time_ns)
    return Number(f"{time_ns:.0f}ns", time_ns)


def whole_duration(time_ns: int) -> str:
    """Return a duration in the largest unit of which it is a whole number, as it is written.

    >>> whole_duration(100_000_000_000), whole_duration(120_000_000_000), whole_duration(1_500_000)
    ('100s', '2min', '1500us')
    """
    for scale, unit in _TIMES:
        if time_ns and time_ns % scale == 0:
            return f"{time_ns // int(scale)}{unit}"
    return f"{time_ns}ns"


def clock(seconds: float) -> str:
    """Return whole seconds as `m:ss` or `h:mm:ss`."""
    minutes, rest = divmod(round(max(seconds, 0.0)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def short(number: float) -> str:
    """Return a count with three digits and a letter: `12.3M`, `850k`."""
    for scale, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= scale * ROUNDS_UP:
            return f"{significant(number / scale)}{letter}"
    return significant(number)


def ratio(value: float | None) -> str:
    """Return a ratio with four decimals: `0.6123`."""
    return NOTHING if value is None else Number(f"{value:.4f}", value)


def percent(value: float | None) -> str:
    """Return a ratio as a percentage with one decimal: `61.2%`."""
    return NOTHING if value is None else Number(f"{100 * value:.1f}%", value)


def setting(value: Any) -> str:
    """Return a setting's value as one short label; a table gives its name, then its keys."""
    if isinstance(value, Mapping):
        rest = {key: item for key, item in value.items() if key != "name"}
        inner = ", ".join(f"{key}={setting(item)}" for key, item in rest.items())
        name = str(value.get("name", ""))
        return f"{name}({inner})" if inner else name
    if isinstance(value, str) and value.startswith("{"):
        return setting(_table(value))
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return significant(value, 6)
    if isinstance(value, list):
        return ", ".join(setting(item) for item in value)
    return str(value)


def _table(text: str) -> Any:
    """Return an inline TOML table, or the text where it is none."""
    import tomllib

    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return f" {text}".strip("{}")


def reason(error: OSError) -> str:
    """Return why the system refused, without its number: `no such file or directory`."""
    return (error.strerror or str(error)).lower()
