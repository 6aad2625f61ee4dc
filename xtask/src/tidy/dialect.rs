//! The rule on the private dialect: names and comments use the field's words.
//!
//! For: words that say nothing to a newcomer, counted per crate. A crate may have as many as
//! [`ALLOWED`] records. The rule fails for more, and for fewer until the record is lowered, so that
//! the numbers only fall. Must never know: any crate's names. Not in the list: `found`, which
//! errors pair with `expected`, and `left`, which trees pair with `right`.

use super::mask::is_word;
use super::{FileKind, Finding, SourceFile};
use std::collections::BTreeMap;

/// Whole names that name nothing.
const WHOLE: [&str; 3] = ["at", "of", "one"];
/// First parts of names that mean `max` and `min`.
const PREFIXES: [&str; 2] = ["least", "most"];
/// Parts of names, with what to write instead.
const PARTS: [(&str, &str); 28] = [
    ("asked", "request or on_request"),
    ("astray", "misplaced"),
    ("chore", "background operation"),
    ("chores", "background operations"),
    ("foresight", "oracle"),
    ("haunt", "insert_ghost"),
    ("heard", "observed"),
    ("hears", "observes"),
    ("judge", "classify or evaluate"),
    ("judged", "evaluation"),
    ("lesson", "training example"),
    ("lessons", "training set"),
    ("manner", "behaviour"),
    ("recut", "resample"),
    ("resettle", "redivide"),
    ("residence", "resident"),
    ("residences", "resident table"),
    ("room", "region, slot or free space"),
    ("rooms", "regions"),
    ("says", "predict or output"),
    ("shelf", "level list"),
    ("shelves", "level lists"),
    ("taught", "trained"),
    ("teaching", "training"),
    ("tells", "reports"),
    ("told", "notified"),
    ("untaught", "model mismatch"),
    ("worths", "cleaning scores"),
];
/// People that stand for things in comments and messages, in halves.
const PEOPLE: [[&str; 2]; 4] = [["who", "ever"], ["no", "body"], ["some", "body"], ["any", "body"]];

/// What each crate still has: names outside tests, and people in comments and messages. A number
/// here is only ever lowered.
const ALLOWED: [(&str, [usize; 2]); 10] = [
    ("crates/base/result", [10, 0]),
    ("crates/decide/cache", [14, 0]),
    ("crates/decide/control", [5, 0]),
    ("crates/decide/ftl", [2, 0]),
    ("crates/decide/partition", [13, 0]),
    ("crates/decide/policy", [81, 0]),
    ("crates/simulate/experiment", [50, 0]),
    ("crates/simulate/system", [3, 0]),
    ("fuzz", [4, 0]),
    ("python/src", [29, 0]),
];

/// What one crate has.
#[derive(Default)]
struct Count {
    names: BTreeMap<String, usize>,
    people: BTreeMap<String, usize>,
}

/// Crates with another count than recorded.
pub fn counts(sources: &[SourceFile]) -> Vec<Finding> {
    check(sources, &ALLOWED)
}

fn check(sources: &[SourceFile], allowed: &[(&str, [usize; 2])]) -> Vec<Finding> {
    let mut crates: BTreeMap<&str, (&SourceFile, Count)> = BTreeMap::new();
    for source in sources.iter().filter(|source| source.kind == FileKind::Rust) {
        let entry = crates.entry(crate_of(&source.path));
        let (_, count) = entry.or_insert_with(|| (source, Count::default()));
        names(source, &mut count.names);
        people(source, &mut count.people);
    }
    let absent = allowed.iter().filter(|(name, _)| !crates.contains_key(name));
    let mut findings: Vec<Finding> = absent
        .map(|(name, _)| Finding {
            path: "xtask/src/tidy/dialect.rs".to_owned(),
            line: 1,
            message: format!("found no file of `{name}`, expected no numbers for it in `ALLOWED`"),
        })
        .collect();
    for (name, (first, count)) in crates {
        let known = allowed.iter().find(|(known, _)| *known == name);
        let [max_names, max_people] = known.map_or([0; 2], |(_, numbers)| *numbers);
        let kinds = [
            ("names of the dialect", max_names, &count.names),
            ("people that stand for things", max_people, &count.people),
        ];
        for (kind, recorded, words) in kinds {
            if let Some(message) = compared(name, kind, recorded, words) {
                findings.push(Finding::new(first, 1, message));
            }
        }
    }
    findings
}

/// A sentence about a count that is not the recorded one.
fn compared(
    name: &str,
    kind: &str,
    recorded: usize,
    words: &BTreeMap<String, usize>,
) -> Option<String> {
    let found: usize = words.values().sum();
    if found < recorded {
        return Some(format!(
            "found {found} {kind} in `{name}`, fewer than the {recorded} recorded; lower the \
             number in `ALLOWED` of xtask/src/tidy/dialect.rs to {found}"
        ));
    }
    if found == recorded {
        return None;
    }
    let remedy = |word: &str| {
        let known = PARTS.iter().find(|(part, _)| *part == word);
        known.map_or(String::new(), |(_, instead)| format!(" ({instead})"))
    };
    let list: Vec<String> =
        words.iter().map(|(word, count)| format!("{word} {count}{}", remedy(word))).collect();
    let list = list.join(", ");
    Some(format!("found {found} {kind} in `{name}`, expected at most {recorded}: {list}"))
}

