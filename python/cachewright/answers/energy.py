"""Records of `energy`, generated: see `cachewright.answers`."""

from __future__ import annotations

from cachewright.record import Record


class DeviceEnergy(Record):
    """Energy of one device."""

    # Energy of the whole replay, in joules.
    joules: float
    # Mean power, in watts; null for a replay of no length.
    watts: float | None = None
    # Joules per command of a device, or per request of all tenants; null without any.
    joules_per_request: float | None = None
    # Joules per gibibyte read and written; null without any.
    joules_per_gib: float | None = None
    # Joules by what they were spent on.
    parts: dict[str, float]


class TotalEnergy(Record):
    """Energy of all devices whose power is known."""

    # Energy of the whole replay, in joules.
    joules: float
    # Mean power, in watts; null for a replay of no length.
    watts: float | None = None
    # Joules per command of a device, or per request of all tenants; null without any.
    joules_per_request: float | None = None
    # Joules per gibibyte read and written; null without any.
    joules_per_gib: float | None = None
    # Devices whose power is not known.
    unknown_devices: int
