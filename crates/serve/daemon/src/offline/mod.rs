//! Tools for devices that no server has open.
//!
//! For: `cachewright live`: formatting, checking, listing, timing, writing back and repairing. Must
//! never know: requests, policies. Units: bytes, blocks. Reading tools write nothing, and open
//! devices for reading only.

mod calibrate;
mod check;
mod dump;
mod foreign;
mod format;
mod notes;
mod repair;
mod tally;
mod writeback;

pub use calibrate::{Calibration, calibrate};
pub use check::check;
pub use dump::dump;
pub use format::{Overwrite, format};
pub(crate) use notes::NoteLog;
pub use repair::repair;
pub use writeback::writeback;
