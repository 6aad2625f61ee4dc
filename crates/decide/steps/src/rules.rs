//! The choices by which plans become steps.
//!
//! For: what a request waits for. Must never know: how long anything takes.

use cachewright_types::choices;

choices! {
    /// When a read miss is answered.
    pub enum Fill {
        /// When the block has been read; it is put into the cache afterwards.
        AfterAnswer = "after-answer",
        /// When the block has also been put into the cache.
        BeforeAnswer = "before-answer",
    }
}

choices! {
    /// What waits for the cache's decision.
    pub enum Decision {
        /// The whole request.
        BeforeRequest = "before-request",
        /// Only the filling of the cache: a miss is answered meanwhile.
        BeforeFill = "before-fill",
    }
}

/// What the steps of all plans have in common.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// When a read miss is answered.
    pub fill: Fill,
    /// What waits for a step that stands for the decision; nothing where decisions take no time.
    pub decision: Option<Decision>,
    /// A fill of blocks that have left the cache since is begun. A cache with a slot per block may
    /// write it; in a log it would come back at recovery.
    pub fills_late: bool,
    /// log2 of the block size in bytes.
    pub block_shift: u32,
}
