//! The `[serve]` table of a stack file.
//!
//! For: the keys of a live server. Must never know: volumes, which are the tenants'; what follows
//! from a value. Keys stand in the order of the resolved file.

use cachewright_types::{Bytes, Nanos, choices, declare};

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
        /// whether miss-ratio curves of the last hour are sampled for `/status`, even if the
        /// partitioner needs none
        curves: bool = false, "";
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
