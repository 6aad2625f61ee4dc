//! What the whole-house tests share: where the reference data lies, and a message when it does not.
//!
//! For: tests that cross rooms. Must never know: anything a single room can test by itself.

use std::path::{Path, PathBuf};

/// The folder of the reference data: `CACHEWRIGHT_SHARED`, else `../shared` beside the workspace;
/// nothing, with a message, when it is absent.
pub fn reference_data() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    let folder = std::env::var_os("CACHEWRIGHT_SHARED").map_or_else(beside, PathBuf::from);
    if folder.join("golden").is_dir() {
        Some(folder)
    } else {
        eprintln!("skipped: needs the reference data (set CACHEWRIGHT_SHARED)");
        None
    }
}

/// The workspace's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
