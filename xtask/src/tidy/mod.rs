//! `cargo xtask tidy`: the style of the workspace, as a test.
//!
//! For: the table of rules and the findings they return. Must never know: git, networks, clocks. A
//! rule reads one file ([`RULES`]) or all of them ([`HOUSE_RULES`]). It reports what it found and
//! what it expected, and never changes a file.

mod dead_files;
mod declared;
mod dialect;
mod imports;
mod layout;
mod manifests;
mod mask;
mod named_tests;
mod panics;
mod source;
mod use_paths;
mod words;

pub use source::{FileKind, SourceFile};
use std::fmt;
use std::io;
use std::path::Path;

/// One breach of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file, relative to the root.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// What was found and what was expected.
    pub message: String,
}

impl Finding {
    /// A finding in `source`.
    pub fn new(source: &SourceFile, line: usize, message: String) -> Finding {
        Finding { path: source.path.clone(), line, message }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// A rule about one file.
type Rule = fn(&SourceFile) -> Vec<Finding>;

/// The rules about one file, by name.
pub const RULES: [(&str, Rule); 13] = [
    ("header", layout::header),
    ("columns", layout::columns),
    ("blanks", layout::blanks),
    ("unwrap", panics::unwrap),
    ("unsafe", panics::unsafe_code),
    ("left to do", words::left_to_do),
    ("registry hosts", words::registry_hosts),
    ("machine paths", words::machine_paths),
    ("authorship", words::authorship),
    ("answers by hand", declared::answers),
    ("settings by hand", declared::settings),
    ("answers by key", declared::look_ups),
    ("imports", imports::imports),
];

/// A rule about how the files fit together.
type HouseRule = fn(&[SourceFile]) -> Vec<Finding>;

/// The rules about how the files fit together, by name.
pub const HOUSE_RULES: [(&str, HouseRule); 4] = [
    ("manifests", manifests::dependencies),
    ("dead files", dead_files::unreached),
    ("dialect", dialect::counts),
    ("named tests", named_tests::missing),
];

/// All findings in the workspace at `root`, sorted by place. Errors: a file cannot be read.
pub fn check(root: &Path) -> io::Result<(usize, Vec<Finding>)> {
    let sources = source::read_all(root)?;
    let mut findings: Vec<Finding> = Vec::new();
    for (_, rule) in RULES {
        findings.extend(sources.iter().flat_map(rule));
    }
    for (_, rule) in HOUSE_RULES {
        findings.extend(rule(&sources));
    }
    findings.sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
    Ok((sources.len(), findings))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_reads_as_a_place() {
        let source = SourceFile::new("a/b.rs", "");
        let finding = Finding::new(&source, 7, "found a tab, expected spaces".to_owned());
        assert_eq!(finding.to_string(), "a/b.rs:7: found a tab, expected spaces");
    }

    #[test]
    fn a_clean_file_has_no_findings() {
        let text = "//! Adds.\n\n/// The sum.\npub fn add(a: u32, b: u32) -> u32 {\n    a + b\n}\n";
        let source = SourceFile::new("crates/base/types/src/lib.rs", text);
        let findings: Vec<_> = RULES.iter().flat_map(|(_, rule)| rule(&source)).collect();
        assert_eq!(findings, []);
    }
}