/// The folder of the crate that a file belongs to.
fn crate_of(path: &str) -> &str {
    let parts = match path.split('/').next() {
        Some("crates") => 3,
        Some("python") => 2,
        _ => 1,
    };
    let end = path.match_indices('/').nth(parts - 1).map_or(path.len(), |(end, _)| end);
    &path[..end]
}

/// Counts names of the dialect outside tests.
fn names(source: &SourceFile, count: &mut BTreeMap<String, usize>) {
    for (line, text) in source.code.lines().enumerate().map(|(index, text)| (index + 1, text)) {
        if source.is_test(line) {
            continue;
        }
        for name in text.split(|letter: char| !letter.is_alphanumeric() && letter != '_') {
            if let Some(word) = dialect(name) {
                *count.entry(word).or_default() += 1;
            }
        }
    }
}

/// The word of the dialect in a name.
fn dialect(name: &str) -> Option<String> {
    if WHOLE.contains(&name) {
        return Some(name.to_owned());
    }
    let parts = parts(name);
    let first = parts.first().filter(|first| PREFIXES.contains(&first.as_str()));
    let any = || parts.iter().find(|part| PARTS.iter().any(|(word, _)| word == part));
    first.or_else(any).cloned()
}

/// The parts of a name in lower case: between underscores, and from one capital to the next.
fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut lower_before = false;
    for letter in name.chars() {
        if letter == '_' || (letter.is_uppercase() && lower_before) {
            parts.push(String::new());
        }
        if letter != '_'
            && let Some(last) = parts.last_mut()
        {
            last.extend(letter.to_lowercase());
        }
        lower_before = letter.is_lowercase();
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// Counts people in comments and messages.
fn people(source: &SourceFile, count: &mut BTreeMap<String, usize>) {
    let text = source.text.to_ascii_lowercase();
    for halves in PEOPLE {
        let word = halves.concat();
        let found = text.match_indices(&word).filter(|(position, _)| {
            let bytes = text.as_bytes();
            let begins = *position == 0 || !is_word(bytes[position - 1]);
            let ends = bytes.get(position + word.len()).is_none_or(|next| !is_word(*next));
            begins && ends
        });
        let found = found.count();
        if found > 0 {
            *count.entry(word).or_default() += found;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, allowed: [usize; 2]) -> Vec<String> {
        let source = SourceFile::new("crates/decide/cache/src/a.rs", text);
        let findings = check(&[source], &[("crates/decide/cache", allowed)]);
        findings.into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn names_of_the_dialect_are_counted_by_their_parts() {
        let words = ["at", "least_blocks", "MOST_ROWS", "GiveRoom", "was_told", "asked"];
        assert!(words.iter().all(|word| dialect(word).is_some()));
        let words = ["latest", "almost", "that", "bedroom", "utmost", "at_once", "found", "left"];
        assert!(words.iter().all(|word| dialect(word).is_none()));
        assert_eq!(parts("RoomOf_MOST"), ["room", "of", "most"]);
        assert_eq!(crate_of("crates/base/types/src/lib.rs"), "crates/base/types");
        assert_eq!(crate_of("python/src/lib.rs"), "python/src");
        assert_eq!(crate_of("xtask/src/lib.rs"), "xtask");
    }

    #[test]
    fn more_than_recorded_is_found_with_what_to_write_instead() {
        let text = "//! x\nfn told(asked: u32) -> u32 { asked }\n";
        let message = "found 3 names of the dialect in `crates/decide/cache`, expected at most 2: \
                       asked 2 (request or on_request), told 1 (notified)";
        assert_eq!(found(text, [2, 0]), [message]);
        assert_eq!(found(text, [3, 0]), [""; 0]);
    }

    #[test]
    fn fewer_than_recorded_asks_for_a_lower_number() {
        let message = "found 1 people that stand for things in `crates/decide/cache`, fewer than \
                       the 2 recorded; lower the number in `ALLOWED` of xtask/src/tidy/dialect.rs \
                       to 1";
        assert_eq!(found(&["//! No", "body.\n"].concat(), [0, 2]), [message]);
    }

    #[test]
    fn numbers_of_a_crate_that_is_gone_are_found() {
        let findings = check(&[], &[("crates/decide/gone", [1, 0])]);
        let message = "found no file of `crates/decide/gone`, expected no numbers for it in \
                       `ALLOWED`";
        assert_eq!(findings[0].message, message);
    }

    #[test]
    fn names_in_tests_comments_and_strings_do_not_count() {
        let text = "//! told\nfn a() { \"told\" }\n#[test]\nfn told() {}\n";
        assert_eq!(found(text, [0, 0]), [""; 0]);
    }
}
