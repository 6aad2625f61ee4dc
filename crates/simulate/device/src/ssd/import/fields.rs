//! The values of one element by tag, with lines, defaults and notes.
//!
//! For: checked reading of texts, and the list of what was not mapped. Must never know: which tags
//! there are (see `tags`).

use super::error::ImportError;
use super::tags::{Tag, To};
use super::xml::Element;
use cachewright_types::nearest;

/// What was not mapped, or is different, in the order found.
#[derive(Clone, Debug)]
pub struct Notes {
    file: String,
    lines: Vec<String>,
}

impl Notes {
    /// No notes yet; the next are about `file`.
    pub fn new(file: &str) -> Notes {
        Notes { file: file.to_owned(), lines: Vec::new() }
    }

    /// The next notes are about another file.
    pub fn file(&mut self, file: &str) {
        file.clone_into(&mut self.file);
    }

    /// Notes something about a line.
    pub fn add(&mut self, line: u32, words: &str) {
        self.lines.push(format!("{}, line {line}: {words}", self.file));
    }

    /// All notes.
    pub fn done(self) -> Vec<String> {
        self.lines
    }
}

/// A value and where it stands; the line of the element itself when the tag is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// The tag.
    pub tag: &'static str,
    /// The text.
    pub text: &'a str,
    /// The line.
    pub line: u32,
    /// Whether the tag was there.
    pub given: bool,
}

/// The values of an element.
pub struct TagFields<'a> {
    element: &'a Element,
    tables: Vec<&'static [Tag]>,
}

impl<'a> TagFields<'a> {
    /// The element's values by the tables. Tags in none of them nor in `groups` are noted.
    pub fn new(
        element: &'a Element,
        tables: &[&'static [Tag]],
        groups: &[&str],
        notes: &mut Notes,
    ) -> TagFields<'a> {
        let fields = TagFields { element, tables: tables.to_vec() };
        for child in &element.children {
            let name = child.name.as_str();
            if fields.tags().any(|tag| tag.name == name || tag.alias == name) {
                if let Some(To::Nothing(reason)) = fields.tag(name).map(|tag| tag.to) {
                    notes.add(child.line, &format!("`{name}` is not mapped: {reason}"));
                }
            } else if !groups.contains(&name) {
                let known = fields.tags().map(|tag| tag.name).chain(groups.iter().copied());
                let near = nearest(name, known);
                let hint = near.map_or(String::new(), |near| format!("; nearest is `{near}`"));
                notes.add(child.line, &format!("`{name}` is not a tag of MQSim{hint}"));
            }
        }
        fields
    }

    /// Every tag of the tables.
    pub fn tags(&self) -> impl Iterator<Item = &'static Tag> + '_ {
        self.tables.iter().flat_map(|table| table.iter())
    }

    fn tag(&self, name: &str) -> Option<&'static Tag> {
        self.tags().find(|tag| tag.name == name || tag.alias == name)
    }

    /// The value of a tag: the last one given, as MQSim reads it, or its default, which is noted.
    pub fn get(&self, tag: &'static Tag, notes: &mut Notes) -> Field<'a> {
        let same = |child: &&Element| child.name == tag.name || child.name == tag.alias;
        match self.element.children.iter().rev().find(same) {
            Some(child) => {
                Field { tag: tag.name, text: &child.text, line: child.line, given: true }
            }
            None => {
                let line = self.element.line;
                if !tag.default.is_empty() {
                    let words = format!("`{}` is absent; set as MQSim would", tag.name);
                    notes.add(line, &format!("{words}, to {}", tag.default));
                }
                Field { tag: tag.name, text: tag.default, line, given: false }
            }
        }
    }

    /// The value of the tag called `name`; an empty one when the tables have none.
    pub fn named(&self, name: &'static str, notes: &mut Notes) -> Field<'a> {
        match self.tag(name) {
            Some(tag) => self.get(tag, notes),
            None => Field { tag: name, text: "", line: self.element.line, given: false },
        }
    }
}

impl Field<'_> {
    /// The refusal of the value.
    pub fn refuse(&self, expected: &str) -> ImportError {
        let Field { tag, text, line, .. } = self;
        ImportError::on_line(*line, format!("`{tag}`: found `{text}`, expected {expected}"))
    }

    /// A whole number.
    pub fn whole(&self) -> Result<u64, ImportError> {
        self.text.parse().map_err(|_| self.refuse("a whole number"))
    }

    /// A whole number that can be counted in sectors without overflow.
    pub fn sectors(&self) -> Result<u64, ImportError> {
        let sectors = self.whole()?;
        if sectors <= 1 << 40 { Ok(sectors) } else { Err(self.refuse("at most 2^40 sectors")) }
    }

    /// A seed that a stack file can hold.
    pub fn seed(&self) -> Result<u64, ImportError> {
        let seed = self.whole()?;
        if seed <= i64::MAX as u64 { Ok(seed) } else { Err(self.refuse("a seed below 2^63")) }
    }

    /// A number from 0.
    pub fn number(&self) -> Result<f64, ImportError> {
        let number = self.text.parse::<f64>().ok().filter(|number| *number >= 0.0);
        number.filter(|number| number.is_finite()).ok_or_else(|| self.refuse("a number from 0"))
    }

    /// A share from a percentage.
    pub fn percent(&self) -> Result<f64, ImportError> {
        let number = self.number()?;
        if number <= 100.0 { Ok(number / 100.0) } else { Err(self.refuse("0 to 100")) }
    }

    /// The index of one of `words`, which are in capitals.
    pub fn choice(&self, words: &[&str]) -> Result<usize, ImportError> {
        let capitals = self.text.to_uppercase();
        let found = words.iter().position(|word| *word == capitals);
        found.ok_or_else(|| self.refuse(&format!("one of {}", words.join(", "))))
    }

    /// true or false; MQSim takes everything but `false` for true.
    pub fn flag(&self) -> bool {
        !self.text.eq_ignore_ascii_case("false")
    }

    /// Numbers separated by commas, without duplicates, in order.
    pub fn list(&self) -> Result<Vec<u32>, ImportError> {
        let numbers: Result<Vec<u32>, _> =
            self.text.split(',').map(|part| part.trim().parse::<u32>()).collect();
        let mut numbers = numbers.map_err(|_| self.refuse("numbers separated by commas"))?;
        numbers.sort_unstable();
        numbers.dedup();
        Ok(numbers)
    }
}

/// A text in quotes, as TOML wants it.
pub fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if letter.is_control() => quoted.push_str(&format!("\\u{:04X}", letter as u32)),
            letter => quoted.push(letter),
        }
    }
    quoted + "\""
}
