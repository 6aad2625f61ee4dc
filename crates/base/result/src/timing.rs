//! Times of a case on simulated devices, and the channels that tenants have of a drive (`timing` of
//! a case).
//!
//! Units: nanoseconds, bytes, blocks of the cache; the parts of a breakdown are means per request
//! and add up to the mean response; shares are of the replay's time.

use crate::Entries;
use crate::devices::{CachedDrive, Device, Store, TotalEnergy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a timed replay measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Timing {
    /// How volumes lie on the backing devices.
    pub layout: String,
    /// When everything was done.
    pub end_ns: u64,
    /// Blocks read ahead of their use.
    pub read_ahead_blocks: u64,
    /// Dirty blocks written back while they stayed in the cache.
    pub cleaned_blocks: u64,
    /// Response times of all tenants together.
    pub total: ResponseTimes,
    /// Response times of each tenant.
    pub tenants: Vec<TenantTiming>,
    /// The devices; each member of an array stands by itself.
    pub devices: Vec<Device>,
    /// The numbers of Little's law.
    pub little: LittlesLaw,
    /// Requests, bytes and mean response over time.
    pub series: ResponseSeries,
    /// Throughput in windows; absent unless asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput: Option<Throughput>,
    /// Channels of the first device; absent for a device without flash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channels: Option<Channels>,
    /// Blocks moved on the cache device; absent where none moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub migrations: Option<Migrations>,
    /// Where the tenants' blocks lie on the cache device; absent where channels have no layout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rooms: Option<BlockRegions>,
    /// The drive with a data cache that is the whole machine; absent on other machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drive: Option<CachedDrive>,
    /// Energy of all devices whose power is known; absent where none is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy: Option<TotalEnergy>,
    /// The log-structured stores together; absent without stores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<Store>,
    /// Fairness between tenants; absent unless each tenant is replayed alone too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fairness: Option<Fairness>,
}

/// Response times of some requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResponseTimes {
    /// Requests answered.
    pub requests: u64,
    /// Mean response time.
    pub mean_ns: f64,
    /// Response time that half of the requests do not exceed.
    pub p50_ns: u64,
    /// Response time that 90 % of the requests do not exceed.
    pub p90_ns: u64,
    /// Response time that 99 % of the requests do not exceed.
    pub p99_ns: u64,
    /// Response time that 99.9 % of the requests do not exceed.
    pub p999_ns: u64,
    /// Longest response time.
    pub max_ns: u64,
    /// Reads answered.
    pub reads: u64,
    /// Mean response time of reads.
    pub read_mean_ns: f64,
    /// Response time that 99 % of the reads do not exceed.
    pub read_p99_ns: u64,
    /// Writes answered.
    pub writes: u64,
    /// Mean response time of writes.
    pub write_mean_ns: f64,
    /// Response time that 99 % of the writes do not exceed.
    pub write_p99_ns: u64,
    /// Requests answered per second, from the first arrival to the last answer.
    pub throughput_per_s: f64,
    /// Bytes read and written per second, over the same time.
    pub bytes_per_s: f64,
    /// When the last request was answered.
    pub finished_ns: u64,
    /// Mean time per request by part, in nanoseconds; the parts that are not zero.
    pub breakdown_ns: Entries<f64>,
    /// Requests by response time: per bin that is not empty its longest time in nanoseconds, and
    /// requests. Eight bins divide a power of two. Absent in results that were written before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_time: Option<Vec<(u64, u64)>>,
}

/// Response times of one tenant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TenantTiming {
    /// Name of the tenant.
    pub name: String,
    /// Response times beside the other tenants.
    #[serde(flatten)]
    pub responses: ResponseTimes,
    /// Blocks asked for while they were still being read.
    pub in_flight_blocks: u64,
    /// Block accesses that waited for the backing device to read.
    pub demand_misses: u64,
    /// Response times alone; absent unless each tenant is replayed alone too.
    #[serde(flatten)]
    pub alone: Option<AloneTimes>,
}

/// Response times of a tenant alone with the whole cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AloneTimes {
    /// Mean response time alone.
    pub alone_mean_ns: f64,
    /// Response time that half of the requests do not exceed, alone.
    pub alone_p50_ns: u64,
    /// Response time that 90 % of the requests do not exceed, alone.
    pub alone_p90_ns: u64,
    /// Response time that 99 % of the requests do not exceed, alone.
    pub alone_p99_ns: u64,
    /// Response time that 99.9 % of the requests do not exceed, alone.
    pub alone_p999_ns: u64,
    /// Mean response time beside others over that alone, a ratio; 1 without requests.
    pub slowdown: f64,
}

/// Little's law: requests inside are the rate of arrivals times the mean response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LittlesLaw {
    /// Mean number of requests inside.
    pub mean_inside: f64,
    /// Requests that arrive per second.
    pub arrivals_per_s: f64,
    /// Mean response time.
    pub mean_response_ns: f64,
    /// Highest number of requests inside.
    pub max_inside: u64,
}

/// Requests over time in bins of one width.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResponseSeries {
    /// Width of a bin.
    pub width_ns: u64,
    /// Per tenant, per bin: requests answered, their bytes, mean response in nanoseconds.
    pub tenants: Vec<Vec<(u64, u64, f64)>>,
}

/// How even the slowdowns of tenants are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fairness {
    /// Largest slowdown, a ratio.
    pub max_slowdown: f64,
    /// Jain's index of the tenants' progress, 0 to 1.
    pub jain: f64,
    /// Least progress over most progress, 0 to 1.
    pub min_over_max: f64,
}

