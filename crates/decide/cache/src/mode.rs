//! Write modes: where a write goes and what it does to the cached copy.
//!
//! For: the names used in stack files and their meaning. Must never know: policies. Sources: Open
//! CAS's cache-mode documentation for the first three; EnhanceIO's for `read-only`.

use cachewright_types::choices;
use cachewright_types::measure::WriteEffect;

choices! {
    /// Where a write goes.
    #[derive(Default)]
    pub enum WriteMode {
        /// Into the cache only; the block is dirty until it is written back on leaving.
        #[default]
        WriteBack = "write-back",
        /// Into the cache and the backing store; nothing is ever dirty.
        WriteThrough = "write-through",
        /// Into the backing store; a cached copy is updated, a missing one is not brought in.
        WriteAround = "write-around",
        /// Into the backing store; a cached copy is dropped.
        ReadOnly = "read-only",
    }
}

impl WriteMode {
    /// How derived figures count a write.
    pub fn effect(self) -> WriteEffect {
        match self {
            WriteMode::WriteBack => WriteEffect::Back,
            WriteMode::WriteThrough | WriteMode::WriteAround => WriteEffect::Through,
            WriteMode::ReadOnly => WriteEffect::Invalidate,
        }
    }
}
