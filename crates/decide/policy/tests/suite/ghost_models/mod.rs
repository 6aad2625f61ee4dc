//! Naive models of arc, larc, 2q, lirs, smq, oc-smq and access-frequency, in plain containers.
//!
//! For: `agree_ghosts.rs` and `agree_oc_smq.rs`. Each is written from its source alone and shares
//! no code with the policy it checks. Unit: blocks.
#![allow(dead_code)] // test files may use a part

pub mod ghosts;
pub mod lirs;
pub mod oc_smq;
pub mod smq;

/// What happened to one access.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub enum ModelVerdict {
    Hit,
    In(Option<u32>),
    Out,
}

/// A policy written for its reader.
pub trait GhostModel {
    fn access(&mut self, block: u32, write: bool) -> ModelVerdict;
}

/// Takes `block` out of `queue` if it is there.
pub fn take(queue: &mut std::collections::VecDeque<u32>, block: u32) -> bool {
    let found = queue.iter().position(|other| *other == block);
    found.and_then(|at| queue.remove(at)).is_some()
}
