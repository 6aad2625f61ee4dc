//! Which crate may use which, and what a wing of the workspace may not touch.
//!
//! One table for `use` lines, paths in code and manifests. ARCHITECTURE.md draws it.

use super::Finding;
use super::source::{FileKind, SourceFile, is_word, words};

/// A crate: its folder and the crates that it may use.
#[derive(Debug)]
struct CrateRule {
    /// Folder, relative to the root.
    folder: &'static str,
    /// Crates of the workspace that it may use, without the prefix `cachewright-`.
    uses: &'static [&'static str],
}

const BASE: &[&str] = &["snapshot", "types"];
const ALL: &[&str] = &[
    "snapshot",
    "types",
    "memory",
    "trace",
    "model",
    "result",
    "policy",
    "cache",
    "curve",
    "partition",
    "ftl",
    "stack",
    "control",
    "steps",
    "device",
    "system",
    "experiment",
    "nbd",
    "live",
    "daemon",
];

/// The crates of `serve` stand last.
const ALL_BUT_SERVE: &[&str] = ALL.split_at(ALL.len() - 3).0;

/// All crates. A crate that is not in the table is refused.
const CRATES: [CrateRule; 27] = [
    CrateRule { folder: "crates/base/snapshot/derive/", uses: &["snapshot"] },
    CrateRule { folder: "crates/base/snapshot/", uses: &["snapshot-derive", "snapshot_derive"] },
    CrateRule { folder: "crates/base/types/", uses: &["snapshot"] },
    CrateRule { folder: "crates/base/memory/", uses: &[] },
    CrateRule { folder: "crates/base/trace/", uses: &["snapshot", "types", "memory"] },
    CrateRule { folder: "crates/base/model/", uses: BASE },
    CrateRule { folder: "crates/base/result/", uses: &[] },
    CrateRule { folder: "crates/decide/policy/", uses: &["snapshot", "types", "memory", "model"] },
    CrateRule { folder: "crates/decide/cache/", uses: &["snapshot", "types", "memory", "policy"] },
    CrateRule { folder: "crates/decide/curve/", uses: &["snapshot", "types", "policy"] },
    CrateRule {
        folder: "crates/decide/partition/",
        uses: &["snapshot", "types", "model", "curve"],
    },
    CrateRule { folder: "crates/decide/ftl/", uses: &["types", "memory", "model"] },
    CrateRule {
        folder: "crates/decide/stack/",
        uses: &["types", "trace", "policy", "cache", "partition", "ftl"],
    },
    CrateRule {
        folder: "crates/decide/control/",
        uses: &["snapshot", "types", "policy", "cache", "curve", "partition"],
    },
    CrateRule { folder: "crates/simulate/steps/", uses: &["types", "policy", "cache"] },
    CrateRule { folder: "crates/simulate/device/", uses: &["types", "memory", "ftl"] },
    CrateRule {
        folder: "crates/simulate/system/",
        uses: &[
            "snapshot",
            "types",
            "memory",
            "trace",
            "policy",
            "cache",
            "curve",
            "partition",
            "control",
            "steps",
            "device",
        ],
    },
    CrateRule { folder: "crates/simulate/experiment/", uses: ALL_BUT_SERVE },
    CrateRule { folder: "crates/serve/nbd/", uses: &[] },
    CrateRule {
        folder: "crates/serve/live/",
        uses: &[
            "snapshot",
            "types",
            "trace",
            "model",
            "result",
            "policy",
            "cache",
            "curve",
            "partition",
            "control",
            "stack",
            "ftl",
            "nbd",
        ],
    },
    CrateRule {
        folder: "crates/serve/daemon/",
        // Models of devices are what a rehearsal runs the server on.
        uses: &[
            "snapshot",
            "types",
            "trace",
            "result",
            "policy",
            "cache",
            "curve",
            "partition",
            "stack",
            "control",
            "device",
            "nbd",
            "live",
        ],
    },
    CrateRule {
        folder: "crates/testkit/",
        uses: &[
            "types",
            "trace",
            "model",
            "policy",
            "cache",
            "curve",
            "partition",
            "ftl",
            "control",
            "steps",
            "device",
            "system",
        ],
    },
    CrateRule { folder: "python/", uses: ALL },
    CrateRule { folder: "tests/", uses: ALL },
    CrateRule { folder: "benches/", uses: ALL },
    CrateRule {
        folder: "fuzz/",
        uses: &["trace", "model", "result", "experiment", "nbd", "live", "types"],
    },
    CrateRule {
        folder: "xtask/",
        uses: &[
            "types",
            "result",
            "trace",
            "policy",
            "partition",
            "ftl",
            "stack",
            "device",
            "system",
            "experiment",
        ],
    },
];

