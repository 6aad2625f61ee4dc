//! The rule on dependencies: each manifest names only crates that its crate may use.
//!
//! For: the direction of dependency between crates, and the purity of decisions. Must never know:
//! Rust code. Development dependencies are free.

use super::imports::{listed, rule_of};
use super::{Finding, SourceFile};

/// Crates that bring clocks, threads, entropy or networks, which `decide` may not have.
const IMPURE: [&str; 8] =
    ["chrono", "crossbeam", "getrandom", "rand", "rayon", "time", "tokio", "uuid"];

/// Every dependency on a crate of the workspace is allowed; `decide` stays pure.
pub fn dependencies(sources: &[SourceFile]) -> Vec<Finding> {
    let manifests = sources.iter().filter(|source| source.path.ends_with("/Cargo.toml"));
    manifests.flat_map(manifest_findings).collect()
}

fn manifest_findings(source: &SourceFile) -> Vec<Finding> {
    let Some(rule) = rule_of(&source.path) else {
        let message = "found an unknown crate, expected it in the table of \
                       xtask/src/tidy/imports.rs";
        return vec![Finding::new(source, 1, message.to_owned())];
    };
    let mut findings = Vec::new();
    for (line, name) in named(source) {
        if let Some(other) = name.strip_prefix("cachewright-")
            && !rule.uses.contains(&other)
        {
            let uses = listed(rule.uses);
            let message = format!("found `{name}`, expected `{}` to use only {uses}", rule.folder);
            findings.push(Finding::new(source, line, message));
        }
        if rule.folder.starts_with("crates/decide/") && IMPURE.contains(&name.as_str()) {
            let message = format!("found `{name}`, expected decisions to be pure");
            findings.push(Finding::new(source, line, message));
        }
    }
    findings
}

/// The names under `[dependencies]`, with their lines.
fn named(source: &SourceFile) -> Vec<(usize, String)> {
    let mut section = String::new();
    let mut names = Vec::new();
    for (line, text) in source.lines() {
        let text = text.trim();
        if text.starts_with('[') {
            section = text.trim_matches(['[', ']']).to_owned();
            if let Some(name) = section.strip_prefix("dependencies.") {
                names.push((line, name.to_owned()));
            }
        } else if section == "dependencies" && !text.starts_with('#') {
            let name = text.split(['.', '=', ' ']).next().unwrap_or_default();
            if !name.is_empty() {
                names.push((line, name.to_owned()));
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        dependencies(&[SourceFile::new(path, text)]).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn cache_may_not_depend_on_partition() {
        let text = "[dependencies]\ncachewright-policy.workspace = true\n\
                    cachewright-partition.workspace = true\n[dev-dependencies]\n\
                    cachewright-trace.workspace = true\n";
        assert_eq!(lines("crates/decide/cache/Cargo.toml", text), [3]);
    }

    #[test]
    fn decisions_may_not_depend_on_threads() {
        let text = "[dependencies]\nrayon = \"1\"\n";
        assert_eq!(lines("crates/decide/curve/Cargo.toml", text), [2]);
        assert_eq!(lines("crates/simulate/system/Cargo.toml", text), [0_usize; 0]);
    }

    #[test]
    fn an_unknown_crate_is_refused() {
        assert_eq!(lines("crates/decide/new/Cargo.toml", "[package]\n"), [1]);
    }
}
