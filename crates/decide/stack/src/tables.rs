//! Every table of a stack file, its keys declared once, in the order of the resolved file.
//!
//! The keys of `[device]` and `[machine]` are declared by the devices and machines.

use crate::document::Reader;
use crate::kinds::{Capacity, ChannelWish, FormatOptions, Label, Stop, Texts, TraceFiles, Warmup};
use cachewright_cache::{Shrink, WriteMode};
use cachewright_trace::reader::MAX_REQUEST;
use cachewright_types::declare::{Declared, Nested, Percent, Scheme};
use cachewright_types::{Bytes, Nanos, Size, choices, declare};

declare! {
    /// Keys of the whole file.
    pub struct TopTable {
        /// the stack's name, shown in tables; by default the file's name
        name: Option<String> = None, "text"; shares "pass, alone";
        /// seed of all random numbers
        seed: u64 = 1, "number", 0 ..= 9_223_372_036_854_775_807; shares "recording";
    }
}

choices! {
    /// What a trim does to cached blocks.
    pub enum Trim {
        /// They are dropped.
        Drop = "drop",
        /// Nothing.
        Ignore = "ignore",
    }
}

choices! {
    /// Shadow partitions of a tenant's quota.
    pub enum Shadow {
        /// None: a quota is whole.
        None = "none",
        /// Two, by Talus (Beckmann and Sanchez, HPCA 2015).
        Talus = "talus",
    }
}

declare! {
    /// The `[cache]` table: what is cached, and how that is decided.
    pub struct CacheTable {
        /// size of the cache
        capacity: Option<Size> = None, "size"; shares "pass";
        /// size of a block, a power of two
        block: Bytes = Bytes(4096), "bytes", 512 ..= 1_073_741_824;
        /// which blocks are kept; `auto` chooses the policy that fits the stack
        policy: Scheme = Scheme::named("lru"), "scheme"; shares "pass";
        /// how much of the cache each tenant gets; `auto` chooses the partitioner that fits the
        /// stack
        partition: Scheme = Scheme::named("shared"), "scheme"; shares "pass, alone";
        /// the model of all tenants together, for partitioners that use one
        model: Option<String> = None, "file"; applies "to partitioners that need such a model";
            shares "pass, alone";
        /// models of caching by kind of workload
        models: Texts = Texts::default(), "files"; applies "to policies that need a model";
            shares "pass";
        /// the kind of workload that is assumed at the start
        workload: Option<String> = None, "text"; applies "to policies that need a model";
            shares "pass";
        /// what detects the kind of workload, with its `model`, and `every` how often
        characterize: Option<Scheme> = None, "scheme"; applies "to policies that need a model";
            shares "pass";
        /// which channels hold which tenant's blocks
        layout: Scheme = Scheme::named("striped"), "scheme"; shares "pass";
        /// where writes go
        write: WriteMode = WriteMode::WriteBack, "word"; shares "pass";
        /// what a trim does to cached blocks
        trim: Trim = Trim::Drop, "word";
        /// length of a sequential stream of reads or writes beyond which its requests go past the
        /// cache; 0B for none
        sequential_cutoff: Bytes = Bytes(0), "bytes"; applies "without `machine.system = \"ssd\"`";
        /// sequential streams that are tracked per volume
        sequential_streams: u32 = 128, "streams", 1 ..= 65_536; applies "with `sequential_cutoff`";
        /// when a tenant whose quota falls gives up the blocks that it holds beyond it
        shrink: Shrink = Shrink::AtOnce, "word"; shares "pass";
        /// how a tenant's quota is split, so that cliffs in its miss-ratio curve become slopes
        shadow: Shadow = Shadow::None, "word";
    }
}

choices! {
    /// When requests arrive.
    pub enum Loop {
        /// At the times of the trace.
        Open = "open",
        /// When earlier ones are answered.
        Closed = "closed",
    }
}

choices! {
    /// What time zero is in each trace.
    pub enum ClockChoice {
        /// The trace's own first record.
        Own = "own",
        /// The earliest first record of all traces.
        Common = "common",
    }
}

choices! {
    /// Which misses are explained.
    pub enum ExplainedMisses {
        /// None.
        None = "none",
        /// Those of a sample of blocks, which stand for all.
        Sampled = "sampled",
        /// All.
        All = "all",
    }
}

choices! {
    /// How requests become blocks.
    pub enum Blocks {
        /// One block per request where traces number objects, else all that a request touches.
        Auto = "auto",
        /// All blocks that a request touches.
        Split = "split",
        /// One block per request.
        Unit = "unit",
    }
}

