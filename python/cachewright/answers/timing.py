"""Records of `timing`, generated: see `cachewright.answers`."""

from __future__ import annotations

from cachewright.answers.channels import BlockRegions, Channels, Migrations
from cachewright.answers.device import Device
from cachewright.answers.drive import CachedDrive
from cachewright.answers.energy import TotalEnergy
from cachewright.answers.store import Store
from cachewright.record import Record, absent


class Throughput(Record):
    """Throughput in windows of one width."""

    # Width of a window.
    window_ns: int
    # The windows of each tenant.
    tenants: tuple[TenantThroughput, ...]


class TenantThroughput(Record):
    """Throughput of one tenant over its whole windows after the warm-up."""

    # Name of the tenant.
    name: str
    # Windows that mean and deviation are over.
    windows: int
    # Mean of bytes answered per second.
    bytes_per_s_mean: float
    # Standard deviation of bytes answered per second.
    bytes_per_s_sd: float
    # Mean over deviation (at least one request per window), a ratio; null where all are 0.
    bytes_mean_over_sd: float | None = None
    # Deviation over mean, a ratio; null where all are 0.
    bytes_sd_over_mean: float | None = None
    # Mean of requests answered per second.
    requests_per_s_mean: float
    # Standard deviation of requests answered per second.
    requests_per_s_sd: float
    # Mean over deviation (at least one request per window), a ratio; null where all are 0.
    requests_mean_over_sd: float | None = None
    # Deviation over mean, a ratio; null where all are 0.
    requests_sd_over_mean: float | None = None
    # Per window from time 0: requests answered, their bytes.
    series: tuple[tuple[int, int], ...]


class Timing(Record):
    """What a timed replay measured."""

    # How volumes lie on the backing devices.
    layout: str
    # When everything was done.
    end_ns: int
    # Blocks read ahead of their use.
    read_ahead_blocks: int
    # Dirty blocks written back while they stayed in the cache.
    cleaned_blocks: int
    # Response times of all tenants together.
    total: ResponseTimes
    # Response times of each tenant.
    tenants: tuple[TenantTiming, ...]
    # The devices; each member of an array stands by itself.
    devices: tuple[Device, ...]
    # The numbers of Little's law.
    little: LittlesLaw
    # Requests, bytes and mean response over time.
    series: ResponseSeries
    # Throughput in windows; absent unless asked for.
    throughput: Throughput | None = absent()
    # Channels of the first device; absent for a device without flash.
    channels: Channels | None = absent()
    # Blocks moved on the cache device; absent where none moved.
    migrations: Migrations | None = absent()
    # Where the tenants' blocks lie on the cache device; absent where channels have no layout.
    rooms: BlockRegions | None = absent()
    # The drive with a data cache that is the whole machine; absent on other machines.
    drive: CachedDrive | None = absent()
    # Energy of all devices whose power is known; absent where none is known.
    energy: TotalEnergy | None = absent()
    # The log-structured stores together; absent without stores.
    store: Store | None = absent()
    # Fairness between tenants; absent unless each tenant is replayed alone too.
    fairness: Fairness | None = absent()


class ResponseTimes(Record):
    """Response times of some requests."""

    # Requests answered.
    requests: int
    # Mean response time.
    mean_ns: float
    # Response time that half of the requests do not exceed.
    p50_ns: int
    # Response time that 90 % of the requests do not exceed.
    p90_ns: int
    # Response time that 99 % of the requests do not exceed.
    p99_ns: int
    # Response time that 99.9 % of the requests do not exceed.
    p999_ns: int
    # Longest response time.
    max_ns: int
    # Reads answered.
    reads: int
    # Mean response time of reads.
    read_mean_ns: float
    # Response time that 99 % of the reads do not exceed.
    read_p99_ns: int
    # Writes answered.
    writes: int
    # Mean response time of writes.
    write_mean_ns: float
    # Response time that 99 % of the writes do not exceed.
    write_p99_ns: int
    # Requests answered per second, from the first arrival to the last answer.
    throughput_per_s: float
    # Bytes read and written per second, over the same time.
    bytes_per_s: float
    # When the last request was answered.
    finished_ns: int
    # Mean time per request by part, in nanoseconds; the parts that are not zero.
    breakdown_ns: dict[str, float]


class TenantTiming(Record):
    """Response times of one tenant."""

    # Name of the tenant.
    name: str
    # Requests answered.
    requests: int
    # Mean response time.
    mean_ns: float
    # Response time that half of the requests do not exceed.
    p50_ns: int
    # Response time that 90 % of the requests do not exceed.
    p90_ns: int
    # Response time that 99 % of the requests do not exceed.
    p99_ns: int
    # Response time that 99.9 % of the requests do not exceed.
    p999_ns: int
    # Longest response time.
    max_ns: int
    # Reads answered.
    reads: int
    # Mean response time of reads.
    read_mean_ns: float
    # Response time that 99 % of the reads do not exceed.
    read_p99_ns: int
    # Writes answered.
    writes: int
    # Mean response time of writes.
    write_mean_ns: float
    # Response time that 99 % of the writes do not exceed.
    write_p99_ns: int
    # Requests answered per second, from the first arrival to the last answer.
    throughput_per_s: float
    # Bytes read and written per second, over the same time.
    bytes_per_s: float
    # When the last request was answered.
    finished_ns: int
    # Mean time per request by part, in nanoseconds; the parts that are not zero.
    breakdown_ns: dict[str, float]
    # Blocks asked for while they were still being read.
    in_flight_blocks: int
    # Block accesses that waited for the backing device to read.
    demand_misses: int
    # Mean response time alone.
    alone_mean_ns: float | None = absent()
    # Response time that half of the requests do not exceed, alone.
    alone_p50_ns: int | None = absent()
    # Response time that 90 % of the requests do not exceed, alone.
    alone_p90_ns: int | None = absent()
    # Response time that 99 % of the requests do not exceed, alone.
    alone_p99_ns: int | None = absent()
    # Response time that 99.9 % of the requests do not exceed, alone.
    alone_p999_ns: int | None = absent()
    # Mean response time beside others over that alone, a ratio; 1 without requests.
    slowdown: float | None = absent()


class LittlesLaw(Record):
    """Little's law: requests inside are the rate of arrivals times the mean response."""

    # Mean number of requests inside.
    mean_inside: float
    # Requests that arrive per second.
    arrivals_per_s: float
    # Mean response time.
    mean_response_ns: float
    # Highest number of requests inside.
    max_inside: int


class ResponseSeries(Record):
    """Requests over time in bins of one width."""

    # Width of a bin.
    width_ns: int
    # Per tenant, per bin: requests answered, their bytes, mean response in nanoseconds.
    tenants: tuple[tuple[tuple[int, int, float], ...], ...]


class Fairness(Record):
    """How even the slowdowns of tenants are."""

    # Largest slowdown, a ratio.
    max_slowdown: float
    # Jain's index of the tenants' progress, 0 to 1.
    jain: float
    # Least progress over most progress, 0 to 1.
    min_over_max: float