/// Throughput in windows of one width.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Throughput {
    /// Width of a window.
    pub window_ns: u64,
    /// The windows of each tenant.
    pub tenants: Vec<TenantThroughput>,
}

/// Throughput of one tenant over its whole windows after the warm-up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TenantThroughput {
    /// Name of the tenant.
    pub name: String,
    /// Windows that mean and deviation are over.
    pub windows: usize,
    /// Mean of bytes answered per second.
    pub bytes_per_s_mean: f64,
    /// Standard deviation of bytes answered per second.
    pub bytes_per_s_sd: f64,
    /// Mean over deviation (at least one request per window), a ratio; null where all are 0.
    pub bytes_mean_over_sd: Option<f64>,
    /// Deviation over mean, a ratio; null where all are 0.
    pub bytes_sd_over_mean: Option<f64>,
    /// Mean of requests answered per second.
    pub requests_per_s_mean: f64,
    /// Standard deviation of requests answered per second.
    pub requests_per_s_sd: f64,
    /// Mean over deviation (at least one request per window), a ratio; null where all are 0.
    pub requests_mean_over_sd: Option<f64>,
    /// Deviation over mean, a ratio; null where all are 0.
    pub requests_sd_over_mean: Option<f64>,
    /// Per window from time 0: requests answered, their bytes.
    pub series: Vec<(u64, u64)>,
}

/// The channels of a drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Channels {
    /// Name of the layout.
    pub layout: String,
    /// Groups of channels that keep addresses of their own.
    pub groups: Vec<ChannelGroup>,
    /// Each channel, in order.
    pub each: Vec<ChannelUse>,
    /// Used over allocated space, a ratio; absent where the division does not say what is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub space_utilisation: Option<f64>,
    /// Tenants that came and left; absent where the layout does not follow tenants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenancy: Option<Tenancy>,
}

/// A group of channels and what the host asked of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChannelGroup {
    /// Numbers of the channels.
    pub channels: Vec<u32>,
    /// Tenants whose blocks lie there.
    pub tenants: Vec<String>,
    /// Whether the group is lent to a pool.
    pub lent: bool,
    /// Bytes that it holds.
    pub capacity_bytes: u64,
    /// Commands that read.
    pub reads: u64,
    /// Commands that write.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Bytes read and written per second.
    pub bytes_per_s: f64,
}

/// How one channel was used, the drive's own work included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChannelUse {
    /// Number of the channel.
    pub channel: usize,
    /// Share of the time in which the channel is taken, 0 to 1.
    pub busy: f64,
    /// Share of the time in which its dies work for hosts, on average, 0 to 1.
    pub dies_working: f64,
    /// Share of the time in which its dies clean, on average, 0 to 1.
    pub dies_cleaning: f64,
}

/// Tenants that came and left under a layout that follows them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tenancy {
    /// The changes, in order of time.
    pub changes: Vec<TenancyChange>,
}

/// A tenant that came, was refused or left, and the space from then on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TenancyChange {
    /// When it changed.
    pub time_ns: u64,
    /// Name of the tenant.
    pub tenant: String,
    /// Bytes that the tenant requires.
    pub required_bytes: u64,
    /// Miss ratio with these bytes, 0 to 1.
    pub required_miss_ratio: f64,
    /// Bytes that all tenants present require.
    pub requested_bytes: u64,
    /// Bytes allocated to all tenants present.
    pub allocated_bytes: u64,
    /// `granted`, `refused` or `left`.
    pub change: String,
    /// Groups of channels granted to the tenant alone; absent unless granted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<Vec<u32>>,
    /// Bytes of these groups; absent unless granted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bucket_bytes: Option<u64>,
    /// Bytes granted in the pool; absent unless granted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_bytes: Option<u64>,
    /// Channels that are missing; absent unless refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing_channels: Option<u32>,
}

/// Blocks that moved on the cache device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Migrations {
    /// Bytes moved, each read and written once.
    pub bytes: u64,
    /// The moves by tenant.
    pub tenants: Vec<TenantMigrations>,
}

/// Blocks of one tenant that moved on the cache device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TenantMigrations {
    /// Name of the tenant.
    pub name: String,
    /// Pairs of blocks exchanged, one of them the tenant's.
    pub swaps: u64,
    /// Blocks of the tenant moved to a free slot.
    pub moves: u64,
    /// Bytes of the tenant moved.
    pub bytes: u64,
}

/// Where blocks lie on a cache device whose channels have a layout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlockRegions {
    /// Blocks of each tenant at the end.
    pub tenants: Vec<TenantRegions>,
    /// Blocks of all tenants at the end of each window.
    pub windows: Vec<RegionWindow>,
}

/// Where the blocks of one tenant lie.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TenantRegions {
    /// Name of the tenant.
    pub name: String,
    /// Blocks in channels of the tenant alone.
    pub own_blocks: u32,
    /// Blocks in channels that the tenant shares.
    pub common_blocks: u32,
    /// Blocks in channels that the layout does not give to the tenant.
    pub elsewhere_blocks: u32,
}

/// Where blocks lie at the end of a window; each list has an entry per tenant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RegionWindow {
    /// End of the window.
    pub time_ns: u64,
    /// Blocks in channels of the tenant alone.
    pub own_blocks: Vec<u32>,
    /// Blocks in channels that the tenant shares.
    pub common_blocks: Vec<u32>,
    /// Blocks in channels that the layout does not give to the tenant.
    pub elsewhere_blocks: Vec<u32>,
}
