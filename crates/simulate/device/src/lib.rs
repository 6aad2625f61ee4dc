//! Device models: what a request costs in simulated time.
//!
//! For: the seam [`Device`] and the models behind it. Must never know: caches, policies, tenants'
//! goals, files, clocks. Units: bytes, nanoseconds of simulated time (integers; no wall clock).

pub mod seam;

pub use seam::{Command, Completion, Device, Part, Spent};
