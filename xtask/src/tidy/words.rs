//! Rules on words that must not be published.
//!
//! For: unfinished work, addresses of package registries, paths of one machine, talk about the
//! origin of the text. Must never know: other files. Words are kept in halves, so that this file
//! does not find itself.

use super::mask::words;
use super::{FileKind, Finding, SourceFile};

const LEFT_TO_DO: [[&str; 2]; 5] =
    [["TO", "DO"], ["FIX", "ME"], ["XX", "X"], ["to", "do!("], ["unimple", "mented!("]];
const REGISTRY_HOSTS: [[&str; 2]; 8] = [
    ["crates", ".io"],
    ["pypi", ".org"],
    ["python", "hosted.org"],
    ["index", "-url"],
    ["find", "-links"],
    ["extra-index", "-url"],
    ["registry", " = \"http"],
    ["proxy", ".golang.org"],
];
const MACHINE_PATHS: [[&str; 2]; 7] = [
    ["/wo", "rk/"],
    ["/fa", "rm/"],
    ["/ho", "me/"],
    ["/ro", "ot/"],
    ["/Us", "ers/"],
    ["C:\\Us", "ers"],
    [".lib", "rary/"],
];
const AUTHORSHIP: [[&str; 2]; 10] = [
    ["cla", "ude"],
    ["chat", "gpt"],
    ["cop", "ilot"],
    ["anthro", "pic"],
    ["open", "ai"],
    ["assist", "ant"],
    ["language ", "model"],
    ["ai-", "generated"],
    ["as an ", "ai"],
    ["ll", "m"],
];

/// Nothing is left to do in the code.
pub fn left_to_do(source: &SourceFile) -> Vec<Finding> {
    if source.kind == FileKind::Text {
        return Vec::new();
    }
    find(source, &source.text, &LEFT_TO_DO, "the work done, or an issue")
}

/// No address of a package registry, which would be this machine's.
pub fn registry_hosts(source: &SourceFile) -> Vec<Finding> {
    find(source, &source.text.to_lowercase(), &REGISTRY_HOSTS, "the client's own configuration")
}

/// No absolute path of one machine.
pub fn machine_paths(source: &SourceFile) -> Vec<Finding> {
    let expected = "a path relative to the repository";
    let mut findings = Vec::new();
    for halves in MACHINE_PATHS {
        let path = halves.concat();
        for (position, _) in source.text.match_indices(&path) {
            if begins_path(&source.text, position, &path) {
                let line = 1 + source.text[..position].matches('\n').count();
                let message = format!("found `{path}`, expected {expected}");
                findings.push(Finding::new(source, line, message));
            }
        }
    }
    findings
}

/// No talk about the author of a line.
pub fn authorship(source: &SourceFile) -> Vec<Finding> {
    find(source, &source.text.to_lowercase(), &AUTHORSHIP, "facts about the code alone")
}

/// Whether the path at `position` is absolute: no longer path ends before it.
fn begins_path(text: &str, position: usize, path: &str) -> bool {
    let before = text[..position].bytes().last();
    !path.starts_with('/')
        || before.is_none_or(|byte| !byte.is_ascii_alphanumeric() && !b"._-*}/".contains(&byte))
}

fn find(source: &SourceFile, text: &str, halves: &[[&str; 2]], expected: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for pair in halves {
        let word = pair.concat();
        for position in words(text, &word) {
            let line =
                1 + text.as_bytes()[..position].iter().filter(|byte| **byte == b'\n').count();
            let message = format!("found `{word}`, expected {expected}");
            findings.push(Finding::new(source, line, message));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, halves: [&str; 3]) -> SourceFile {
        SourceFile::new(path, &format!("//! x\n{}\n", halves.concat()))
    }

    #[test]
    fn work_left_to_do_is_found_in_code_and_comments() {
        assert_eq!(left_to_do(&source("a.rs", ["// TO", "DO: ", "later"])).len(), 1);
        assert_eq!(left_to_do(&source("a.py", ["# FIX", "ME", ""])).len(), 1);
        assert_eq!(left_to_do(&source("a.rs", ["unimple", "mented!", "()"])).len(), 1);
        assert_eq!(left_to_do(&source("a.rs", ["let mas", "todons", " = 1;"])), []);
    }

    #[test]
    fn a_registry_is_found_in_any_file() {
        assert_eq!(registry_hosts(&source("a.md", ["see Crates", ".io", ""])).len(), 1);
        assert_eq!(registry_hosts(&source("pip.conf", ["index", "-url", " = x"])).len(), 1);
    }

    #[test]
    fn a_path_of_one_machine_is_found() {
        assert_eq!(machine_paths(&source("a.md", ["run \"/ho", "me/", "x\""])).len(), 1);
        assert_eq!(machine_paths(&source("a.md", ["at /wo", "rk/", "main"])).len(), 1);
        assert_eq!(machine_paths(&source("a.md", ["target/wo", "rk/", "main"])), []);
    }

    #[test]
    fn talk_about_authors_is_found() {
        assert_eq!(authorship(&source("a.md", ["by an ASSIST", "ANT", ""])).len(), 1);
        assert_eq!(authorship(&source("a.md", ["the wal", "lm", "art trace"])), []);
    }
}
