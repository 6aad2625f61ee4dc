//! Slow, obvious models of the policies: each is written from its source alone, in the plainest
//! containers, and shares no code with the policy it checks.
//!
//! For: `agree.rs`. Unit: blocks. A model answers one access with what the policy must answer.
#![allow(dead_code)] // test files may use a part

pub mod frequency;
pub mod queues;

/// What happened to one access.
#[derive(Debug, PartialEq, Eq)]
pub enum ModelOutcome {
    Hit,
    Miss { evicted: Option<u32> },
}

/// A policy written for its reader.
pub trait Model {
    fn access(&mut self, block: u32) -> ModelOutcome;
}
