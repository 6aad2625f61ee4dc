//! The `[[tenant]]` tables of a stack file.
//!
//! For: the keys of a tenant and of its noise. Must never know: other tenants, what follows from a
//! value. Keys stand in the order of the resolved file.

use crate::kinds::{ChannelWish, FormatOptions, Label, Stop, TraceFiles};
use cachewright_trace::reader::MAX_REQUEST;
use cachewright_types::declare::{Nested, Percent};
use cachewright_types::{Bytes, Nanos, choices, declare};

choices! {
    /// What becomes of malformed records.
    pub enum BadRecord {
        /// The run ends with an error that names it.
        Fail = "fail",
        /// It is counted and left out.
        Skip = "skip",
    }
}

choices! {
    /// How a tenant pauses.
    pub enum Pauses {
        /// For its think time after each answer.
        ThinkTime = "think-time",
        /// As its trace did between two calls of a process.
        Recorded = "recorded",
    }
}

choices! {
    /// What all reads and writes of a tenant become.
    pub enum Operation {
        /// What they are.
        AsIs = "as-is",
        /// Reads.
        Read = "read",
        /// Writes.
        Write = "write",
    }
}

choices! {
    /// How long periods of noise are.
    pub enum Lengths {
        /// Drawn from an exponential distribution.
        Exponential = "exponential",
        /// As long as the mean.
        Fixed = "fixed",
    }
}

declare! {
    /// The `noise` of a tenant: periods in which it sends, and in which it does not (Wang et al.,
    /// oc-cache, V).
    pub struct NoiseTable {
        /// mean length of the periods in which it sends
        on: Option<Nanos> = None, "time", 1000 ..= 3_153_600_000_000_000_000;
        /// mean length of the pauses
        off: Option<Nanos> = None, "time", 1000 ..= 3_153_600_000_000_000_000;
        /// whether the lengths are random or fixed
        lengths: Lengths = Lengths::Exponential, "word";
        /// requests kept in flight during the pauses; 0 for none
        off_depth: u32 = 0, "requests", 0 ..= 65_536;
    }
}

