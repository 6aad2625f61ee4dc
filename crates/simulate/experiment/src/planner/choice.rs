//! The partitioners that a plan tries when none are named.
//!
//! For: every partitioner that keeps goals, as the registry declares it, beside divisions that
//! ignore goals. Must never know: what partitioners do.

use super::with;
use crate::ExperimentError;
use crate::case::single;
use cachewright_partition::{Need, registry};
use cachewright_stack::StackFile;

/// Divisions that ignore goals: what keeping goals is worth.
const BLIND: [&str; 3] = ["hull", "equal", "shared"];

/// Every partitioner that needs goals, in the order of the registry, then those that ignore them.
/// One that the stack lacks something for is left out; `notes` says so of those that keep goals.
pub(super) fn by_default(
    file: &StackFile,
    notes: &mut Vec<String>,
) -> Result<Vec<String>, ExperimentError> {
    let entries = registry::entries();
    let keepers = entries.iter().filter(|entry| entry.needs.contains(&Need::Goal));
    let keepers: Vec<&str> = keepers.map(|entry| entry.name).collect();
    let mut found = Vec::new();
    for name in keepers.iter().chain(&BLIND) {
        let case = single(&with(file, name)?)?;
        match case.check_schemes() {
            Ok(_) => found.push((*name).to_owned()),
            Err(error) if keepers.contains(name) => {
                notes.push(format!("`{name}` is left out: {error}"));
            }
            Err(_) => {}
        }
    }
    Ok(found)
}
