//! The rule on tests that a design page names: each exists.
//!
//! For: tables that say which test holds a decision, as `` `path/of/file.rs::name` `` or
//! `` `path/of/file.py::name` ``. Must never know: what a test checks.

use super::mask::words;
use super::{FileKind, Finding, SourceFile};

/// The folder of pages whose names are checked.
const PAGES: &str = "docs/design/";

/// How files with tests end, and whether one has a test of a name.
type Language = (&'static str, FileKind, fn(&SourceFile, &str) -> bool);
const LANGUAGES: [Language; 2] =
    [(".rs", FileKind::Rust, has_test), (".py", FileKind::Python, has_python_test)];

/// Names of tests that no file has.
pub fn missing(sources: &[SourceFile]) -> Vec<Finding> {
    let pages = sources.iter().filter(|source| source.path.starts_with(PAGES));
    pages.flat_map(|page| missing_in(page, sources)).collect()
}

fn missing_in(page: &SourceFile, sources: &[SourceFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in page.lines() {
        // Every second part of a line stands between two backticks.
        for span in line.split('`').skip(1).step_by(2) {
            let missing =
                LANGUAGES.into_iter().find_map(|language| lacking(span, language, sources));
            findings.extend(missing.map(|message| Finding::new(page, number, message)));
        }
    }
    findings
}

/// What a name between two backticks lacks, if it is one of a test of this language.
fn lacking(span: &str, (suffix, kind, has): Language, sources: &[SourceFile]) -> Option<String> {
    let (path, name) = span.split_once(&format!("{suffix}::"))?;
    let path = format!("{path}{suffix}");
    let file = sources.iter().find(|other| other.kind == kind && other.path == path);
    match file {
        None => Some(format!("found the file `{path}`, which is not there, expected a test")),
        Some(file) if has(file, name) => None,
        Some(_) => Some(format!("found no test `{name}` in `{path}`, expected one")),
    }
}

/// Whether a file of Python has a test of this name.
fn has_python_test(file: &SourceFile, name: &str) -> bool {
    let head = format!("def {name}(");
    name.starts_with("test_") && file.lines().any(|(_, line)| line.trim_start().starts_with(&head))
}

/// Whether a file has a test of this name.
fn has_test(file: &SourceFile, name: &str) -> bool {
    words(&file.code, &format!("fn {name}")).any(|position| {
        let before = file.code[..position].rsplit('\n').skip(1);
        let mut attributes =
            before.map(str::trim).take_while(|line| line.is_empty() || line.starts_with('#'));
        attributes.any(|line| line == "#[test]")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(page: &str) -> Vec<String> {
        let test = "//! x\n#[test]\n/// Why.\n#[ignore]\nfn it_holds() {}\nfn helper() {}\n";
        let inner = "//! x\nproptest! {\n    #[test]\n    fn it_holds_often(x in 0..9) {}\n}\n";
        let sources = [
            SourceFile::new("docs/design/live.md", page),
            SourceFile::new("docs/other.md", "`crates/a/tests/gone.rs::x`\n"),
            SourceFile::new("crates/a/tests/one.rs", test),
            SourceFile::new("crates/a/src/two.rs", inner),
            SourceFile::new("python/tests/test_x.py", "def helper():\n    pass\ndef test_it(x):\n"),
        ];
        missing(&sources).into_iter().map(|finding| finding.to_string()).collect()
    }

    #[test]
    fn tests_that_are_there_may_be_named() {
        let page = "| 1 | `crates/a/tests/one.rs::it_holds`, `crates/a/src/two.rs::it_holds_often` \
                    and `decide/steps`, `python/tests/test_x.py::test_it` |\n";
        assert_eq!(found(page), Vec::<String>::new());
    }

    #[test]
    fn a_test_that_is_gone_is_found_with_its_place() {
        let page = "x\n`crates/a/tests/one.rs::it_held`\n`crates/a/tests/one.rs::helper`\n\
                    `crates/a/tests/three.rs::it_holds`\n`python/tests/test_x.py::helper`\n";
        assert_eq!(
            found(page),
            [
                "docs/design/live.md:2: found no test `it_held` in `crates/a/tests/one.rs`, \
                 expected one",
                "docs/design/live.md:3: found no test `helper` in `crates/a/tests/one.rs`, \
                 expected one",
                "docs/design/live.md:4: found the file `crates/a/tests/three.rs`, which is not \
                 there, expected a test",
                "docs/design/live.md:5: found no test `helper` in `python/tests/test_x.py`, \
                 expected one",
            ]
        );
    }
}
