//! The settings of Shiro, and what becomes of writes whose lifetimes are not known in time.
//!
//! For: every reading of the paper that is left to choose; a default is the likeliest one. Must
//! never know: how a setting is carried out. Units: as each says. Source: Shiro, sections III, V.
//!
//! Ours: `least_class`, `longest_window` and `threshold_floor` keep Algorithm 1 from thresholds
//! that split nothing. A window of a drive of 1 GiB has a tenth of the page writes of the paper's
//! smallest. Most lifetimes seen in it can be those of a journal's last page.

use cachewright_types::{choices, declare};

choices! {
    /// What becomes of a write whose page was not written again by the end of the window.
    pub enum Censored {
        /// It is not learned: a lifetime sample is a rewrite within the window (section III-B).
        Drop = "drop",
        /// It is learned as long.
        Long = "long",
        /// It is learned later, once as many writes as the threshold have followed it.
        Final = "final",
    }
}

declare! {
    /// The numbers of Shiro.
    pub struct ShiroSettings {
        /// bytes of a page, for chunks and sequential runs
        page_bytes: u32 = 16384, "bytes", 512 ..= 1048576;
        /// host writes between two trainings, as a share of the drive
        window_share: f64 = 0.05, "ratio", 0.001 ..= 4.0;
        /// a window without a possible threshold goes on up to this share of the drive
        longest_window: f64 = 1.0, "ratio", 0.001 ..= 4.0;
        /// host writes whose lifetimes set the threshold, as a share of the drive; a window or more
        threshold_window: f64 = 0.05, "ratio", 0.001 ..= 4.0;
        /// lifetimes that a threshold leaves on either side at least, as a share of all
        least_class: f64 = 0.05, "ratio", 0.0 ..= 0.5;
        /// the least threshold, in superblocks; 0 for none
        threshold_floor: f64 = 0.25, "superblocks", 0.0 ..= 64.0;
        /// writes without another in their window: drop, long, final (learned when it is known)
        censored: Censored = Censored::Drop, "name";
        /// pages handed to the trainer, as a share of those written
        sample_share: f64 = 0.1, "ratio", 0.001 ..= 1.0;
        /// page writes handed to the trainer at least, on small drives
        sample_steps: u32 = 4000, "pages", 0 ..= 1000000000;
        /// most writes of a page in one training series; 1 also forgets states between writes
        series_steps: u32 = 20, "writes", 1 ..= 1000;
        /// whether inputs are logarithms of features rather than their hex digits
        log_inputs: bool = false, "true or false";
        /// whether a write waits for its prediction: the same decisions, another latency
        synchronous: bool = false, "true or false";
        /// share of a reward's difference that one update of the agent takes
        learn_rate: f64 = 0.001, "ratio", 0.0 ..= 1.0;
        /// decisions of the agent made at random
        explore_share: f64 = 0.01, "ratio", 0.0 ..= 1.0;
        /// share of a superblock for metadata (the paper's 36 bytes of 16 KiB); 0: in memory
        meta_share: f64 = 0.002197265625, "ratio", 0.0 ..= 0.25;
        /// meta pages held in memory, as a share of all
        meta_cache_share: f64 = 0.01, "ratio", 0.0 ..= 1.0;
    }
}
