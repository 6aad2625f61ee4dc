//! Every table of a stack file, its keys declared once.
//!
//! For: reading, errors, the resolved file and the reference pages. Must never know: what follows
//! from a value; what keys mean together is checked by the modules beside this one. Keys stand in
//! the order of the resolved file. The cache, the replay and the drive are here, a live server in
//! [`serve`], tenants in [`tenant`]. The keys of `[device]` and `[machine]` are declared by the
//! devices and machines.

mod serve;
mod tenant;

use crate::kinds::{Capacity, Texts, Warmup};
use cachewright_cache::WriteMode;
use cachewright_types::declare::{Percent, Scheme};
use cachewright_types::{Bytes, Nanos, Size, choices, declare};

pub use serve::{IoEngine, ServeTable, ServeTls};
pub use tenant::{BadRecord, Lengths, NoiseTable, Operation, Pauses, TenantTable};

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
