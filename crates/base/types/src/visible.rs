//! Texts from outside, as messages show them.
//!
//! For: every message that quotes a name or text that a user or a file gave. Must never know: where
//! the message is shown. Control characters move a terminal's cursor and break charts; those that
//! turn the direction of text make a name look like another one.

/// Characters of a quoted text at most.
const LONGEST: usize = 400;

/// Control characters, separators of lines, marks of direction, and what is no character.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_shown_is_written_out() {
        assert_eq!(visible("späť a\u{7}b\u{202e}\n"), "späť a\\u{7}b\\u{202e}\\n");
        assert_eq!(visible(&"x".repeat(400)), "x".repeat(400));
        assert_eq!(visible(&"\0".repeat(900)), format!("{}...", "\\u{0}".repeat(400)));
    }
}
