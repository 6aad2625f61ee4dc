"""What drives of a timed replay did, in words: how busy, how worn; and the energy of all devices.

For: the tables of the terminal and the report. Must never know: how they are drawn. Units: bytes,
nanoseconds and joules come in, text goes out; a share is a ratio in 0..1.
"""

from __future__ import annotations

from cachewright import words
from cachewright.answers import BusyShares, CachedDrive, Case, Dies, Flash, Timing, Wear

DAYS_PER_YEAR = 365.25
NS_PER_DAY = 86_400e9
MOST_DAYS = 1_000_000

Fact = tuple[str, str]
# A drive behind a cache, or one with a data cache that is the whole machine.
Drive = Flash | CachedDrive


def drives(case: Case) -> list[tuple[str, Drive]]:
    """Return what the flash of each drive of a timed case did, by the name of its device."""
    found = case.timing
    if found is None:
        return []
    if found.drive is not None:
        return [("drive", found.drive)]
    return [(device.name, device.flash) for device in found.devices if device.flash]


def facts(found: Drive) -> list[Fact]:
    """Return what is worth saying of a drive, a name and a value each."""
    filled = f"{words.percent(found.filled_share)} ({found.preconditioned})"
    pairs = [("filled at start", filled), ("flash", _work(found)), ("busy", _busy(found))]
    dies = found.dies
    stages = [(words.percent(share), name) for name, share in dies.stages.items() if share]
    if stages:
        text = ", ".join(f"{name} {share}" for share, name in stages)
        cleaning = f"; {words.percent(dies.cleaning)} for cleaning" if dies.cleaning else ""
        pairs.append((f"{dies.unit}s spent", text + cleaning))
    pairs += [("commands", text) for text in [_commands(found)] if text]
    pairs += [("waiting", text) for text in [_waiting(found)] if text]
    if found.predictions:
        text = f"{words.counted(found.predictions, 'prediction')}, "
        text += f"{words.count(found.awaited_predictions)} of them waited for, "
        pairs.append(("controller", f"{text}{words.percent(found.predicting)} of the time"))
    return [*pairs, ("wear", _wear(found.wear)), *_life(found.wear)]


def _work(found: Drive) -> str:
    text = f"write amplification {words.significant(found.write_amplification)}, "
    text += f"{words.counted(found.collections, 'block')} cleaned, "
    text += f"{words.counted(found.map_misses, 'page')} of the map read"
    if isinstance(found, CachedDrive) and found.held_writes:
        text += f", {words.counted(found.held_writes, 'write')} held for lack of room"
    return text


def _busy(found: Drive) -> str:
    unit = found.dies.unit
    parts = [f"channels {_range(found.channels)}", f"{unit}s {_range(found.dies)}"]
    if isinstance(found, CachedDrive):
        link = found.link_busy
        parts.append(f"link {words.percent(link.to_drive)} in, {words.percent(link.to_host)} out")
    return "; ".join(parts)


def _range(shares: BusyShares | Dies) -> str:
    low, mean, high = map(words.percent, (shares.min, shares.mean, shares.max))
    return f"{mean} ({low} to {high})"


def _commands(found: Drive) -> str:
    planes = found.multi_plane_reads + found.multi_plane_programs + found.multi_plane_erases
    counts = (
        ("of several planes", planes),
        ("suspended", found.suspends),
        ("copied within a plane", found.copy_backs),
    )
    return ", ".join(f"{words.count(number)} {name}" for name, number in counts if number)


def _waiting(found: Drive) -> str:
    queues = found.queues.items()
    longest = sorted(queues, key=lambda item: -item[1].mean_waiting)[:3]
    return ", ".join(
        f"{name} {words.significant(queue.mean_waiting)} "
        f"(most {words.count(queue.max_waiting)}, {words.duration(queue.mean_wait_ns)} each)"
        for name, queue in longest
        if queue.mean_waiting
    )


def _wear(wear: Wear) -> str:
    text = f"{words.significant(wear.mean)} erases per block ({words.count(wear.min)} to "
    text += f"{words.count(wear.max)}, standard deviation {words.significant(wear.stddev)}), "
    text += f"{words.size(wear.written_bytes)} written by the host, "
    text += f"{words.size(wear.programmed_bytes)} programmed"
    if wear.levelling_moves:
        text += f", {words.counted(wear.levelling_moves, 'block')} emptied to level it"
    return text


def _life(wear: Wear) -> list[Fact]:
    rated = wear.rated
    if rated is None or rated.life_days is None:
        return []
    rate = words.significant(wear.drive_writes_per_day)
    text = f"{life(rated.life_days)} at this rate ({rate} drive writes per day), "
    text += f"{words.size(rated.life_bytes)} by the host in all; "
    text += f"{words.percent(rated.max_used_share)} of {words.count(rated.cycles)} cycles "
    return [("life", text + "used by the most worn block")]


def life(days: float) -> str:
    """Return a life in years, days or less; beyond all sense as a bound."""
    if days > MOST_DAYS:
        return f"more than {words.count(MOST_DAYS)} days"
    if days >= 2 * DAYS_PER_YEAR:
        return f"{words.significant(days / DAYS_PER_YEAR)} years"
    return f"{words.significant(days)} days" if days >= 2 else words.duration(days * NS_PER_DAY)


def energy_fact(found: Timing) -> list[Fact]:
    """Return what all devices of a replay spent together, if it is known of any."""
    energy = found.energy
    if energy is None:
        return []
    text = f"{quantity(energy.joules, 'J')}, {quantity(energy.watts, 'W')} on average, "
    text += f"{quantity(energy.joules_per_request, 'J')} per request, "
    text += f"{quantity(energy.joules_per_gib, 'J')} per GiB"
    unknown = energy.unknown_devices
    if unknown:
        text += f"; without {words.counted(unknown, 'device')} whose power is not given"
    return [("energy", text)]


ENERGY_HEADERS = ("device", "where it went", "energy", "power", "per command", "per GiB")


def energy_rows(case: Case) -> list[list[str]]:
    """Return a row under `ENERGY_HEADERS` for each device whose power is known."""
    rows = []
    for device in case.timing.devices if case.timing else ():
        energy = device.energy
        if energy is None:
            continue
        whole = energy.joules or 1.0
        parts = [f"{name} {words.percent(part / whole)}" for name, part in energy.parts.items()]
        texts = [
            quantity(energy.joules, "J"),
            quantity(energy.watts, "W"),
            quantity(energy.joules_per_request, "J"),
            quantity(energy.joules_per_gib, "J"),
        ]
        rows.append([device.name, ", ".join(parts), *texts])
    return rows


def quantity(value: float | None, unit: str) -> str:
    """Return a quantity with the prefix that keeps it at or above one: `2.5mJ`."""
    if value is None:
        return words.NOTHING
    if value == 0:
        return f"0{unit}"
    for scale, prefix in ((1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "u")):
        if value >= scale * words.ROUNDS_UP:
            return f"{words.significant(value / scale)}{prefix}{unit}"
    return f"{words.significant(value * 1e9)}n{unit}"
