//! Rules on input and output: keys and answers are declared, not written by hand.
//!
//! For: `declare!` as the one way to declare keys, `base/result` as the home of answers, records as
//! what Python reads. Must never know: any key or answer.

use super::{FileKind, Finding, SourceFile};

/// The one policy whose settings only its own code knows.
const OWN_SETTINGS: &str = "crates/decide/policy/src/foreign.rs";

/// Names of records in Python, and the JSON form of an answer: none of them is read by key.
const RECORDS: [&str; 8] =
    ["answer", "case", "classifier", "learning", "line", "timing", "total", "result.document"];

/// No answer is built as JSON by hand.
pub fn answers(source: &SourceFile) -> Vec<Finding> {
    let home = source.path.starts_with("crates/base/result/");
    let ours = source.path.starts_with("crates/") || source.path.starts_with("python/src/");
    let message = "found `json!`, expected a struct of `base/result`";
    if home || !ours { Vec::new() } else { outside_tests(source, "json!", message) }
}

/// No group of settings reads its own keys.
pub fn settings(source: &SourceFile) -> Vec<Finding> {
    let home = source.path.starts_with("crates/base/types/") || source.path == OWN_SETTINGS;
    let message = "found settings that read their own keys, expected `declare!`";
    if home { Vec::new() } else { outside_tests(source, "impl Declared for", message) }
}

/// Python reads answers by attributes, which the type checker knows.
pub fn look_ups(source: &SourceFile) -> Vec<Finding> {
    if source.kind != FileKind::Python || !source.path.starts_with("python/cachewright/") {
        return Vec::new();
    }
    let read = |line: &str| {
        RECORDS.iter().any(|name| {
            let looked_up = ["[\"", "['", ".get("].map(|open| format!("{name}{open}"));
            looked_up.iter().any(|text| is_word(line, text))
        })
    };
    let found = source.lines().filter(|(_, line)| read(line));
    let message = "found a look-up in an answer by text, expected an attribute of its record";
    found.map(|(line, _)| Finding::new(source, line, message.to_owned())).collect()
}

/// Whether a line has a text that does not begin inside a longer word.
fn is_word(line: &str, text: &str) -> bool {
    line.match_indices(text).any(|(position, _)| {
        let before = line[..position].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
    })
}

fn outside_tests(source: &SourceFile, wanted: &str, message: &str) -> Vec<Finding> {
    if source.kind != FileKind::Rust || source.path.contains("/tests/") {
        return Vec::new();
    }
    let places = source.code.match_indices(wanted).map(|(position, _)| source.line_at(position));
    let found = places.filter(|line| !source.is_test(*line));
    found.map(|line| Finding::new(source, line, message.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_by_hand_is_found_outside_its_home_and_tests() {
        let text = "fn a() -> Value { json!({}) }\n#[test]\nfn t() {\n    json!({});\n}\n";
        let lines = |path: &str| answers(&SourceFile::new(path, text)).len();
        assert_eq!(lines("crates/simulate/experiment/src/run.rs"), 1);
        assert_eq!(lines("crates/base/result/src/run.rs"), 0);
        assert_eq!(lines("crates/simulate/experiment/tests/suite/run.rs"), 0);
        assert_eq!(lines("xtask/src/generate.rs"), 0);
    }

    #[test]
    fn answers_that_python_reads_by_key_are_found() {
        let lines = |text: &str| look_ups(&SourceFile::new("python/cachewright/a.py", text)).len();
        assert_eq!(lines("a = case[\"total\"]\nb = self.case['total']\n"), 2);
        assert_eq!(lines("a = result.document[\"cases\"]\n"), 1);
        assert_eq!(lines("a = f\"{line.get('x')}\"\n"), 1);
        assert_eq!(lines("a = case.total\nb = cases[\"hits\"]\nc = row[\"case\"]\n"), 0);
        let elsewhere = SourceFile::new("python/tests/test_a.py", "a = case[\"total\"]\n");
        assert_eq!(look_ups(&elsewhere).len(), 0);
    }

    #[test]
    fn settings_by_hand_are_found() {
        let text = "impl Declared for Own {\n}\n";
        let lines = |path: &str| settings(&SourceFile::new(path, text)).len();
        assert_eq!((lines("crates/decide/policy/src/lru.rs"), lines(OWN_SETTINGS)), (1, 0));
    }
}
