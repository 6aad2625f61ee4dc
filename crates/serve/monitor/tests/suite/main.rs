//! A monitor over sockets: what it answers, what it refuses, and when it ends.

#![allow(clippy::unwrap_used, clippy::panic)]

mod answers;
mod metric_names;
mod sample;
