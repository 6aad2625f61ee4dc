//! Source text with comments and strings blanked, so that rules see code only.
//!
//! For: one scan per language, tolerant of nested comments, raw strings and lifetimes. Must never
//! know: rules. Invariant: the result has the same length in bytes and the same line ends as the
//! text; quote characters stay, what is between them becomes spaces.

/// Blanks comments and strings of Rust source.
pub fn rust(text: &str) -> String {
    let mut scan = Scan::new(text);
    while let Some(byte) = scan.peek(0) {
        match byte {
            b'/' if scan.peek(1) == Some(b'/') => scan.blank_line(),
            b'/' if scan.peek(1) == Some(b'*') => scan.blank_block_comment(),
            b'"' => scan.blank_quoted(b'"'),
            b'\'' if scan.is_char_literal() => scan.blank_quoted(b'\''),
            b'r' if !scan.after_word() || scan.after_byte_prefix() => scan.raw_string_or_word(),
            _ => scan.keep(1),
        }
    }
    scan.finish()
}

/// Blanks comments and strings of Python source (and of shell and TOML well enough for headers).
pub fn python(text: &str) -> String {
    let mut scan = Scan::new(text);
    while let Some(byte) = scan.peek(0) {
        match byte {
            b'#' => scan.blank_line(),
            b'"' | b'\'' if scan.peek(1) == Some(byte) && scan.peek(2) == Some(byte) => {
                scan.blank_triple(byte);
            }
            b'"' | b'\'' => scan.blank_quoted(byte),
            _ => scan.keep(1),
        }
    }
    scan.finish()
}

/// A position in the text and what has been written so far.
struct Scan<'a> {
    text: &'a [u8],
    position: usize,
    out: Vec<u8>,
}

impl<'a> Scan<'a> {
    fn new(text: &'a str) -> Self {
        Scan { text: text.as_bytes(), position: 0, out: Vec::with_capacity(text.len()) }
    }

    fn finish(self) -> String {
        String::from_utf8_lossy(&self.out).into_owned()
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.get(self.position + ahead).copied()
    }

    fn keep(&mut self, count: usize) {
        let end = (self.position + count).min(self.text.len());
        self.out.extend_from_slice(&self.text[self.position..end]);
        self.position = end;
    }

    fn blank(&mut self, count: usize) {
        let end = (self.position + count).min(self.text.len());
        let blanks =
            self.text[self.position..end].iter().map(|b| if *b == b'\n' { b'\n' } else { b' ' });
        self.out.extend(blanks);
        self.position = end;
    }

    fn blank_line(&mut self) {
        let rest = &self.text[self.position..];
        self.blank(rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len()));
    }

    fn blank_block_comment(&mut self) {
        let mut depth = 0;
        while self.position < self.text.len() {
            match (self.peek(0), self.peek(1)) {
                (Some(b'/'), Some(b'*')) => {
                    depth += 1;
                    self.blank(2);
                }
                (Some(b'*'), Some(b'/')) => {
                    depth -= 1;
                    self.blank(2);
                    if depth == 0 {
                        return;
                    }
                }
                _ => self.blank(1),
            }
        }
    }

    fn blank_quoted(&mut self, quote: u8) {
        self.keep(1);
        while let Some(byte) = self.peek(0) {
            match byte {
                b'\\' => self.blank(2),
                b if b == quote => return self.keep(1),
                _ => self.blank(1),
            }
        }
    }

    fn blank_triple(&mut self, quote: u8) {
        self.keep(3);
        while let Some(byte) = self.peek(0) {
            let closes = (0..3).all(|ahead| self.peek(ahead) == Some(quote));
            match byte {
                b'\\' => self.blank(2),
                _ if closes => return self.keep(3),
                _ => self.blank(1),
            }
        }
    }

    /// At an `r`: a raw string, a raw identifier or a word that begins with r.
    fn raw_string_or_word(&mut self) {
        let hashes = self.text[self.position + 1..].iter().take_while(|b| **b == b'#').count();
        if self.peek(1 + hashes) != Some(b'"') {
            return self.keep(1);
        }
        self.keep(2 + hashes);
        while self.position < self.text.len() {
            let closes = self.peek(0) == Some(b'"')
                && (1..=hashes).all(|ahead| self.peek(ahead) == Some(b'#'));
            if closes {
                return self.keep(1 + hashes);
            }
            self.blank(1);
        }
    }

    /// At a `'`: whether a character literal begins (otherwise a lifetime or label).
    fn is_char_literal(&self) -> bool {
        let Some(next) = self.peek(1) else { return false };
        let width = match next {
            b'\\' => return true,
            0..0x80 => 1,
            0x80..0xE0 => 2,
            0xE0..0xF0 => 3,
            _ => 4,
        };
        self.peek(1 + width) == Some(b'\'')
    }

    fn after_word(&self) -> bool {
        self.position > 0 && is_word(self.text[self.position - 1])
    }

    /// Whether the byte before is the `b` or `c` of `br"..."`, itself not inside a word.
    fn after_byte_prefix(&self) -> bool {
        self.position > 0
            && matches!(self.text[self.position - 1], b'b' | b'c')
            && (self.position == 1 || !is_word(self.text[self.position - 2]))
    }
}

/// Whether the byte may stand inside an identifier.
pub fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The byte positions of `word` in `code` without an identifier character beside it.
pub fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = code.as_bytes();
    code.match_indices(word).map(|(position, _)| position).filter(move |position| {
        let starts = word.bytes().next().is_some_and(is_word);
        let ends = word.bytes().last().is_some_and(is_word);
        (!starts || *position == 0 || !is_word(bytes[position - 1]))
            && (!ends || bytes.get(position + word.len()).is_none_or(|next| !is_word(*next)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rust_comments_strings_and_characters_vanish() {
        let text = "a /* { /* } */ */ \"{\\\"\" 'x' '\\'' r#\"}\"# b\"{\" br\"{\" 'a: loop // {\nb";
        let code = rust(text);
        assert_eq!(code.len(), text.len());
        assert!(!code.contains(['{', '}']), "{code}");
        assert!(code.contains("'a: loop") && code.ends_with("\nb"), "{code}");
    }

    #[test]
    fn a_lifetime_is_not_a_string() {
        assert_eq!(rust("fn f<'a>(x: &'a str) { }"), "fn f<'a>(x: &'a str) { }");
        assert_eq!(rust("let or = r; \"x\""), "let or = r; \" \"");
    }

    #[test]
    fn python_strings_and_comments_vanish() {
        let code = python("x = '#' + \"\"\"a\n'b\"\"\" # c\ny = 1");
        assert_eq!(code, "x = ' ' + \"\"\" \n  \"\"\"    \ny = 1");
    }

    #[test]
    fn words_stand_alone() {
        assert_eq!(words("fs afs fs2 std::fs", "fs").collect::<Vec<_>>(), [0, 16]);
    }
}