/// Parts of a wing that may touch it.
const EXEMPT: &[&str] = &["crates/serve/live/src/io/", "crates/serve/live/src/io.rs"];

/// What a wing may not touch, and why.
const FORBIDDEN_PATHS: [(&str, &[&str], &str); 7] = [
    (
        "crates/decide/",
        &[
            "std::fs",
            "std::net",
            "std::thread",
            "std::time",
            "std::process",
            "std::env",
            "std::sync::mpsc",
            "Instant",
            "SystemTime",
            "RandomState",
        ],
        "decisions to be pure: no files, network, threads, clocks or entropy",
    ),
    (
        "crates/base/",
        &["std::net", "std::thread", "Instant", "SystemTime", "RandomState"],
        "the ground floor to have no network, threads, clocks or entropy",
    ),
    (
        "crates/simulate/",
        &["std::net", "Instant", "SystemTime", "RandomState"],
        "simulated time only: no clock, network or entropy",
    ),
    (
        "crates/serve/nbd/",
        &[
            "std::fs",
            "std::net",
            "std::os",
            "std::io",
            "std::thread",
            "std::time",
            "std::process",
            "Instant",
            "SystemTime",
            "RandomState",
        ],
        "a protocol of bytes in and bytes out: no files, network, threads, clocks or entropy",
    ),
    (
        "crates/serve/live/",
        &[
            "std::fs",
            "std::net",
            "std::thread",
            "std::time",
            "std::process",
            "Instant",
            "SystemTime",
            "RandomState",
        ],
        "files, network, threads and clocks in its folder `io` only",
    ),
    (
        "crates/serve/daemon/src/rehearsal/",
        &["std::net", "std::thread", "std::time", "Instant", "SystemTime", "RandomState"],
        "virtual time only, so that a rehearsal repeats: no clocks, threads or entropy",
    ),
    (
        "python/src/",
        &["std::fs", "std::net", "std::process"],
        "glue that holds no logic: no files, network or processes of its own",
    ),
];

/// The rule for a file.
fn rule_of(path: &str) -> Option<&'static CrateRule> {
    CRATES.iter().find(|rule| path.starts_with(rule.folder))
}

/// Code outside tests, examples and benches uses only the allowed crates and the allowed parts of
/// `std`.
pub fn imports(source: &SourceFile) -> Vec<Finding> {
    let measures = ["/examples/", "/benches/"].iter().any(|part| source.path.contains(part));
    let Some(rule) = rule_of(&source.path).filter(|_| source.kind == FileKind::Rust && !measures)
    else {
        return Vec::new();
    };
    let own = rule.folder.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let mut findings = Vec::new();
    for (line, name) in workspace_crates(source) {
        if !source.is_test(line) && name != own && !rule.uses.contains(&name.as_str()) {
            let message = format!(
                "found `cachewright_{name}`, expected `{}` to use only {}",
                rule.folder,
                listed(rule.uses)
            );
            findings.push(Finding::new(source, line, message));
        }
    }
    for (line, path, why) in forbidden(source) {
        if !source.is_test(line) {
            let message = format!("found `{path}`, expected {why}");
            findings.push(Finding::new(source, line, message));
        }
    }
    findings
}