declare! {
    /// The `[replay]` table: how traces are replayed.
    pub struct ReplayTable {
        /// when requests arrive: at the times of the trace, or when earlier ones are answered
        r#loop: Loop = Loop::Open, "word"; shares "recording";
        /// what time zero is in each trace
        clock: ClockChoice = ClockChoice::Own, "word";
        /// how requests become blocks: all that a request touches, or one per request; `auto` is
        /// one per request if every trace numbers objects and the capacity counts blocks
        blocks: Blocks = Blocks::Auto, "word"; applies "without devices";
        /// time between two changes of the tenants' quotas
        interval: Nanos = Nanos(2_000_000_000), "time"; shares "recording, alone";
        /// quotas that a live server recorded, applied instead of the partitioner's
        divisions: Option<String> = None, "file"; applies "to recordings of live servers";
            shares "pass, alone";
        /// windows of the time series
        windows: u32 = 100, "windows", 0 ..= 10_000; shares "recording, alone";
        /// what is replayed first and not counted: what arrives before a time, a share or a number
        /// of all tenants' reads and writes, or with `history` the other trace that each tenant
        /// names
        warmup: Warmup = Warmup::NONE, "time, share, requests or word"; shares "recording, outlook";
        /// when every tenant stops that has no `stop` of its own
        stop: Option<Nanos> = None, "time"; shares "recording";
        /// width of the windows in which answers are counted by tenant; 0s for none
        throughput_window: Nanos = Nanos(0), "time"; needs "devices or closed loop";
            shares "pass, alone";
        /// requests in flight per tenant
        queue_depth: u32 = 8, "requests", 1 ..= 65_536; applies "in a closed loop"; shares "pass";
        /// pause after an answer
        think_time: Nanos = Nanos(0), "time"; applies "in a closed loop"; shares "pass";
        /// duration of a hit
        hit_time: Nanos = Nanos(100_000), "time"; applies "without devices, and to goals";
            shares "pass, alone";
        /// duration of a miss
        miss_time: Nanos = Nanos(5_000_000), "time"; applies "without devices, and to goals";
            shares "pass, alone";
        /// share of each tenant's accesses, from its first, by which it is profiled before the run
        profile_share: f64 = 0.1, "ratio", 0.0 ..= 1.0; applies "to partitioners that need goals";
            shares "pass, alone";
        /// whether the cause of each miss is found, and which tenant pushes out whose blocks: of
        /// all blocks, or of a sample
        causes: ExplainedMisses = ExplainedMisses::None, "word";
            applies "without `machine.system = \"ssd\"`";
            shares "recording, alone";
        /// also measure every tenant's exact LRU curve
        curves: bool = true, ""; shares "pass, alone";
        /// maximum number of block accesses kept in memory
        max_accesses: u64 = 1_073_741_824, "accesses", 1 ..= 4_294_967_294;
    }
}

declare! {
    /// The `[flash]` table: the drive under the cache, or the log of a `flash-store`.
    pub struct FlashTable {
        /// which pages share a superblock
        separation: Scheme = Scheme::named("none"), "scheme"; shares "pass";
        /// which superblock is cleaned next
        reclaim: Scheme = Scheme::named("cost-benefit"), "scheme"; shares "pass";
        /// physical pages in excess of the logical ones, as a share of the logical ones
        over_provisioning: Percent = Percent(0.07), "share", 0 ..= 10; shares "pass";
        /// unit of erasing
        superblock: Bytes = Bytes(1_048_576), "bytes"; shares "pass";
        /// unit of writing, a power of two; by default the smaller of 4KiB and `cache.block`
        page: Option<Bytes> = None, "bytes", 512 ..= 1_048_576; shares "pass";
        /// logical size of the drive
        capacity: Capacity = Capacity::Auto, "size"; shares "pass";
        /// superblocks kept free for writes of the cache
        reserve: u32 = 4, "superblocks", 2 ..= 1_048_576; shares "pass";
        /// trim a block's pages as soon as it is evicted from the cache
        trim_evicted: bool = false, ""; applies "under a cache, not to a `flash-store`";
            shares "pass";
    }
}

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
        /// one recording in several files, read by time on their common clock; a recording of a
        /// live server, or a folder of them, with a moment (`x.parquet@300s`, `folder@14:05`)
        /// counts from it on
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
        weight: f64 = 1.0, "number", 1e-300 ..= 1e9;
            applies "to partitions `static`, `memshare` and `hare`";
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

choices! {
    /// What carries the input and output of a live server out.
    pub enum IoEngine {
        /// io_uring; where the kernel refuses it, threads.
        Auto = "auto",
        /// io_uring only.
        Uring = "uring",
        /// Threads only.
        Threads = "threads",
    }
}

