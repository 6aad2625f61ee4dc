//! The words and lists that parameters of an SSD are chosen from.
//!
//! For: enumerations, channel groups and named schemes as they stand in a stack file. Must never
//! know: what a choice does. A scheme of flash translation is a name with settings of its own.

use cachewright_types::choices;
use cachewright_types::declare::{Mismatch, ValueKind};
use cachewright_types::{Bytes, Value, parse_bytes};

choices! {
    /// The protocol between host and drive.
    pub enum Interface {
        /// Submission and completion queues per tenant over PCIe.
        Nvme = "nvme",
        /// One queue of commands over a link that carries one direction at a time.
        Sata = "sata",
    }
}

choices! {
    /// Whose command the drive fetches next.
    pub enum Arbitration {
        /// The one announced first, of any tenant.
        Arrival = "arrival",
        /// One burst of each tenant in turn.
        RoundRobin = "round-robin",
        /// As many bursts of each tenant in turn as its weight says.
        Weighted = "weighted",
    }
}

choices! {
    /// Which running operations a read may interrupt.
    pub enum Suspend {
        /// None.
        None = "none",
        /// Programs.
        Program = "program",
        /// Erases.
        Erase = "erase",
        /// Programs and erases.
        Both = "both",
    }
}

choices! {
    /// How the time of a byte on a channel is rounded.
    pub enum ChannelTiming {
        /// Whole nanoseconds per transfer, rounded down (333 MT/s become 3 ns).
        Truncated = "truncated",
        /// Picoseconds.
        Exact = "exact",
    }
}

choices! {
    /// Where the entries of the mapping table are.
    pub enum MapLocation {
        /// All in memory.
        Ideal = "ideal",
        /// In flash, with a bounded cache of them in memory.
        Cached = "cached",
    }
}

choices! {
    /// How tenants use the cache of mapping entries.
    pub enum MapSharing {
        /// All tenants together.
        Shared = "shared",
        /// Each tenant an equal part.
        Split = "split",
    }
}

choices! {
    /// What a read of a page costs that was never written.
    pub enum UnwrittenReads {
        /// Nothing in flash: zeros come from the controller.
        Zero = "zero",
        /// A page is allocated and read, as MQSim does.
        Allocate = "allocate",
    }
}

choices! {
    /// How the drive is brought to its state before a run.
    pub enum FillMethod {
        /// Nothing was ever written.
        Empty = "empty",
        /// The steady state of uniform random writes, computed.
        Analytic = "analytic",
        /// Written in order, then overwritten at random, page by page.
        Replay = "replay",
    }
}

/// The order in which consecutive pages go round the flash: a permutation of `c` (channel), `w`
/// (chip), `d` (die) and `p` (plane), the first changing fastest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaneLetters(pub [u8; 4]);

impl PlaneLetters {
    /// Channel, chip, die, plane.
    pub const CWDP: PlaneLetters = PlaneLetters(*b"cwdp");

    /// The letters.
    pub fn word(&self) -> String {
        self.0.iter().map(|letter| char::from(*letter)).collect()
    }
}

impl ValueKind for PlaneLetters {
    const KIND: &'static str = "the letters c, w, d and p in an order of your own (`cwdp`)";

    fn read(value: &Value) -> Result<PlaneLetters, Mismatch> {
        let bytes = value.as_text().map(str::as_bytes);
        let letters: Option<[u8; 4]> = bytes.and_then(|bytes| bytes.try_into().ok());
        let all = |letters: &[u8; 4]| b"cwdp".iter().all(|letter| letters.contains(letter));
        letters.filter(all).map(PlaneLetters).ok_or(Mismatch::Kind)
    }

    fn value(&self) -> Option<Value> {
        Some(Value::Text(self.word()))
    }
}

/// Bytes that the host may address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressableBytes {
    /// What over-provisioning leaves.
    Auto,
    /// So many, rounded down to whole pages.
    Bytes(Bytes),
}

impl ValueKind for AddressableBytes {
    const KIND: &'static str = "`auto`, or a number with a unit (`480GB`)";

    fn read(value: &Value) -> Result<AddressableBytes, Mismatch> {
        match value.as_text().ok_or(Mismatch::Kind)? {
            "auto" => Ok(AddressableBytes::Auto),
            text => parse_bytes(text).map(AddressableBytes::Bytes).map_err(|_| Mismatch::Kind),
        }
    }

    fn value(&self) -> Option<Value> {
        Some(Value::Text(match self {
            AddressableBytes::Auto => "auto".to_owned(),
            AddressableBytes::Bytes(bytes) => bytes.exact(),
        }))
    }
}

/// Which channels work together under a translation of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelGroups {
    /// All channels under one.
    All,
    /// Each channel under its own.
    Each,
    /// These.
    Lists(Vec<Vec<u32>>),
}

impl ChannelGroups {
    /// The lists for a drive of so many channels; empty for one group of all.
    pub fn lists(&self, channels: u32) -> Vec<Vec<u32>> {
        match self {
            ChannelGroups::All => Vec::new(),
            ChannelGroups::Each => (0..channels).map(|channel| vec![channel]).collect(),
            ChannelGroups::Lists(lists) => lists.clone(),
        }
    }

    fn parse(text: &str) -> Option<ChannelGroups> {
        match text {
            "all" => return Some(ChannelGroups::All),
            "each" => return Some(ChannelGroups::Each),
            _ => {}
        }
        let lists: Option<Vec<Vec<u32>>> = text.split_whitespace().map(parse_list).collect();
        lists.filter(|lists| !lists.is_empty()).map(ChannelGroups::Lists)
    }
}

/// Reads `0-3,8` as 0, 1, 2, 3 and 8.
fn parse_list(text: &str) -> Option<Vec<u32>> {
    let mut list = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
        if first > last || last - first > 1 << 16 {
            return None;
        }
        list.extend(first..=last);
    }
    Some(list)
}

impl ValueKind for ChannelGroups {
    const KIND: &'static str = "`all`, `each`, or lists of channels (`0-3 4-7`, `0,2 1,3`)";

    fn read(value: &Value) -> Result<ChannelGroups, Mismatch> {
        value.as_text().and_then(ChannelGroups::parse).ok_or(Mismatch::Kind)
    }

    fn value(&self) -> Option<Value> {
        let words = match self {
            ChannelGroups::All => "all".to_owned(),
            ChannelGroups::Each => "each".to_owned(),
            ChannelGroups::Lists(lists) => {
                let list = |list: &Vec<u32>| {
                    let numbers: Vec<String> = list.iter().map(u32::to_string).collect();
                    numbers.join(",")
                };
                lists.iter().map(list).collect::<Vec<String>>().join(" ")
            }
        };
        Some(Value::Text(words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(text: &str) -> Option<ChannelGroups> {
        ChannelGroups::read(&Value::Text(text.to_owned())).ok()
    }

    #[test]
    fn channel_groups_are_read_and_written() {
        let lists = vec![vec![0, 1, 2], vec![5, 3]];
        let given = groups("0-2 5,3").unwrap();
        assert_eq!(given, ChannelGroups::Lists(lists.clone()));
        assert_eq!(given.value(), Some(Value::Text("0,1,2 5,3".into())));
        assert_eq!(given.lists(8), lists);
        assert_eq!(groups("each").unwrap().lists(3), [[0], [1], [2]]);
        assert!(groups("all").unwrap().lists(3).is_empty());
        for bad in ["", "3-1", "0-", "a", "0,,1", "0-4000000000"] {
            assert_eq!(groups(bad), None, "`{bad}`");
        }
    }
}
