//! Times of a case on simulated devices.
//!
//! For: `timing` of a case. Must never know: how a replay works. Units: nanoseconds; the parts of a
//! breakdown are means per request and add up to the mean response.

use crate::Entries;
use crate::channels::{BlockRegions, Channels, Migrations};
use crate::device::Device;
use crate::drive::CachedDrive;
use crate::energy::TotalEnergy;
use crate::store::Store;
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
