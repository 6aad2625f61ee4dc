//! The words and lists that parameters of an SSD are chosen from.
//!
//! For: enumerations, channel groups and named schemes as they stand in a stack file. Must never
//! know: what a choice does. A scheme of flash translation is a name with settings of its own.

use crate::choices;
use crate::parameters::{Quantity, exact_bytes, read};
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
        /// The one announced first, whoever's it is.
        Arrival = "arrival",
        /// One burst of each tenant in turn.
        RoundRobin = "round-robin",
        /// As many bursts of each tenant in turn as its weight says.
        Weighted = "weighted",
    }
}

choices! {
    /// Bits per cell: how many kinds of pages with times of their own there are.
    pub enum CellKind {
        /// One kind of page.
        Slc = "slc",
        /// Two kinds.
        Mlc = "mlc",
        /// Three kinds.
        Tlc = "tlc",
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
    pub enum Mapping {
        /// All in memory.
        Ideal = "ideal",
        /// In flash, with a bounded cache of them in memory.
        Cached = "cached",
    }
}

choices! {
    /// Who uses the cache of mapping entries.
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
    pub enum Fill {
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
pub struct PlaneOrder(pub [u8; 4]);

impl PlaneOrder {
    /// The letters.
    pub fn word(&self) -> String {
        self.0.iter().map(|letter| char::from(*letter)).collect()
    }
}

impl Quantity for PlaneOrder {
    const KIND: &'static str = "the letters c, w, d and p in an order of your own (`cwdp`)";

    fn from_value(value: &Value) -> Option<PlaneOrder> {
        let Value::Text(text) = value else { return None };
        let letters: [u8; 4] = text.as_bytes().try_into().ok()?;
        let all = b"cwdp".iter().all(|letter| letters.contains(letter));
        all.then_some(PlaneOrder(letters))
    }

    fn number(&self) -> f64 {
        0.0
    }

    fn text(&self) -> String {
        format!("\"{}\"", self.word())
    }
}

/// Bytes that the host may address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capacity {
    /// What over-provisioning leaves.
    Auto,
    /// So many, rounded down to whole pages.
    Bytes(Bytes),
}

impl Quantity for Capacity {
    const KIND: &'static str = "`auto`, or a number with a unit (`480GB`)";

    fn from_value(value: &Value) -> Option<Capacity> {
        match value {
            Value::Text(text) if text == "auto" => Some(Capacity::Auto),
            Value::Text(text) => parse_bytes(text).ok().map(Capacity::Bytes),
            _ => None,
        }
    }

    fn number(&self) -> f64 {
        0.0
    }

    fn text(&self) -> String {
        match self {
            Capacity::Auto => "\"auto\"".to_owned(),
            Capacity::Bytes(bytes) => format!("\"{}\"", exact_bytes(*bytes)),
        }
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

impl Quantity for ChannelGroups {
    const KIND: &'static str = "`all`, `each`, or lists of channels (`0-3 4-7`, `0,2 1,3`)";

    fn from_value(value: &Value) -> Option<ChannelGroups> {
        match value {
            Value::Text(text) => ChannelGroups::parse(text),
            _ => None,
        }
    }

    fn number(&self) -> f64 {
        0.0
    }

    fn text(&self) -> String {
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
        format!("\"{words}\"")
    }
}

/// A scheme of flash translation: a registered name and settings over its defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct Scheme {
    /// The name.
    pub name: String,
    /// Settings given.
    pub pairs: Vec<(String, Value)>,
}

impl Scheme {
    /// A scheme with its default settings.
    pub fn named(name: &str) -> Scheme {
        Scheme { name: name.to_owned(), pairs: Vec::new() }
    }
}

impl Quantity for Scheme {
    const KIND: &'static str = "a name and settings (`d-choices d=9`)";

    fn from_value(value: &Value) -> Option<Scheme> {
        let Value::Text(text) = value else { return None };
        let mut words = text.split_whitespace();
        let mut scheme = Scheme::named(words.next()?);
        for word in words {
            let (key, value) = word.split_once('=')?;
            scheme.pairs.push((key.to_owned(), read(value)));
        }
        Some(scheme)
    }

    fn number(&self) -> f64 {
        0.0
    }

    fn text(&self) -> String {
        let mut text = format!("\"{}", self.name);
        for (key, value) in &self.pairs {
            let value = match value {
                Value::Int(number) => number.to_string(),
                Value::Float(number) => format!("{number:?}"),
                Value::Bool(flag) => flag.to_string(),
                Value::Text(word) => word.clone(),
            };
            text.push_str(&format!(" {key}={value}"));
        }
        text + "\""
    }

    fn set_part(&mut self, part: &str, value: &Value) -> bool {
        match (part, value) {
            ("name", Value::Text(name)) => name.clone_into(&mut self.name),
            ("name", _) => return false,
            _ => {
                self.pairs.retain(|(key, _)| key != part);
                self.pairs.push((part.to_owned(), value.clone()));
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(text: &str) -> Option<ChannelGroups> {
        ChannelGroups::from_value(&Value::Text(text.to_owned()))
    }

    #[test]
    fn channel_groups_are_read_and_written() {
        let lists = vec![vec![0, 1, 2], vec![5, 3]];
        let given = groups("0-2 5,3").unwrap();
        assert_eq!(given, ChannelGroups::Lists(lists.clone()));
        assert_eq!(given.text(), "\"0,1,2 5,3\"");
        assert_eq!(given.lists(8), lists);
        assert_eq!(groups("each").unwrap().lists(3), [[0], [1], [2]]);
        assert!(groups("all").unwrap().lists(3).is_empty());
        for bad in ["", "3-1", "0-", "a", "0,,1", "0-4000000000"] {
            assert_eq!(groups(bad), None, "`{bad}`");
        }
    }

    #[test]
    fn a_scheme_keeps_its_settings() {
        let mut scheme = Scheme::named("greedy");
        assert!(scheme.set_part("name", &Value::Text("d-choices".into())));
        assert!(scheme.set_part("d", &Value::Int(3)));
        assert!(scheme.set_part("d", &Value::Int(9)));
        assert!(!scheme.set_part("name", &Value::Int(9)));
        assert_eq!(scheme.text(), "\"d-choices d=9\"");
        assert_eq!(Scheme::from_value(&Value::Text("d-choices d=9".into())), Some(scheme));
        assert_eq!(Scheme::from_value(&Value::Text("d-choices d".into())), None);
    }
}
