//! Files named one by one or by a pattern.
//!
//! For: the files of one recording. Must never know: what is in them. A pattern has `*` (any
//! characters), `?` (one character) or `[...]` (one of some characters, `!` for all others) in any
//! part of a path; a name that begins with a dot is matched by a pattern that does. A file whose
//! name is the pattern itself is meant as it is.

use crate::TraceError;
use std::cmp::Ordering;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Whether a path is a pattern, and no file of that name is there.
pub(crate) fn is_pattern(path: &Path) -> bool {
    has_magic(&path.to_string_lossy()) && !path.exists()
}

/// The files that a path stands for: itself, or those that it is a pattern of, in the order of
/// their names with numbers by value (`x.2` before `x.10`). Errors: a pattern that fits no file.
pub(crate) fn named(path: &Path) -> Result<Vec<PathBuf>, TraceError> {
    if !is_pattern(path) {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = vec![PathBuf::new()];
    for component in path.components() {
        found = match component {
            Component::Normal(name) if has_magic(&name.to_string_lossy()) => {
                let pattern: Vec<char> = name.to_string_lossy().chars().collect();
                found.iter().flat_map(|folder| matching(folder, &pattern)).collect()
            }
            _ => found.into_iter().map(|folder| folder.join(component)).collect(),
        };
    }
    found.retain(|file| file.exists() && !file.is_dir());
    found.sort_by(|a, b| by_number(&a.to_string_lossy(), &b.to_string_lossy()));
    if found.is_empty() {
        let found = "no file of this pattern".to_owned();
        return Err(TraceError::File { path: path.to_owned(), found, expected: "traces".into() });
    }
    Ok(found)
}

fn has_magic(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// What lies in a folder under names of a pattern; nothing for a folder that cannot be read.
fn matching(folder: &Path, pattern: &[char]) -> Vec<PathBuf> {
    let listed = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let Ok(entries) = fs::read_dir(listed) else { return Vec::new() };
    let fits = |name: &str| {
        let name: Vec<char> = name.chars().collect();
        (name[0] != '.' || pattern[0] == '.') && is_match(pattern, &name)
    };
    let names = entries.filter_map(|entry| Some(entry.ok()?.file_name()));
    names.filter(|name| fits(&name.to_string_lossy())).map(|name| folder.join(name)).collect()
}

/// Whether a name fits a pattern. A star takes as little as it can and more when the rest does not
/// fit: only the last star needs to be taken up again.
fn is_match(pattern: &[char], name: &[char]) -> bool {
    let (mut place, mut read) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while read < name.len() {
        let after = match pattern.get(place) {
            Some('*') => {
                star = Some((place + 1, read));
                place += 1;
                continue;
            }
            Some('[') => class(&pattern[place..], name[read]).map(|length| place + length),
            Some('?') => Some(place + 1),
            Some(other) => (*other == name[read]).then_some(place + 1),
            None => None,
        };
        match (after, star) {
            (Some(after), _) => (place, read) = (after, read + 1),
            (None, Some((behind, taken))) => {
                star = Some((behind, taken + 1));
                (place, read) = (behind, taken + 1);
            }
            (None, None) => return false,
        }
    }
    pattern[place..].iter().all(|rest| *rest == '*')
}

/// The length of the class `[...]` that a pattern begins with, if `letter` is in it. One that does
/// not end is a bracket.
fn class(pattern: &[char], letter: char) -> Option<usize> {
    // The first letter belongs to the class even if it is a bracket.
    let first = if pattern.get(1) == Some(&'!') { 2 } else { 1 };
    let Some(length) = pattern.iter().skip(first + 1).position(|end| *end == ']') else {
        return (letter == '[').then_some(1);
    };
    let letters = &pattern[first..=first + length];
    let ranges = letters.windows(3).filter(|range| range[1] == '-');
    let is_in = letters.contains(&letter)
        || ranges.into_iter().any(|range| (range[0]..=range[2]).contains(&letter));
    (is_in == (first == 1)).then_some(first + length + 2)
}

/// The order of names, with runs of digits as numbers.
fn by_number(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a, b);
    loop {
        let (first, second) = (digits(left), digits(right));
        if !first.is_empty() && !second.is_empty() {
            let value = |text: &str| text.trim_start_matches('0').to_owned();
            let (smaller, larger) = (value(first), value(second));
            match smaller.len().cmp(&larger.len()).then(smaller.cmp(&larger)) {
                Ordering::Equal => {}
                unequal => return unequal,
            }
            (left, right) = (&left[first.len()..], &right[second.len()..]);
            continue;
        }
        let (Some(letter), Some(other)) = (left.chars().next(), right.chars().next()) else {
            return left.len().cmp(&right.len()).then(a.cmp(b));
        };
        if letter != other {
            return letter.cmp(&other);
        }
        (left, right) = (&left[letter.len_utf8()..], &right[other.len_utf8()..]);
    }
}

fn digits(text: &str) -> &str {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(pattern: &str, name: &str) -> bool {
        let letters = |text: &str| text.chars().collect::<Vec<_>>();
        is_match(&letters(pattern), &letters(name))
    }

    #[test]
    fn patterns_match_as_in_a_shell() {
        for (pattern, name) in [
            ("*", "x"),
            ("x.*", "x.blktrace.0"),
            ("*.blktrace.?", "x.blktrace.0"),
            ("h[0-9][0-9].csv", "h07.csv"),
            ("a*b*c", "abbbcbc"),
            ("[!a]x", "bx"),
            ("[]]", "]"),
            ("[x", "[x"),
            ("x**", "x"),
        ] {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("x", "xy"),
            ("?", ""),
            ("h[0-3].csv", "h7.csv"),
            ("a*b", "abc"),
            ("[!a]x", "ax"),
            ("[x", "x"),
        ] {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn files_of_a_pattern_come_by_number() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["x.10", "x.2", "x.a", ".x.1", "y.1", "x.02"] {
            fs::write(folder.path().join(name), "1").unwrap();
        }
        fs::create_dir(folder.path().join("x.5")).unwrap();
        let names = |pattern: &str| {
            let found = named(&folder.path().join(pattern)).unwrap();
            let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
            found.iter().map(name).collect::<Vec<_>>()
        };
        assert_eq!(names("x.*"), ["x.02", "x.2", "x.10", "x.a"]);
        assert_eq!(names("x.2"), ["x.2"]);
        let error = named(&folder.path().join("z*")).unwrap_err().to_string();
        assert!(error.ends_with("z*: found no file of this pattern, expected traces"), "{error}");
        fs::write(folder.path().join("z*"), "1").unwrap();
        assert_eq!(names("z*"), ["z*"], "a file of that name is meant as it is");
    }
}
