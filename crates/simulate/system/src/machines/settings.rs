//! How a machine carries out plans: the choices that decide response times.
//!
//! For: each choice once, with unit, range and source. Must never know: how it is carried out.

use super::requests::Layout;
pub use cachewright_steps::{Decision, Fill};
use cachewright_types::{Bytes, Nanos};
use cachewright_types::{choices, declare};

choices! {
    /// When dirty blocks are written back.
    pub enum WriteBack {
        /// When they leave the cache.
        OnEviction = "on-eviction",
        /// As soon as they are dirty, while they stay.
        Eager = "eager",
        /// Oldest first, from `dirty_high` down to `dirty_low`, while they stay.
        Watermark = "watermark",
    }
}

choices! {
    /// What an access is to a block whose read from the backing device is still under way.
    pub enum InFlight {
        /// A hit: the block is not read again.
        Hit = "hit",
        /// A miss: the request waits for the backing device.
        Miss = "miss",
    }
}

choices! {
    /// What is read before it is asked for.
    pub enum ReadAhead {
        /// Nothing.
        None = "none",
        /// A window behind sequential reads that doubles with each of them.
        Linux = "linux",
    }
}

declare! {
    /// How a machine carries out plans.
    pub struct MachineSettings {
        "machine" {
            /// how volumes are put on backing devices
            layout: Layout = Layout::Auto, "name"; "made for replay on other devices";
            /// when a read miss is answered
            fill: Fill = Fill::AfterAnswer, "name";
                "Open CAS and dm-cache answer from the data read";
            /// blocks beside the capacity for what is written back; none free: new blocks wait
            spare_blocks: u32 = 64, "blocks", 0 ..= 16_777_216; "back-pressure limit";
            /// when dirty blocks are written back
            write_back: WriteBack = WriteBack::OnEviction, "name"; "the cache engine";
            /// share of the cache that may be dirty before the watermark acts
            dirty_high: f64 = 0.2, "ratio", 0.0 ..= 1.0; "Linux: vm.dirty_ratio";
            /// share of the cache that may be dirty when it has acted
            dirty_low: f64 = 0.1, "ratio", 0.0 ..= 1.0; "Linux: vm.dirty_background_ratio";
            /// blocks written back at once while they stay
            clean_depth: u32 = 8, "blocks", 1 ..= 65_536; "background pace";
            /// blocks or pairs of blocks that change places on the cache device at once
            swap_depth: u32 = 4, "changes", 1 ..= 65_536; "background pace";
            /// time the cache takes to decide about a request
            decision_time: Nanos = Nanos(0), "time", 0 ..= 1e12;
                "rc-rnn: 300 us per inference";
            /// what waits for the decision
            decision: Decision = Decision::BeforeRequest, "name"; "rc-rnn, both reported";
            /// what is read before it is asked for
            read_ahead: ReadAhead = ReadAhead::None, "name"; "soft-qos: Linux's";
            /// what a read of a block on its way from the backing device counts as
            in_flight: InFlight = InFlight::Hit, "name";
                "the cache engine; soft-qos: a miss";
            /// first window of read-ahead
            read_ahead_min: Bytes = Bytes(16_384), "bytes", 512 ..= 1_073_741_824;
                "Linux 2.6: four pages";
            /// largest window of read-ahead
            read_ahead_max: Bytes = Bytes(131_072), "bytes", 512 ..= 1_073_741_824;
                "Linux: VM_MAX_READAHEAD";
            /// sequential streams told apart per tenant
            read_ahead_streams: u32 = 4, "streams", 1 ..= 1024;
                "Linux keeps one per open file; a block trace names none";
        }
    }
}
