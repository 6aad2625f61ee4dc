//! Which policies or partitioners of the registry can run on a stack.
//!
//! For: `policy=all` and `partition=all`, and saying why an entry is left out. Must never know: how
//! a case is run. Nothing is replayed: the checks are those of a run before it reads traces.

use crate::ExperimentError;
use crate::case::{Case, expand};
use crate::run::RunOptions;
use crate::spec::{full_key, replayed};
use std::path::Path;

/// One entry of a registry, and why this stack cannot run it.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Its name, as stack files have it.
    pub name: &'static str,
    /// The first reason why a combination with it is refused; nothing if all of them can run.
    pub refused: Option<String>,
}

/// The entries that `key` (`policy` or `partition`) can take with all combinations of
/// `options.vary`, in the registry's order. Errors: a stack file that is wrong by itself, another
/// key.
pub fn choices(
    text: &str,
    origin: &Path,
    options: &RunOptions,
    key: &str,
) -> Result<Vec<Choice>, ExperimentError> {
    let refuse = |message| ExperimentError::spec(origin, message);
    let key = full_key(key);
    let names: Vec<&'static str> = match key.as_str() {
        "cache.policy" => names(cachewright_policy::registry::entries().iter().map(|e| e.name)),
        "cache.partition" => {
            names(cachewright_partition::registry::entries().iter().map(|e| e.name))
        }
        _ => return Err(refuse(format!("`{key}`: found `all`, expected values of the setting"))),
    };
    let mut set = options.set.clone();
    set.retain(|(other, _)| full_key(other) != key);
    // What is wrong with the stack itself is no entry's fault.
    let file = crate::spec::read(text, origin, &set)?;
    replayed(&file)?;
    let others: Vec<_> =
        options.vary.iter().filter(|(other, _)| full_key(other) != key).cloned().collect();
    let choice = |name: &'static str| {
        let mut vary = others.clone();
        vary.push((key.clone(), vec![name.to_owned()]));
        let runs =
            expand(&file, &vary).and_then(|cases| cases.iter().try_for_each(Case::check_schemes));
        Choice { name, refused: runs.err().map(|error| reason(&error)) }
    };
    Ok(names.into_iter().map(choice).collect())
}

fn names(entries: impl Iterator<Item = &'static str>) -> Vec<&'static str> {
    entries.collect()
}

/// The reason without the stack file's name.
fn reason(error: &ExperimentError) -> String {
    match error {
        ExperimentError::Spec { message, .. } => message.clone(),
        other => other.to_string(),
    }
}
