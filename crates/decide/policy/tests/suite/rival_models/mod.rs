//! Naive models of the published rivals: slru and those that came with it, in plain containers.
//!
//! For: `agree_rivals.rs`. Each is written from its source alone and shares no code with the policy
//! it checks, but for the random numbers. Unit: blocks.

pub mod cachesack;
pub mod cacheus;
pub mod clock2q_plus;
pub mod gl_cache;
pub mod lhd;
pub mod lrb;
pub mod merlin;
pub mod mq;
pub mod s4_fifo;
pub mod slru;
pub mod three_l_cache;
pub mod w_tiny_lfu;
