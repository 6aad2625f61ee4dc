//! Rules on what goes in and what comes out: keys and answers are declared, not written by hand.
//!
//! For: `declare!` as the one way to declare keys, `base/result` as the one home of answers. Must
//! never know: any key or answer.

use super::{Finding, Kind, Source};

/// The one policy whose settings only its own code knows.
const OWN_SETTINGS: &str = "crates/decide/policy/src/foreign.rs";

/// No answer is built as JSON by hand.
pub fn answers(source: &Source) -> Vec<Finding> {
    let home = source.path.starts_with("crates/base/result/");
    let ours = source.path.starts_with("crates/") || source.path.starts_with("python/src/");
    let message = "found `json!`, expected a struct of `base/result`";
    if home || !ours { Vec::new() } else { outside_tests(source, "json!", message) }
}

/// No group of settings reads its own keys.
pub fn settings(source: &Source) -> Vec<Finding> {
    let home = source.path.starts_with("crates/base/types/") || source.path == OWN_SETTINGS;
    let message = "found settings that read their own keys, expected `declare!`";
    if home { Vec::new() } else { outside_tests(source, "impl Declared for", message) }
}

fn outside_tests(source: &Source, wanted: &str, message: &str) -> Vec<Finding> {
    if source.kind != Kind::Rust || source.path.contains("/tests/") {
        return Vec::new();
    }
    let places = source.code.match_indices(wanted).map(|(at, _)| source.line_at(at));
    let found = places.filter(|line| !source.is_test(*line));
    found.map(|line| Finding::new(source, line, message.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_by_hand_is_found_outside_its_home_and_tests() {
        let text = "fn a() -> Value { json!({}) }\n#[test]\nfn t() {\n    json!({});\n}\n";
        let lines = |path: &str| answers(&Source::new(path, text)).len();
        assert_eq!(lines("crates/simulate/experiment/src/run.rs"), 1);
        assert_eq!(lines("crates/base/result/src/run.rs"), 0);
        assert_eq!(lines("crates/simulate/experiment/tests/suite/run.rs"), 0);
        assert_eq!(lines("xtask/src/generate.rs"), 0);
    }

    #[test]
    fn settings_by_hand_are_found() {
        let text = "impl Declared for Own {\n}\n";
        let lines = |path: &str| settings(&Source::new(path, text)).len();
        assert_eq!((lines("crates/decide/policy/src/lru.rs"), lines(OWN_SETTINGS)), (1, 0));
    }
}
