//! `cargo xtask tidy`: what the compiler, rustfmt, clippy and ruff do not see, as a test.
//!
//! A rule says what it found and what it expected, and never changes a file.

mod imports;
mod source;

use source::words;
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
    fn new(source: &SourceFile, line: usize, message: impl Into<String>) -> Finding {
        Finding { path: source.path.clone(), line, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// A rule.
struct Rule {
    /// Why there is one: told with each finding.
    reason: &'static str,
    check: RuleCheck,
}

/// What a rule reads.
enum RuleCheck {
    OneFile(fn(&SourceFile) -> Vec<Finding>),
    AllFiles(fn(&[SourceFile]) -> Vec<Finding>),
}

/// All rules.
const RULES: [Rule; 7] = [
    Rule {
        reason: "two files fit beside each other; formatters leave long strings and comments",
        check: RuleCheck::OneFile(columns),
    },
    Rule {
        reason: "no input may end the process; clippy can be told to allow it, this cannot",
        check: RuleCheck::OneFile(unwrap),
    },
    Rule {
        reason: "all of it can be read in an hour, each with the sentence that makes it sound",
        check: RuleCheck::OneFile(unsafe_code),
    },
    Rule {
        reason: "decisions stay pure, so that simulator and server share them",
        check: RuleCheck::OneFile(imports::imports),
    },
    Rule {
        reason: "a crate that a manifest names is one that its code may soon use",
        check: RuleCheck::AllFiles(imports::dependencies),
    },
    Rule {
        reason: "compilers and linters do not read a file that no other file names",
        check: RuleCheck::AllFiles(dead_files),
    },
    Rule {
        reason: "paths and package registries of one machine are true nowhere else",
        check: RuleCheck::OneFile(machine),
    },
];

/// The number of files read, and all findings in the workspace at `root`, sorted by place. Errors:
/// a file cannot be read.
pub fn check(root: &Path) -> io::Result<(usize, Vec<Finding>)> {
    let sources = source::read_all(root)?;
    let mut findings: Vec<Finding> = Vec::new();
    for rule in RULES {
        let mut found = match rule.check {
            RuleCheck::OneFile(check) => sources.iter().flat_map(check).collect(),
            RuleCheck::AllFiles(check) => check(&sources),
        };
        for finding in &mut found {
            finding.message = format!("{} ({})", finding.message, rule.reason);
        }
        findings.extend(found);
    }
    findings.sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
    Ok((sources.len(), findings))
}

/// The widest line.
const COLUMNS: usize = 100;

/// No line of code is wider than a page.
fn columns(source: &SourceFile) -> Vec<Finding> {
    if source.kind == FileKind::Text || source.is_generated() {
        return Vec::new();
    }
    let wide = source.lines().map(|(line, text)| (line, text.chars().count()));
    let wide = wide.filter(|(_, width)| *width > COLUMNS);
    let message = |width| format!("found {width} columns, expected at most {COLUMNS}");
    wide.map(|(line, width)| Finding::new(source, line, message(width))).collect()
}

/// Where unsafe code may stand: SIMD kernels, hints about memory, io_uring and mmap edges, and the
/// measurement of the ring alone.
const UNSAFE_ALLOWED: [&str; 8] = [
    "crates/base/model/src/simd",
    "crates/base/memory/src/lib.rs",
    "crates/base/memory/src/mapping.rs",
    "crates/base/trace/src/mmap",
    "crates/serve/live/src/io/uring",
    "crates/serve/live/examples/io_speed",
    "crates/serve/daemon/examples/guest_load",
    "crates/serve/daemon/tests/suite/guests",
];
/// Largest distance in lines between a SAFETY comment and the code below it.
const SAFETY_ABOVE: usize = 6;

/// No `unwrap` and `expect` outside tests.
fn unwrap(source: &SourceFile) -> Vec<Finding> {
    if source.kind != FileKind::Rust {
        return Vec::new();
    }
    let calls = [".unwrap()", ".expect(", ".unwrap_err()", ".expect_err("];
    let mut findings = Vec::new();
    for call in calls {
        for (position, _) in source.code.match_indices(call) {
            let line = source.line_at(position);
            if !source.is_test(line) {
                let message = format!("found `{call}`, expected the error to be returned");
                findings.push(Finding::new(source, line, message));
            }
        }
    }
    findings
}

/// `unsafe` only in the files named above, each with a SAFETY comment.
fn unsafe_code(source: &SourceFile) -> Vec<Finding> {
    if source.kind != FileKind::Rust {
        return Vec::new();
    }
    let allowed = UNSAFE_ALLOWED.iter().any(|prefix| source.path.starts_with(prefix));
    let lines: Vec<&str> = source.text.lines().collect();
    let mut findings = Vec::new();
    for position in words(&source.code, "unsafe") {
        let line = source.line_at(position);
        let above = &lines[line.saturating_sub(SAFETY_ABOVE + 1)..line];
        if !allowed {
            let message = "found `unsafe`, expected it only in SIMD kernels and io_uring and mmap \
                           edges that `UNSAFE_ALLOWED` of xtask/src/tidy/mod.rs names";
            findings.push(Finding::new(source, line, message.to_owned()));
        } else if !above.iter().any(|text| text.contains("SAFETY:")) {
            let message = "found `unsafe`, expected a `SAFETY:` comment above it";
            findings.push(Finding::new(source, line, message.to_owned()));
        }
    }
    findings
}

/// Folders of a crate whose files Cargo finds without a declaration.
const DISCOVERED: [&str; 4] = ["/tests/", "/examples/", "/benches/", "/src/bin/"];

/// Rust modules that no `mod` declares, Python modules that nothing imports.
fn dead_files(sources: &[SourceFile]) -> Vec<Finding> {
    sources
        .iter()
        .filter(|source| match source.kind {
            FileKind::Rust => !is_rust_reached(source, sources),
            FileKind::Python => !is_python_reached(source, sources),
            _ => false,
        })
        .map(|source| {
            let message = "found a file that nothing reaches, expected a `mod`, an import or a \
                           manifest to name it";
            Finding::new(source, 1, message.to_owned())
        })
        .collect()
}

fn is_rust_reached(source: &SourceFile, sources: &[SourceFile]) -> bool {
    let (folder, file) = source.path.rsplit_once('/').unwrap_or(("", &source.path));
    let stem = file.trim_end_matches(".rs");
    if matches!(file, "lib.rs" | "main.rs" | "build.rs") {
        return true;
    }
    let (folder, stem) = if stem == "mod" {
        folder.rsplit_once('/').unwrap_or(("", folder))
    } else {
        (folder, stem)
    };
    let in_root = |name: &str| format!("{folder}/").ends_with(name);
    if DISCOVERED.iter().any(|name| in_root(name)) || is_named_by_manifest(source, sources) {
        return true;
    }
    let parents = |other: &SourceFile| {
        let path = other.path.as_str();
        let beside = path.rsplit_once('/').is_some_and(|(dir, _)| dir == folder);
        path == format!("{folder}.rs") || beside
    };
    sources.iter().filter(|other| other.kind == FileKind::Rust && parents(other)).any(|other| {
        other.path != source.path
            && (words(&other.code, &format!("mod {stem}")).next().is_some()
                || other.text.contains(&format!("path = \"{file}\"")))
    })
}

/// Whether a manifest gives the file as the path of a target.
fn is_named_by_manifest(source: &SourceFile, sources: &[SourceFile]) -> bool {
    sources.iter().filter(|other| other.path.ends_with("Cargo.toml")).any(|manifest| {
        let folder = manifest.path.trim_end_matches("Cargo.toml");
        source
            .path
            .strip_prefix(folder)
            .is_some_and(|path| manifest.text.contains(&format!("path = \"{path}\"")))
    })
}

fn is_python_reached(source: &SourceFile, sources: &[SourceFile]) -> bool {
    let file = source.path.rsplit('/').next().unwrap_or(&source.path);
    let Some(stem) = file.strip_suffix(".py") else { return true };
    let run_by_hand = source.text.starts_with("#!") || !source.path.contains('/');
    if run_by_hand || stem.starts_with("__") || stem == "conftest" || stem.starts_with("test_") {
        return true;
    }
    let others = sources.iter().filter(|other| other.path != source.path);
    others.filter(|other| other.kind != FileKind::Rust).any(|other| {
        let imports = other.text.lines().filter(|line| {
            let line = line.trim_start();
            other.kind != FileKind::Python || line.contains("import") || line.contains('"')
        });
        imports.into_iter().any(|line| words(line, stem).next().is_some())
    })
}

/// Folders that are places of one machine. In halves, so that this file does not find itself.
const MACHINE_PATHS: [[&str; 2]; 7] = [
    ["/wo", "rk/"],
    ["/fa", "rm/"],
    ["/ho", "me/"],
    ["/ro", "ot/"],
    ["/Us", "ers/"],
    ["C:\\Us", "ers"],
    [".lib", "rary/"],
];
/// Package registries and their options, which the client's own configuration names.
const REGISTRIES: [[&str; 2]; 8] = [
    ["crates", ".io"],
    ["pypi", ".org"],
    ["python", "hosted.org"],
    ["index", "-url"],
    ["find", "-links"],
    ["extra-index", "-url"],
    ["registry", " = \"http"],
    ["proxy", ".golang.org"],
];

/// No absolute path of one machine and no registry.
fn machine(source: &SourceFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    for path in MACHINE_PATHS.map(|halves| halves.concat()) {
        for (position, _) in source.text.match_indices(&path) {
            if begins_path(&source.text, position, &path) {
                let message = format!("found `{path}`, expected a path relative to the repository");
                findings.push(Finding::new(source, source.line_at(position), message));
            }
        }
    }
    let text = source.text.to_ascii_lowercase();
    for host in REGISTRIES.map(|halves| halves.concat()) {
        for position in words(&text, &host) {
            let message = format!("found `{host}`, expected the client's own configuration");
            findings.push(Finding::new(source, source.line_at(position), message));
        }
    }
    findings
}

/// Whether the path at `position` is absolute: no longer path ends before it.
fn begins_path(text: &str, position: usize, path: &str) -> bool {
    let before = text[..position].bytes().last();
    !path.starts_with('/')
        || before.is_none_or(|byte| !byte.is_ascii_alphanumeric() && !b"._-*}/".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_reads_as_a_place() {
        let source = SourceFile::new("a/b.rs", "");
        let finding = Finding::new(&source, 7, "found a tab, expected spaces");
        assert_eq!(finding.to_string(), "a/b.rs:7: found a tab, expected spaces");
    }

    #[test]
    fn a_wide_line_is_found_by_characters_not_bytes() {
        let wide = |text: String| columns(&SourceFile::new("a.rs", &text)).len();
        assert_eq!(wide(format!("// {}", "x".repeat(98))), 1);
        assert_eq!(wide(format!("// {}", "é".repeat(97))), 0);
    }

    #[test]
    fn an_unwrap_is_found_outside_tests_only() {
        let text = "fn a() { b.unwrap(); }\n#[test]\nfn t() {\n    c.expect(\"x\");\n}\n\
                    // d.unwrap()\nconst E: &str = \".unwrap()\";\n";
        let found = unwrap(&SourceFile::new("a.rs", text));
        assert_eq!(found.iter().map(|f| f.line).collect::<Vec<_>>(), [1]);
        assert_eq!(unwrap(&SourceFile::new("a.rs", "fn a() { b.unwrap_or(1); }\n")), []);
    }

    #[test]
    fn unsafe_code_needs_its_place_and_its_reason() {
        let bare = "fn a() { unsafe { b() } }\n";
        let reasoned = "// SAFETY: b has no precondition.\nfn a() { unsafe { b() } }\n";
        assert_eq!(
            unsafe_code(&SourceFile::new("crates/base/trace/src/lib.rs", reasoned)).len(),
            1
        );
        assert_eq!(unsafe_code(&SourceFile::new("crates/base/trace/src/mmap.rs", bare)).len(), 1);
        assert_eq!(unsafe_code(&SourceFile::new("crates/base/trace/src/mmap.rs", reasoned)), []);
        assert_eq!(
            unsafe_code(&SourceFile::new("a.rs", "#![forbid(unsafe_code)] // unsafe\n")),
            []
        );
    }

    fn dead(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<SourceFile> = files.iter().map(|(p, t)| SourceFile::new(p, t)).collect();
        dead_files(&sources).into_iter().map(|finding| finding.path).collect()
    }

    #[test]
    fn a_rust_file_without_mod_is_dead() {
        let files = [
            ("crates/a/src/lib.rs", "//! x\nmod used;\n// mod dead;\npub mod deep;\n"),
            ("crates/a/src/used.rs", "//! x\n"),
            ("crates/a/src/dead.rs", "//! x\n"),
            ("crates/a/src/deep/mod.rs", "//! x\nmod leaf;\n"),
            ("crates/a/src/deep/leaf.rs", "//! x\n"),
            ("crates/a/tests/one.rs", "//! x\n"),
            ("crates/a/benches/Cargo.toml", "path = \"speed.rs\"\n"),
        ];
        assert_eq!(dead(&files), ["crates/a/src/dead.rs"]);
    }

    #[test]
    fn a_target_named_by_its_manifest_is_alive() {
        let files = [
            ("fuzz/Cargo.toml", "[[bin]]\nname = \"msr\"\npath = \"fuzz_targets/msr.rs\"\n"),
            ("fuzz/fuzz_targets/msr.rs", "//! x\n"),
            ("fuzz/fuzz_targets/lost.rs", "//! x\n"),
        ];
        assert_eq!(dead(&files), ["fuzz/fuzz_targets/lost.rs"]);
    }

    #[test]
    fn a_python_file_that_nothing_imports_is_dead() {
        let files = [
            ("python/cachewright/__init__.py", "\"\"\"x\"\"\"\nfrom .api import run\n"),
            ("python/cachewright/api.py", "\"\"\"x\"\"\"\n"),
            ("python/cachewright/lost.py", "\"\"\"x\"\"\"\n"),
            ("python/tests/test_api.py", "\"\"\"x\"\"\"\n"),
        ];
        assert_eq!(dead(&files), ["python/cachewright/lost.py"]);
    }

    #[test]
    fn a_path_of_one_machine_is_found() {
        let found = |halves: [&str; 3]| {
            machine(&SourceFile::new("a.md", &format!("x\n{}\n", halves.concat()))).len()
        };
        assert_eq!(found(["run \"/ho", "me/", "x\""]), 1);
        assert_eq!(found(["at /wo", "rk/", "main"]), 1);
        assert_eq!(found(["target/wo", "rk/", "main"]), 0);
        assert_eq!(found(["see Crates", ".io", ""]), 1);
        assert_eq!(found(["index", "-url", " = x"]), 1);
    }
}