declare! {
    /// A `[[tenant]]` table: whose requests are replayed, and how it is treated.
    pub struct TenantTable {
        /// the tenant's name, shown in tables; by default `tenant1` and so on
        name: Option<String> = None, "text";
        /// the trace, relative to the stack file; a list, or a pattern such as `x.blktrace.*`, is
        /// one recording in several files, read by time on their common clock
        trace: Option<TraceFiles> = None, "file"; applies "to replays";
        /// a trace of what the tenant did before, relative to the stack file: partitioners that
        /// learn before a run learn from it, and not from the head of `trace`; with `replay.warmup
        /// = "history"` it is replayed first
        history: Option<String> = None, "file";
            applies "to warm-ups by history and partitioners that take something ahead";
            shares "pass, alone";
        /// the file or block device of the tenant's volume, relative to the stack file
        backing: Option<String> = None, "file"; applies "to live servers"; shares "pass, alone";
        /// the name under which clients find the volume; by default the tenant's name
        export: Option<String> = None, "text"; applies "to live servers"; shares "pass, alone";
        /// clients that see the export: DNS names or common names of certificates; by default all
        clients: Vec<String> = Vec::new(), "names";
            applies "with `serve.tls_authorities`"; shares "pass, alone";
        /// whether clients can only read the volume
        read_only: bool = false, ""; applies "to live servers"; shares "pass, alone";
        /// maximum number of connections to the export; by default as many as leave the other
        /// exports theirs
        max_connections: Option<u32> = None, "connections", 1 ..= 65_536;
            applies "to live servers"; shares "pass, alone";
        /// maximum requests per second of all its clients together
        max_iops: Option<u64> = None, "requests/s", 1 ..= 1_000_000_000;
            applies "to live servers"; shares "pass, alone";
        /// maximum bytes per second that all its clients together read and write
        max_bandwidth: Option<Bytes> = None, "bytes/s", 4096 ..= 1_099_511_627_776;
            applies "to live servers"; shares "pass, alone";
        /// the trace's format; by default detected from its content
        format: Option<String> = None, "text";
        /// only this volume of the trace, or several in a list or separated by commas
        volume: Option<Label> = None, "text";
        /// whether each volume of the trace is a tenant of its own, called NAME/VOLUME, with the
        /// other keys of this one
        by_volume: bool = false, ""; applies "to replays";
        /// factor on the trace's times: 0.5 is twice as fast
        time_scale: f64 = 1.0, "ratio", 1e-9 ..= 1e9;
        /// when the tenant begins
        start: Nanos = Nanos(0), "time";
        /// where it stops: a time, or a share of its requests
        stop: Option<Stop> = None, "time or share"; shares "recording";
        /// sort by time in memory instead of moving late requests up
        sort: bool = false, "";
        /// what to do with malformed records: stop, or count and skip them
        on_bad_record: BadRecord = BadRecord::Fail, "word";
        /// a longer read or write is a malformed record
        max_request: Bytes = MAX_REQUEST, "bytes", 512 ..= 1_099_511_627_776;
        /// its share of the cache
        weight: f64 = 1.0, "number", 1e-300 ..= 1e9; applies "to partition `static`";
            shares "pass, alone";
        /// its shares of the cache in each interval, repeated from the start after the last
        schedule: Vec<f64> = Vec::new(), "numbers"; applies "to partition `scheduled`";
            shares "pass, alone";
        /// the channels it asks for: how many, or which
        channels: Option<ChannelWish> = None, "channels"; needs "devices or live";
            applies "to layout `dedicated`";
        /// its trained model
        model: Option<String> = None, "file"; applies "to partitioners that need a model";
            shares "pass, alone";
        /// whether it is sensitive to latency
        sensitive: bool = false, ""; applies "to partition `costpi`"; shares "pass, alone";
        /// goal: the smallest share of its block accesses that hit
        goal_hit_ratio: Option<f64> = None, "ratio", 0.0 ..= 1.0; shares "pass, alone";
        /// goal: the longest mean time of a block access, instead of a hit ratio
        goal_latency: Option<Nanos> = None, "time"; shares "pass, alone";
        /// goal: the longest mean response time of its requests as measured, instead of a hit ratio
        goal_response: Option<Nanos> = None, "time"; needs "devices or live"; shares "pass, alone";
        /// goal: the longest 99th percentile of its response times as measured, instead of a hit
        /// ratio
        goal_p99: Option<Nanos> = None, "time"; needs "devices or live"; shares "pass, alone";
        /// options of the trace's format
        options: FormatOptions = FormatOptions::default(), "-";
        /// requests in flight; by default `replay.queue_depth`
        queue_depth: Option<u32> = None, "requests", 1 ..= 65_536; applies "in a closed loop";
            shares "pass";
        /// pause after an answer; by default `replay.think_time`
        think_time: Option<Nanos> = None, "time"; applies "in a closed loop"; shares "pass";
        /// how it pauses
        pauses: Pauses = Pauses::ThinkTime, "word"; needs "closed loop"; shares "pass";
        /// periods in which it sends requests, and pauses between them
        noise: Option<Nested<NoiseTable>> = None, "table"; needs "closed loop"; shares "pass";
        /// repeat the trace until the tenant stops
        repeat: bool = false, ""; needs "closed loop"; shares "pass";
        /// replay all its reads and writes as reads, as writes, or as they are
        operation: Operation = Operation::AsIs, "word";
        /// share of its volumes that is replayed, chosen by chunks of addresses
        sample: Percent = Percent(1.0), "share", 0 ..= 1;
        /// longer reads and writes are truncated to this length
        request: Option<Bytes> = None, "bytes", 512 ..= 1_099_511_627_776;
        /// models that replace `model` during the run, in order
        model_updates: Vec<String> = Vec::new(), "files";
            applies "to partitioners that need a model"; shares "pass, alone";
    }
}
