//! What a call of `wa` asks for.
//!
//! For: the options, declared once for Rust, Python and the command line. Must never know: traces,
//! the drive of a stack.

use super::TrainerFactory;
use cachewright_stack::FlashTable;
use cachewright_types::declare::Percent;
use cachewright_types::{Bytes, declare};
use std::path::PathBuf;

declare! {
    /// Options of `wa`: the drive, how much is written to it, and where models come from.
    pub struct DriveOptions {
        /// separations by name or inline table (`none,2r,sepbit`; see `list separations`), or all
        separations: Vec<String> = vec!["all".to_owned()], "schemes";
        /// ways to pick a victim (see `list reclaims`), or all
        reclaims: Vec<String> = vec![FlashTable::default().reclaim.name], "schemes";
        /// over-provisioning (`7%,28%`); by default that of the stack's `[flash]`, or 7%
        op: Vec<Percent> = Vec::new(), "share";
        /// size of a superblock, the unit of erasing; by default the stack's or 1MiB
        superblock: Option<Bytes> = None, "bytes";
        /// size of a flash page, a power of two; by default the stack's or 4KiB
        page: Option<Bytes> = None, "bytes", 512 ..= 1_048_576;
        /// logical size of the drive (`1GiB`, `150%wss`); `auto` is what is ever written, `live`
        /// the most that is live at once: pages recycle after trims
        capacity: String = "auto".to_owned(), "size";
        /// superblocks kept free for writes of the host; by default the stack's or 4
        reserve: Option<u32> = None, "superblocks", 2 ..= 1_048_576;
        /// stop after this many drive writes
        drive_writes: Option<f64> = None, "drive writes", 0.000001 ..= 1000000.0;
        /// repeat the trace until then (10 drive writes by default)
        r#loop: bool = false, "";
        /// a trace replayed first and not counted; TENANT=PATH for a stack of several tenants
        load: Vec<String> = Vec::new(), "files";
        /// a trained model file, used without further training (see `train`)
        model: Option<String> = None, "file";
    }
}

/// What to measure.
#[derive(Clone, Debug, Default)]
pub struct WaOptions {
    /// The drive.
    pub drive: DriveOptions,
    /// Another trainer than the one in Rust for separations that learn.
    pub trainer: Option<TrainerFactory>,
    /// Keys set over the stack file.
    pub set: Vec<(String, String)>,
    /// Threads; 0 for one per processor.
    pub threads: usize,
    /// The result folder; nothing is written without one.
    pub out: Option<PathBuf>,
}