/// The names in words, for a message.
fn listed(names: &[&str]) -> String {
    if names.is_empty() { "no other crate".to_owned() } else { names.join(", ") }
}

/// Crates of the workspace named in the code, with the lines.
fn workspace_crates(source: &SourceFile) -> Vec<(usize, String)> {
    let prefix = "cachewright_";
    let code = source.code.as_str();
    code.match_indices(prefix)
        .filter(|(position, _)| *position == 0 || !is_word(code.as_bytes()[position - 1]))
        .map(|(position, _)| {
            let rest = code[position + prefix.len()..].bytes();
            let name = rest.take_while(|byte| is_word(*byte)).map(char::from).collect();
            (source.line_at(position), name)
        })
        .collect()
}

/// Forbidden paths that the code names, in full or through a group of `use`.
fn forbidden(source: &SourceFile) -> Vec<(usize, String, &'static str)> {
    let mut found = Vec::new();
    if EXEMPT.iter().any(|part| source.path.starts_with(part)) {
        return found;
    }
    for (_, paths, why) in FORBIDDEN_PATHS.iter().filter(|(p, ..)| source.path.starts_with(p)) {
        for path in *paths {
            let whole = words(&source.code, path).map(|position| source.line_at(position));
            let grouped = uses(source)
                .into_iter()
                .filter(|(_, used)| used == path || used.starts_with(&format!("{path}::")))
                .map(|(line, _)| line);
            let mut lines: Vec<usize> = whole.chain(grouped).collect();
            lines.sort_unstable();
            lines.dedup();
            found.extend(lines.into_iter().map(|line| (line, (*path).to_owned(), *why)));
        }
    }
    found
}

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

/// Every path that `use` declarations name, with groups written out.
fn uses(source: &SourceFile) -> Vec<(usize, String)> {
    let code = source.code.as_str();
    let mut paths = Vec::new();
    for position in words(code, "use") {
        let end = code[position..].find(';').map_or(code.len(), |length| position + length);
        let tree: String = code[position + 3..end].split_whitespace().collect();
        let mut expanded = Vec::new();
        expand("", &tree, &mut expanded);
        paths.extend(expanded.into_iter().map(|path| (source.line_at(position), path)));
    }
    paths
}