choices! {
    /// Whether clients of a live server use TLS.
    pub enum ServeTls {
        /// There is none.
        Off = "off",
        /// A client may.
        Available = "available",
        /// A client must.
        Required = "required",
    }
}

declare! {
    /// The `[serve]` table: where a live server keeps the cache, and where clients connect to it.
    pub struct ServeTable {
        /// files or block devices that hold the cache, relative to the stack file
        devices: Vec<String> = Vec::new(), "files";
        /// where clients connect: `unix:PATH`, `tcp:PORT`, `tcp:ADDRESS:PORT`, or `systemd` for
        /// the sockets that it passes; `vhost:PATH` for the guest of a virtual machine whose disk
        /// the volume is, with `{volume}` in the path if there are several
        listen: Vec<String> = Vec::new(), "addresses";
        /// what performs input and output; `auto`: io_uring if the kernel has it
        engine: IoEngine = IoEngine::Auto, "word";
        /// unit in which the devices are written and cleaned; set when they are formatted
        segment: Bytes = Bytes(16_777_216), "bytes", 65_536 ..= 1_073_741_824;
        /// whether cleaning drops clean blocks that no request has read since they were stored or
        /// moved, instead of moving them
        drop_cold: bool = false, "";
        /// where the server reports its status over HTTP: a port, or a loopback address and a port
        monitor: Option<String> = None, "address";
        /// file in which the server remembers, outside the cache, with which set of devices it
        /// served the volumes; by default `NAME.cachewright-state` in `$STATE_DIRECTORY`, else
        /// `.NAME.cachewright-state` beside the stack file `NAME.toml`
        state: Option<String> = None, "file";
        /// folder for recordings of all requests and decisions, relative to the stack file: a new
        /// trace each `record_span`; by default nothing is recorded
        record: Option<String> = None, "folder";
        /// time after which a recording ends and another one begins
        record_span: Nanos = Nanos(3_600_000_000_000), "time",
            1_000_000_000 ..= 2_592_000_000_000_000; applies "with `record`";
        /// what a killed server loses of its recording, or a 64th of the recording if that is
        /// longer
        record_keep: Nanos = Nanos(60_000_000_000), "time", 10_000_000 ..= 3_600_000_000_000;
            applies "with `record` or `--record`";
        /// maximum number of recordings that are kept; the oldest is deleted first
        record_files: u32 = 24, "files", 1 ..= 100_000; applies "with `record`";
        /// maximum bytes of all recordings that are kept; the last one is always kept
        record_bytes: Bytes = Bytes(17_179_869_184), "bytes", 4096 ..= 1_125_899_906_842_624;
            applies "with `record`";
        /// whether a snapshot of what decides is written beside each recording, so that a replay
        /// continues from it; it takes the memory of decisions once more
        record_state: bool = true, ""; applies "with `record` or `--record`";
        /// whether miss-ratio curves of the last hour are sampled for `/status`, even if the
        /// partitioner needs none
        curves: bool = false, "";
        /// policy that is tried on a sample of the blocks beside the one that decides, for
        /// `/status`; by default none
        trial: Option<String> = None, "policy";
        /// partitioner that is tried beside the one that divides the cache, on the same sample,
        /// with its default settings; by default none
        trial_partition: Option<String> = None, "partitioner";
        /// share of dirty blocks in a pool above which some are written back ahead of eviction; 1:
        /// never
        dirty_high: f64 = 1.0, "share", 0.0 ..= 1.0;
        /// share of dirty blocks at which that ends; by default nine tenths of `dirty_high`
        dirty_low: Option<f64> = None, "share", 0.0 ..= 1.0;
        /// maximum bytes per second of cleaning and writing back ahead of need
        background_bandwidth: Option<Bytes> = None, "bytes/s", 4096 ..= 1_099_511_627_776;
        /// background work slows down while more than 1 of 100 requests takes longer than this
        latency_target: Option<Nanos> = None, "time", 1000 ..= 3_600_000_000_000;
        /// time added to each read, write and sync of a backing device, to try a stack on files
        /// that are faster than the volumes will be
        backing_delay: Nanos = Nanos(0), "time";
        /// maximum number of connected clients; more of them wait
        max_connections: u32 = 64, "connections", 1 ..= 65_536;
        /// memory for requests in flight and for answers that clients have not received, of all
        /// clients together; further requests wait
        client_memory: Bytes = Bytes(536_870_912), "bytes", 67_108_864 ..= 1_099_511_627_776;
        /// memory for the content of cached blocks that are read often: a hit on one of them reads
        /// no device
        memory: Bytes = Bytes(0), "bytes", 0 ..= 1_099_511_627_776;
        /// time in which a client must open an export, the TLS handshake included
        negotiation_timeout: Nanos = Nanos(10_000_000_000), "time",
            100_000_000 ..= 3_600_000_000_000;
        /// time in which a client must send the rest of a request, and receive an answer; otherwise
        /// it is disconnected
        stall_timeout: Nanos = Nanos(60_000_000_000), "time",
            100_000_000 ..= 86_400_000_000_000;
        /// whether clients may use extended headers, with lengths of 64 bits
        extended_headers: bool = false, "true/false";
        /// whether clients use TLS, on all addresses
        tls: ServeTls = ServeTls::Off, "word";
        /// PEM file of the server's certificate and the intermediate ones
        tls_certificate: Option<String> = None, "file"; applies "with `tls`";
        /// PEM file of the certificate's private key
        tls_key: Option<String> = None, "file"; applies "with `tls`";
        /// PEM file of authorities; clients must show a certificate that one of them signed
        tls_authorities: Option<String> = None, "file"; applies "with `tls`";
    }
}

