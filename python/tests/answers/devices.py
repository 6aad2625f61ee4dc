"""Devices of the stacks that are asked about: small drives, disks, and some set in every part.

For: `machines` and `studies`. Must never know: stacks.
"""

from __future__ import annotations

import tomllib

from answers.case import Tables

FLAT: Tables = {"model": "fixed-latency", "read": "1ms", "write": "2ms", "parallelism": 4}
CACHE: Tables = {"model": "fixed-latency", "idle_power": 1.5, "read_energy": 20.0}
DISK: Tables = {"model": "hdd-7200-2tb"}
TIERED: Tables = {"cache": CACHE, "backing": DISK}

GEOMETRY: Tables = {
    "channels": 2,
    "chips": 2,
    "dies": 1,
    "planes": 2,
    "blocks": 32,
    "over_provisioning": 0.28,
}
PAGE_8K: Tables = {**GEOMETRY, "block": "256KiB"}
PAGE_16K: Tables = {**GEOMETRY, "block": "512KiB", "capacity": "auto"}
DRIVES: dict[str, Tables] = {
    "mqsim-default": PAGE_8K,
    "icache-table1": {**PAGE_8K, "idle_power": 2.0, "read_energy": 60.0, "channel_energy": 5.0},
    "icache-modern": {**PAGE_8K, "arbitration": "weighted", "fetch_size": 8},
    "open-channel-16": {**PAGE_16K, "channel_groups": "all"},
    "sata-850pro": PAGE_16K,
    "nvme-tlc": {**PAGE_16K, "block": "768KiB"},
    "shiro-40gib": {**PAGE_16K, "separation": "sepbit"},
}
"""A small drive of every model."""

DRIVE: Tables = {"model": "icache-table1", **PAGE_8K}
CHANNELS: Tables = {
    "model": "open-channel-16",
    "channels": 6,
    "chips": 1,
    "planes": 1,
    "blocks": 64,
    "block": "64KiB",
    "page": "4KiB",
    "over_provisioning": 0.25,
}

DRIVE_SET: Tables = tomllib.loads(
    """
queue_depth = 16
command_slots = 12
arbitration = "round-robin"
arbitration_burst = 2
command_time = "1us"
lanes = 2
lane_rate = 2.0
packet_payload = "256B"
dram_rate = 800.0
dram_burst = "8B"
dram_channels = 2
write_buffer = "128KiB"
write_buffer_time = "2us"
dies = 2
sector = "4KiB"
read_time_msb = "90us"
program_time_msb = "1500us"
suspend = "both"
suspends_most = 2
channel_width = 2
channel_timing = "exact"
die_interleave = true
multi_plane = false
copy_back = true
preemptible_cleaning = true
priority_classes = "urgent low"
plane_order = "pdwc"
clean_below = 0.1
clean_hard_below = 0.05
wear_spread = 3
map_cache = "1KiB"
map_sharing = "split"
unwritten = "allocate"
active_power = 1.0
program_energy = 300.0
erase_energy = 900.0
endurance = 3000
fill = "replay"
occupancy = 0.6
overwrites = 1.0
"""
)
"""What a drive can be told, otherwise than by default."""

DISK_SET: Tables = tomllib.loads(
    """
capacity = "16GiB"
sector_bytes = 4096
rpm = 5400
heads = 2
zones = 4
outer_mb_per_s = 90.0
inner_mb_per_s = 50.0
single_track = "1ms"
average_seek = "9ms"
full_stroke = "20ms"
head_switch = "1ms"
buffer = "2MiB"
segments = 4
read_ahead = "128KiB"
link_mb_per_s = 150.0
schedule = "sstf"
queue_depth = 8
age_limit = "50ms"
idle_power = 5.0
seek_power = 2.0
transfer_power = 1.0
"""
)
"""The same of a disk."""
