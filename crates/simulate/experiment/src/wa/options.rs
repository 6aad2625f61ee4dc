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
        /// over-provisioning (`7%,28%`); the stack's `[flash]` or 7% when left out
        op: Vec<Percent> = Vec::new(), "share";
        /// size of a superblock, the unit of erasing; the stack's or 1MiB when left out
        superblock: Option<Bytes> = None, "bytes";
        /// size of a flash page, a power of two; the stack's or 4KiB when left out
        page: Option<Bytes> = None, "bytes", 512 ..= 1_048_576;
        /// logical size of the drive (`1GiB`, `150%wss`); `auto` is what is ever written, `live`
        /// the most that is live at once: pages recycle after trims
        capacity: String = "auto".to_owned(), "size";
        /// superblocks kept free for writes of the host; the stack's or 4 when left out
        reserve: Option<u32> = None, "superblocks", 2 ..= 1_048_576;
        /// stop after the drive was written so often
        drive_writes: Option<f64> = None, "drive writes", 0.000001 ..= 1000000.0;
        /// repeat the trace until then (10 drive writes if not given)
        r#loop: bool = false, "";
        /// a trace replayed first and not counted; TENANT=PATH for a stack of several tenants
        load: Vec<String> = Vec::new(), "files";
        /// a model file to use untrained (see `train`)
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
