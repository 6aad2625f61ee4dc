use std::path::{Path, PathBuf};

/// A file or folder of the reference data: below `CACHEWRIGHT_SHARED`, else below `../shared`
/// beside the workspace. Nothing, with a line that says so, where it is not at hand.
pub fn reference_data(name: &str) -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let shared = std::env::var_os("CACHEWRIGHT_SHARED").map_or_else(beside, PathBuf::from);
    let path = shared.join(name);
    if path.exists() {
        return Some(path);
    }
    println!("skipped: needs the reference data (set CACHEWRIGHT_SHARED)");
    None
}
