//! Texts in messages: what a user or a file gave, made visible; the name nearest to a misspelt one.

/// Characters of a quoted text at most.
const LONGEST: usize = 400;

/// Control characters, separators of lines, marks of direction, and what is no character. Control
/// characters move a terminal's cursor and break charts; marks of direction make a name look like
/// another one.
pub fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
            | '\u{feff}' | '\u{fdd0}'..='\u{fdef}')
        || u32::from(character) & 0xfffe == 0xfffe
}

/// A text whose hidden characters are written out, cut after 400 characters.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len().min(2 * LONGEST));
    for (position, character) in text.chars().enumerate() {
        if position == LONGEST {
            shown.push_str("...");
            break;
        }
        match is_hidden(character) {
            true => shown.extend(character.escape_default()),
            false => shown.push(character),
        }
    }
    shown
}

/// The registered name nearest to `wanted`, if any is near enough to be worth suggesting.
///
/// Distance is Levenshtein's; a name further than a third of its length (at least 2) is not near.
pub fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = &wanted.to_lowercase();
    names
        .into_iter()
        .map(|name| (edit_distance(wanted, &name.to_lowercase()), name))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, name)| *distance <= (name.len() / 3).max(2))
        .map(|(_, name)| name)
}

/// Levenshtein distance over bytes, O(len(a) * len(b)) time, one row of memory.
fn edit_distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.bytes().enumerate() {
            let substitute = diagonal + usize::from(ca != cb);
            diagonal = row[j + 1];
            row[j + 1] = substitute.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_finds_its_neighbour() {
        assert_eq!(nearest("s3fifo", ["lru", "s3-fifo", "fifo"]), Some("s3-fifo"));
        assert_eq!(nearest("zzzzzz", ["lru", "s3-fifo"]), None);
    }

    #[test]
    fn what_cannot_be_shown_is_written_out() {
        assert_eq!(visible("späť a\u{7}b\u{202e}\n"), "späť a\\u{7}b\\u{202e}\\n");
        assert_eq!(visible(&"x".repeat(400)), "x".repeat(400));
        assert_eq!(visible(&"\0".repeat(900)), format!("{}...", "\\u{0}".repeat(400)));
    }
}
