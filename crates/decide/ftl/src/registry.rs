//! What the schemes of both stages may need.
//!
//! For: the entry type of the tables of separations and of reclaim policies. Must never know: any
//! scheme. The tables stand in `separation` and `reclaim`, made by the registry macro that all
//! stages share. Adding a scheme is one file and one line.

/// What a scheme needs beyond the writes themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The lifetime of each page when it is written (a pre-pass over the whole trace).
    Future,
    /// A trained model.
    Model,
}

/// What a user can know of one scheme without reading code.
pub type Entry = cachewright_types::registry::Entry<Need>;
