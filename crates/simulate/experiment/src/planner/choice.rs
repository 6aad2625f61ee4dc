//! The partitioners that a plan tries when none are named.
//!
//! For: every partitioner that keeps goals, as the registry declares it, beside divisions that
//! ignore goals. Must never know: what partitioners do.

use super::with;
use crate::ExperimentError;
use crate::case::expand;
use cachewright_partition::{Need, registry};
use std::path::Path;

/// Divisions that ignore goals: what keeping goals is worth.
const BLIND: [&str; 3] = ["hull", "equal", "shared"];

/// Every partitioner that needs goals, in the order of the registry, then those that ignore them.
/// One that the stack lacks something for is left out; `notes` says so of those that keep goals.
pub(super) fn by_default(
    text: &str,
    origin: &Path,
    set: &[(String, String)],
    notes: &mut Vec<String>,
) -> Result<Vec<String>, ExperimentError> {
    let entries = registry::entries();
    let keepers = entries.iter().filter(|entry| entry.needs.contains(&Need::Goal));
    let keepers: Vec<&str> = keepers.map(|entry| entry.name).collect();
    let mut found = Vec::new();
    for name in keepers.iter().chain(&BLIND) {
        let overrides = with(set, "cache.partition", name);
        let case = expand(text, origin, &overrides, &[])?.swap_remove(0);
        match case.goals().and_then(|_| case.partitioner()) {
            Ok(_) => found.push((*name).to_owned()),
            Err(error) if keepers.contains(name) => {
                notes.push(format!("`{name}` is left out: {error}"));
            }
            Err(_) => {}
        }
    }
    Ok(found)
}
