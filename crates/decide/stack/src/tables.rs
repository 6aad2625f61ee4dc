//! Every table of a stack file, its keys declared once.
//!
//! For: reading, errors, the resolved file and the reference pages. Must never know: what follows
//! from a value; what keys mean together is checked by the modules beside this one. Keys stand in
//! the order of the resolved file. The keys of `[device]` and `[machine]` are declared by the
//! devices and machines.

use crate::kinds::{Capacity, ChannelWish, FormatOptions, Label, Stop, Texts};
use cachewright_cache::WriteMode;
use cachewright_trace::reader::MAX_REQUEST;
use cachewright_types::declare::{Nested, Percent, Scheme};
use cachewright_types::{Bytes, Nanos, Size, choices, declare};

declare! {
    /// Keys of the whole file.
    pub struct TopTable {
        /// the stack's name, shown in tables; the file's name when left out
        name: Option<String> = None, "text"; shares "pass, alone";
        /// root of all randomness
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
        /// which block stays; `auto` takes the scheme that fits the stack
        policy: Scheme = Scheme::named("lru"), "scheme"; shares "pass";
        /// how much of the cache each tenant gets; `auto` takes the scheme that fits the stack
        partition: Scheme = Scheme::named("shared"), "scheme"; shares "pass, alone";
        /// the model of all tenants together, for partitioners that predict by one
        model: Option<String> = None, "file"; applies "to partitioners that need such a model";
            shares "pass, alone";
        /// models of caching by kind of workload
        models: Texts = Texts::default(), "files"; applies "to policies that need a model";
            shares "pass";
        /// the kind of workload to begin with
        workload: Option<String> = None, "text"; applies "to policies that need a model";
            shares "pass";
        /// what says which kind of workload runs, with its `model` and `every` how often
        characterize: Option<Scheme> = None, "scheme"; applies "to policies that need a model";
            shares "pass";
        /// which channels hold which tenant's blocks
        layout: Scheme = Scheme::named("striped"), "scheme"; shares "pass";
        /// where writes go
        write: WriteMode = WriteMode::WriteBack, "word"; shares "pass";
        /// what a trim does to cached blocks
        trim: Trim = Trim::Drop, "word";
        /// how a tenant's quota is split, so that cliffs of its curve become slopes
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
    /// How requests become blocks.
    pub enum Blocks {
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
        /// how requests become blocks
        blocks: Blocks = Blocks::Split, "word"; applies "without devices";
        /// time between two divisions of the cache
        interval: Nanos = Nanos(2_000_000_000), "time"; shares "recording, alone";
        /// divisions that a live server recorded, made again instead of the partitioner's
        divisions: Option<String> = None, "file"; applies "to recordings of live servers";
            shares "pass, alone";
        /// windows of the time series
        windows: u32 = 100, "windows", 0 ..= 10_000; shares "recording, alone";
        /// what arrives before is replayed and not counted
        warmup: Nanos = Nanos(0), "time"; shares "recording, outlook";
        /// when every tenant stops that has no stop of its own
        stop: Option<Nanos> = None, "time"; shares "recording";
        /// width of the windows in which answers are counted by tenant; 0s for none
        throughput_window: Nanos = Nanos(0), "time"; needs "devices or closed loop";
            shares "pass, alone";
        /// requests under way per tenant
        queue_depth: u32 = 8, "requests", 1 ..= 65_536; applies "in a closed loop"; shares "pass";
        /// pause after an answer
        think_time: Nanos = Nanos(0), "time"; applies "in a closed loop"; shares "pass";
        /// duration of a hit
        hit_time: Nanos = Nanos(100_000), "time"; applies "without devices, and to goals";
            shares "pass, alone";
        /// duration of a miss
        miss_time: Nanos = Nanos(5_000_000), "time"; applies "without devices, and to goals";
            shares "pass, alone";
        /// share of each tenant's accesses, from its first, that profiles it ahead of the run
        profile_share: f64 = 0.1, "ratio", 0.0 ..= 1.0; applies "to partitioners that need goals";
            shares "pass, alone";
        /// measure every tenant's exact LRU curve beside the caches
        curves: bool = true, ""; shares "pass, alone";
        /// block accesses kept in memory at most
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
        /// physical pages beyond the logical ones, as a share of these
        over_provisioning: Percent = Percent(0.07), "share", 0 ..= 10; shares "pass";
        /// unit of erasing
        superblock: Bytes = Bytes(1_048_576), "bytes"; shares "pass";
        /// unit of writing, a power of two; the smaller of 4KiB and `cache.block` when left out
        page: Option<Bytes> = None, "bytes", 512 ..= 1_048_576; shares "pass";
        /// logical size of the drive
        capacity: Capacity = Capacity::Auto, "size"; shares "pass";
        /// superblocks kept free for writes of the cache
        reserve: u32 = 4, "superblocks", 2 ..= 1_048_576; shares "pass";
        /// trim the place of a block that leaves the cache at once
        trim_evicted: bool = false, ""; applies "under a cache, not to a `flash-store`";
            shares "pass";
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
        /// the sockets that it passes
        listen: Vec<String> = Vec::new(), "addresses";
        /// what carries input and output out; `auto`: io_uring where the kernel has it
        engine: IoEngine = IoEngine::Auto, "word";
        /// unit in which the devices are written and cleaned; set when they are formatted
        segment: Bytes = Bytes(16_777_216), "bytes", 65_536 ..= 1_073_741_824;
        /// whether cleaning drops clean blocks that no request has read since they were stored or
        /// moved, instead of moving them
        drop_cold: bool = false, "";
        /// where the server tells its status over HTTP: a port, or a loopback address and a port
        monitor: Option<String> = None, "address";
        /// folder of recordings of what is decided, relative to the stack file: a new trace each
        /// `record_span`; nothing is recorded when left out
        record: Option<String> = None, "folder";
        /// time after which a recording ends and another one begins
        record_span: Nanos = Nanos(3_600_000_000_000), "time",
            1_000_000_000 ..= 2_592_000_000_000_000; applies "with `record`";
        /// what a killed server loses of its recording, or a 64th of the recording where that is
        /// longer
        record_keep: Nanos = Nanos(60_000_000_000), "time", 10_000_000 ..= 3_600_000_000_000;
            applies "with `record` or `--record`";
        /// recordings that are kept at most, of which the oldest is removed first
        record_files: u32 = 24, "files", 1 ..= 100_000; applies "with `record`";
        /// bytes of all recordings that are kept at most; the last one is kept always
        record_bytes: Bytes = Bytes(17_179_869_184), "bytes", 4096 ..= 1_125_899_906_842_624;
            applies "with `record`";
        /// whether miss-ratio curves of the last hour are sampled for `/status`, also where the
        /// partitioner reads none
        curves: bool = false, "";
        /// share of a pool's blocks that may be dirty before some are written back ahead of need;
        /// at 1 none are
        dirty_high: f64 = 1.0, "share", 0.0 ..= 1.0;
        /// share of dirty blocks at which that ends; nine tenths of `dirty_high` when left out
        dirty_low: Option<f64> = None, "share", 0.0 ..= 1.0;
        /// bytes per second that cleaning ahead of need and writing back ahead of need move at most
        background_bandwidth: Option<Bytes> = None, "bytes/s", 4096 ..= 1_099_511_627_776;
        /// time that 99 of 100 requests shall not exceed because of such work, which yields to them
        latency_target: Option<Nanos> = None, "time", 1000 ..= 3_600_000_000_000;
        /// time that each read, write and sync of a backing device takes longer than it does, to
        /// try a stack on files that are faster than the volumes will be
        backing_delay: Nanos = Nanos(0), "time";
        /// clients that are connected at one time; more of them wait
        max_connections: u32 = 64, "connections", 1 ..= 65_536;
        /// whether clients may use extended headers, with lengths of 64 bits
        extended_headers: bool = false, "true/false";
        /// whether clients use TLS, on all addresses alike
        tls: ServeTls = ServeTls::Off, "word";
        /// PEM file of the server's certificate, and of those between it and its authority
        tls_certificate: Option<String> = None, "file"; applies "with `tls`";
        /// PEM file of the certificate's private key
        tls_key: Option<String> = None, "file"; applies "with `tls`";
        /// PEM file of authorities; clients must show a certificate that one of them signed
        tls_authorities: Option<String> = None, "file"; applies "with `tls`";
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
        /// mean length of periods in which it sends
        on: Option<Nanos> = None, "time", 1000 ..= 3_153_600_000_000_000_000;
        /// mean length of the others
        off: Option<Nanos> = None, "time", 1000 ..= 3_153_600_000_000_000_000;
        /// whether lengths are drawn or fixed
        lengths: Lengths = Lengths::Exponential, "word";
        /// requests kept under way in the others; 0 for silence
        off_depth: u32 = 0, "requests", 0 ..= 65_536;
    }
}

declare! {
    /// A `[[tenant]]` table: whose requests are replayed, and how it is treated.
    pub struct TenantTable {
        /// the tenant's name, shown in tables; `tenant1` and so on when left out
        name: Option<String> = None, "text";
        /// the trace, relative to the stack file
        trace: Option<String> = None, "file"; applies "to replays";
        /// a trace of what the tenant did before, relative to the stack file; what is taken ahead
        /// of a run comes from it, and not from the head of `trace`
        history: Option<String> = None, "file";
            applies "to partitioners that take something ahead"; shares "pass, alone";
        /// the file or block device of the tenant's volume, relative to the stack file
        backing: Option<String> = None, "file"; applies "to live servers"; shares "pass, alone";
        /// the name under which clients find the volume; the tenant's name when left out
        export: Option<String> = None, "text"; applies "to live servers"; shares "pass, alone";
        /// clients that see the export: DNS names or common names of certificates; all if left out
        clients: Vec<String> = Vec::new(), "names";
            applies "with `serve.tls_authorities`"; shares "pass, alone";
        /// whether clients can only read the volume
        read_only: bool = false, ""; applies "to live servers"; shares "pass, alone";
        /// requests per second that all its clients together may send
        max_iops: Option<u64> = None, "requests/s", 1 ..= 1_000_000_000;
            applies "to live servers"; shares "pass, alone";
        /// bytes per second that all its clients together may read and write
        max_bandwidth: Option<Bytes> = None, "bytes/s", 4096 ..= 1_099_511_627_776;
            applies "to live servers"; shares "pass, alone";
        /// the trace's format; recognised from its content when left out
        format: Option<String> = None, "text";
        /// only this volume of the trace
        volume: Option<Label> = None, "text";
        /// factor on the trace's times: 0.5 is twice as fast
        time_scale: f64 = 1.0, "ratio", 1e-9 ..= 1e9;
        /// when the tenant begins
        start: Nanos = Nanos(0), "time";
        /// where it stops: a time, or a share of its requests
        stop: Option<Stop> = None, "time or share"; shares "recording";
        /// sort by time in memory instead of moving late requests up
        sort: bool = false, "";
        /// what becomes of malformed records
        on_bad_record: BadRecord = BadRecord::Fail, "word";
        /// a longer read or write is a malformed record
        max_request: Bytes = MAX_REQUEST, "bytes", 512 ..= 1_099_511_627_776;
        /// its share of the cache
        weight: f64 = 1.0, "number", 1e-300 ..= 1e9; applies "to partition `static`";
            shares "pass, alone";
        /// its shares of the cache in each interval, over and over
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
        /// least share of its block accesses that shall hit
        goal_hit_ratio: Option<f64> = None, "ratio", 0.0 ..= 1.0; shares "pass, alone";
        /// longest mean time of a block access, instead of a hit ratio
        goal_latency: Option<Nanos> = None, "time"; shares "pass, alone";
        /// longest mean response of its requests as measured, instead of a hit ratio
        goal_response: Option<Nanos> = None, "time"; needs "devices or live"; shares "pass, alone";
        /// longest 99th percentile of its responses as measured, instead of a hit ratio
        goal_p99: Option<Nanos> = None, "time"; needs "devices or live"; shares "pass, alone";
        /// options of the trace's format
        options: FormatOptions = FormatOptions::default(), "-";
        /// requests under way; `replay.queue_depth` when left out
        queue_depth: Option<u32> = None, "requests", 1 ..= 65_536; applies "in a closed loop";
            shares "pass";
        /// pause after an answer; `replay.think_time` when left out
        think_time: Option<Nanos> = None, "time"; applies "in a closed loop"; shares "pass";
        /// how it pauses
        pauses: Pauses = Pauses::ThinkTime, "word"; needs "closed loop"; shares "pass";
        /// periods in which it sends, and in which it does not
        noise: Option<Nested<NoiseTable>> = None, "table"; needs "closed loop"; shares "pass";
        /// it begins its trace anew at the end, until it stops
        repeat: bool = false, ""; needs "closed loop"; shares "pass";
        /// what all its reads and writes become
        operation: Operation = Operation::AsIs, "word";
        /// share of its volumes' chunks whose requests it sends
        sample: Percent = Percent(1.0), "share", 0 ..= 1;
        /// longer reads and writes are cut to this length
        request: Option<Bytes> = None, "bytes", 512 ..= 1_099_511_627_776;
        /// models that take over from `model` while the run goes on, in order
        model_updates: Vec<String> = Vec::new(), "files";
            applies "to partitioners that need a model"; shares "pass, alone";
    }
}
