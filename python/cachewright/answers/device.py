"""Records of `device`, generated: see `cachewright.answers`."""

from __future__ import annotations

from cachewright.answers.energy import DeviceEnergy
from cachewright.answers.flash import Flash
from cachewright.record import Record, absent


class Device(Record):
    """How one device was used."""

    # Its part in the machine, numbered from 1 within an array.
    name: str
    # Name of its model; null where the stack has none.
    model: str | None = None
    # Commands that read.
    reads: int
    # Commands that write.
    writes: int
    # Bytes read.
    read_bytes: int
    # Bytes written.
    write_bytes: int
    # Share of the time with a command inside, 0 to 1.
    busy: float
    # Mean number of commands inside.
    mean_inside: float
    # Highest number of commands inside.
    max_inside: int
    # Energy; absent where no power is known.
    energy: DeviceEnergy | None = absent()
    # Its flash; absent for a device without flash, and for a drive that is the whole machine.
    flash: Flash | None = absent()
