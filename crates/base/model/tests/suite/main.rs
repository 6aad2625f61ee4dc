//! Models: their file, what they compute, how they are trained.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a failed test may panic

mod boosting;
mod files;
mod forest;
mod gradients;
mod same_bits;
mod trainings;
mod vectors;
