//! Write modes: where a write goes and what it does to the cached copy.
//!
//! For: the names used in stack files and their meaning. Must never know: policies. Sources: Open
//! CAS's cache-mode documentation for the first three; EnhanceIO's for `read-only`.

use cachewright_measure::WriteEffect;

/// Where a write goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum WriteMode {
    /// Into the cache only; the block is dirty until it is written back on leaving.
    #[default]
    WriteBack,
    /// Into the cache and the backing store; nothing is ever dirty.
    WriteThrough,
    /// Into the backing store; a cached copy is updated, a missing one is not brought in.
    WriteAround,
    /// Into the backing store; a cached copy is dropped.
    ReadOnly,
}

impl WriteMode {
    /// All modes, in the order of tables.
    pub const ALL: [WriteMode; 4] = [
        WriteMode::WriteBack,
        WriteMode::WriteThrough,
        WriteMode::WriteAround,
        WriteMode::ReadOnly,
    ];

    /// The name in stack files.
    pub fn name(self) -> &'static str {
        match self {
            WriteMode::WriteBack => "write-back",
            WriteMode::WriteThrough => "write-through",
            WriteMode::WriteAround => "write-around",
            WriteMode::ReadOnly => "read-only",
        }
    }

    /// The mode of that name.
    pub fn from_name(name: &str) -> Option<WriteMode> {
        WriteMode::ALL.into_iter().find(|mode| mode.name() == name)
    }

    /// How derived figures count a write.
    pub fn effect(self) -> WriteEffect {
        match self {
            WriteMode::WriteBack => WriteEffect::Back,
            WriteMode::WriteThrough | WriteMode::WriteAround => WriteEffect::Through,
            WriteMode::ReadOnly => WriteEffect::Invalidate,
        }
    }
}
