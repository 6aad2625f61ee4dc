//! Blocks of a plan in the cache, and runs of them.
//!
//! For: commands about blocks next to each other. Must never know: what they wait for. Units:
//! blocks.

use crate::ids::ResidentId;
use crate::pins::Pins;
use std::ops::Range;

/// What is to be done with one block in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// Read from the backing device, serve, fill.
    Miss,
    /// Read from the cache.
    Hit,
    /// Write to the cache.
    Write,
}

/// One block of a request in the cache.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    /// What is to be done.
    pub kind: AccessKind,
    /// The block on the cache device.
    pub resident: ResidentId,
    /// Its number on the backing device.
    pub number: u64,
}

impl Item {
    /// The numbers of a run of blocks, of which there is one at least.
    pub fn numbers(run: &[Item]) -> Range<u64> {
        run[0].number..run[0].number + run.len() as u64
    }

    /// The residents of a run of blocks.
    pub fn residents(run: &[Item]) -> Pins {
        run.iter().map(|item| item.resident).collect()
    }
}