/// Writes out one tree of `use`, as in `a::{b, c::{d}}`.
fn expand(prefix: &str, tree: &str, paths: &mut Vec<String>) {
    let Some(open) = tree.find('{') else {
        paths.push(format!("{prefix}{tree}"));
        return;
    };
    let inner = tree[open + 1..].strip_suffix('}').unwrap_or(&tree[open + 1..]);
    let prefix = format!("{prefix}{}", &tree[..open]);
    let (mut depth, mut start) = (0_i32, 0);
    for (position, byte) in inner.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b',' if depth == 0 => {
                expand(&prefix, &inner[start..position], paths);
                start = position + 1;
            }
            _ => {}
        }
    }
    expand(&prefix, &inner[start..], paths);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        imports(&SourceFile::new(path, text)).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn policy_may_not_use_cache() {
        let text = "use cachewright_types::BlockId;\nuse cachewright_cache::Engine;\n";
        assert_eq!(lines("crates/decide/policy/src/lru.rs", text), [2]);
        assert_eq!(lines("crates/simulate/system/src/lib.rs", text), [0_usize; 0]);
    }

    #[test]
    fn base_uses_only_types_and_live_never_the_simulator() {
        let text = "fn a() {\n    cachewright_policy::entries();\n}\n";
        assert_eq!(lines("crates/base/trace/src/lib.rs", text), [2]);
        let text = "use cachewright_system::Machine;\n";
        assert_eq!(lines("crates/serve/live/src/lib.rs", text), [1]);
    }

    #[test]
    fn decisions_are_pure() {
        let text = "use std::{fmt, fs::{self, File}};\nuse std::time::Instant;\nfn a() {\n    \
                    std::thread::yield_now();\n}\n#[cfg(test)]\nmod t { use std::fs; }\n";
        let mut found = lines("crates/decide/curve/src/lib.rs", text);
        found.dedup();
        assert_eq!(found, [1, 4, 2], "one finding per path and line");
        assert_eq!(lines("crates/base/trace/src/lib.rs", "use std::fs;\n"), [0_usize; 0]);
    }

    #[test]
    fn the_protocol_has_no_sockets_and_no_rooms_below() {
        assert_eq!(lines("crates/serve/nbd/src/lib.rs", "use std::net::TcpStream;\n"), [1]);
        assert_eq!(lines("crates/serve/nbd/src/lib.rs", "use cachewright_types::Op;\n"), [1]);
        assert_eq!(lines("fuzz/fuzz_targets/nbd.rs", "use cachewright_nbd::Session;\n"), [0; 0]);
    }

    #[test]
    fn a_live_cache_touches_the_machine_in_one_folder() {
        let text = "use std::thread;\nuse cachewright_curve::signal::Step;\n";
        assert_eq!(lines("crates/serve/live/src/node.rs", text), [1]);
        assert_eq!(lines("crates/serve/live/src/io/uring.rs", text), [0_usize; 0]);
        assert_eq!(lines("tests/live/main.rs", "use cachewright_live::Node;\n"), [0_usize; 0]);
        let text = "use cachewright_live::Node;\n";
        assert_eq!(lines("crates/simulate/experiment/src/lib.rs", text), [1]);
    }

    #[test]
    fn a_rehearsal_has_models_of_devices_and_no_clock() {
        let text = "use cachewright_device::AnyDevice;\nuse std::time::Instant;\n";
        assert_eq!(lines("crates/serve/daemon/src/rehearsal/mod.rs", text), [2, 2]);
        assert_eq!(lines("crates/serve/live/src/blocks/mod.rs", text)[0], 1);
    }

    #[test]
    fn the_glue_opens_no_files() {
        assert_eq!(lines("python/src/lib.rs", "use std::fs::File;\n"), [1]);
    }

    fn manifest_lines(path: &str, text: &str) -> Vec<usize> {
        dependencies(&[SourceFile::new(path, text)]).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn cache_may_not_depend_on_partition() {
        let text = "[dependencies]\ncachewright-policy.workspace = true\n\
                    cachewright-partition.workspace = true\n[dev-dependencies]\n\
                    cachewright-trace.workspace = true\n";
        assert_eq!(manifest_lines("crates/decide/cache/Cargo.toml", text), [3]);
    }

    #[test]
    fn decisions_may_not_depend_on_threads() {
        let text = "[dependencies]\nrayon = \"1\"\n";
        assert_eq!(manifest_lines("crates/decide/curve/Cargo.toml", text), [2]);
        assert_eq!(manifest_lines("crates/simulate/system/Cargo.toml", text), [0_usize; 0]);
    }

    #[test]
    fn an_unknown_crate_is_refused() {
        assert_eq!(manifest_lines("crates/decide/new/Cargo.toml", "[package]\n"), [1]);
    }

    #[test]
    fn groups_are_written_out_with_the_line_of_their_declaration() {
        let text = "use a::b;\n\nuse c::{\n    d,\n    e::{self, f},\n};\n";
        let found = uses(&SourceFile::new("crates/decide/cache/src/a.rs", text));
        let found: Vec<(usize, &str)> =
            found.iter().map(|(line, path)| (*line, path.as_str())).collect();
        let grouped = [(3, "c::d"), (3, "c::e::self"), (3, "c::e::f")];
        assert_eq!(found[..1], [(1, "a::b")]);
        // A comma at the end leaves an empty path behind the group.
        assert_eq!(found[1..4], grouped);
    }
}