/// A need and what a file has that meets it.
const NEEDS: [(&str, &str); 4] = [
    ("devices", "`[device]` tables"),
    ("closed loop", "`replay.loop = \"closed\"`"),
    ("devices or live", "`[device]` tables or `serve.devices`"),
    ("devices or closed loop", "`[device]` tables or `replay.loop = \"closed\"`"),
];

/// What a file offers.
#[derive(Clone, Copy, Debug)]
pub struct Offers {
    /// It has devices.
    pub devices: bool,
    /// Requests wait for answers.
    pub closed: bool,
    /// It has devices of a live server.
    pub live: bool,
}

impl Offers {
    fn meets(self, need: &str) -> bool {
        match need {
            "devices" => self.devices,
            "closed loop" => self.closed,
            "devices or live" => self.devices || self.live,
            "devices or closed loop" => self.devices || self.closed,
            _ => false,
        }
    }

    /// Refuses a key of a table that is not at its default and needs what the file does not offer.
    pub fn check<T: Declared>(self, reader: &Reader<'_>, table: &T) -> Result<(), String> {
        for (key, (name, value)) in T::keys().iter().zip(table.values()) {
            let unmet = |need: &&str| !need.is_empty() && !self.meets(need);
            let missing: Vec<&str> = key.needs.split(", ").filter(unmet).collect();
            if missing.is_empty() || value == key.default {
                continue;
            }
            let word = |need: &&str| {
                NEEDS.iter().find(|(name, _)| name == need).map(|(_, wanted)| *wanted)
            };
            let wanted: Vec<&str> = missing.iter().filter_map(word).collect();
            let (key, missing) = (reader.key(name), missing.join(" and "));
            let wanted = wanted.join(" and ");
            return Err(format!("`{key}`: found without {missing}, expected {wanted} with it"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_partition::layout::Wish;

    #[test]
    fn every_declared_need_is_known() {
        let tables = [
            TopTable::keys(),
            CacheTable::keys(),
            ReplayTable::keys(),
            FlashTable::keys(),
            TenantTable::keys(),
            NoiseTable::keys(),
        ];
        for key in tables.iter().flatten().filter(|key| !key.needs.is_empty()) {
            for need in key.needs.split(", ") {
                assert!(NEEDS.iter().any(|(name, _)| *name == need), "{}: {need}", key.name);
            }
        }
    }

    #[test]
    fn an_unmet_need_is_refused_with_what_would_meet_it() {
        let table = TenantTable { repeat: true, ..TenantTable::default() };
        let reader = Reader::new("tenant[1]", None);
        let check =
            |devices, closed| Offers { devices, closed, live: false }.check(&reader, &table);
        assert_eq!([check(true, true), check(false, true)], [Ok(()), Ok(())]);
        let words = "`tenant[1].repeat`: found without closed loop, expected `replay.loop = \
                     \"closed\"` with it";
        assert_eq!(check(true, false), Err(words.to_owned()));
        let table = TenantTable { channels: Some(ChannelWish(Wish::Count(1))), ..table };
        let offers = Offers { devices: false, closed: true, live: false };
        let error = offers.check(&reader, &table).unwrap_err();
        assert!(error.contains("`[device]` tables or `serve.devices`"), "{error}");
        assert_eq!(Offers { live: true, ..offers }.check(&reader, &table), Ok(()));
        let table = ReplayTable { throughput_window: Nanos(1_000_000), ..ReplayTable::default() };
        let check =
            |devices, closed| Offers { devices, closed, live: false }.check(&reader, &table);
        assert_eq!([check(true, false), check(false, true)], [Ok(()), Ok(())]);
        let error = check(false, false).unwrap_err();
        assert!(error.contains("`[device]` tables or `replay.loop = \"closed\"`"), "{error}");
    }
}
