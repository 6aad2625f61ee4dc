//! How a log-structured store uses the device beneath it.
//!
//! For: each choice once, with unit, range and source. Must never know: how it is carried out.

use cachewright_types::{Bytes, Nanos};
use cachewright_types::{choices, declare};

choices! {
    /// What the store holds at the start.
    pub enum Initial {
        /// Every page, written in order of address.
        Written = "written",
        /// Nothing: pages that were never written are read at no cost.
        Empty = "empty",
    }
}

declare! {
    /// How a log-structured store uses the device beneath it.
    pub struct StoreSettings {
        "log" {
            /// what the store holds at the start; either way it is not counted
            initial: Initial = Initial::Written, "name"; "a volume that was filled once";
            /// most bytes of one command to the device
            command: Bytes = Bytes(1_048_576), "bytes", 512 ..= 1_073_741_824;
                "Linux: max_sectors_kb, 1280";
            /// appends under way per segment; pages that come meanwhile go together with the next
            append_depth: u32 = 1, "commands", 1 ..= 65_536;
                "Linux: one write per zone (zone write plugging)";
            /// commands of cleaning under way while no request is, or a write waits for a segment
            move_depth: u32 = 8, "commands", 1 ..= 65_536; "typical";
            /// commands of cleaning under way beside requests that do not wait for it
            move_depth_busy: u32 = 1, "commands", 0 ..= 65_536; "typical";
            /// what a reset takes beside the device's own trim
            reset_time: Nanos = Nanos(0), "time", 0 ..= 1e12; "a device without zones";
        }
    }
}
