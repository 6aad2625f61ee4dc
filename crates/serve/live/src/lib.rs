//! The live cache: volumes served over the network block device protocol, and to guests as virtio
//! disks, behind a log on flash.
//!
//! For: carrying out in real time, with real bytes, what the decision code decides. Everything is
//! driven by events over one trait, [`io::Io`], so that the same code runs on files and sockets and
//! in a simulation that loses power. Must never know: the simulator, trace files. Units: bytes,
//! blocks, nanoseconds.

pub mod blocks;
pub mod exports;
pub mod front;
pub mod io;
pub mod log;
mod pace;
pub mod record;
pub mod vhost;
