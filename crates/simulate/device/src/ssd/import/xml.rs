//! As much of XML as configuration files use, and the checked values of one element by tag.
//!
//! Elements, text, comments and a declaration are read. Attributes are skipped, entities other than
//! the five of XML are refused. Errors: line, what was found and expected. What was not mapped is
//! noted with its line.

use super::ImportError;
use super::tags::{Tag, To};
use cachewright_types::nearest;

/// Deepest nesting accepted.
const DEPTH_LIMIT: usize = 64;

/// One element.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Element {
    /// Its name.
    pub name: String,
    /// The line it begins on, from 1.
    pub line: u32,
    /// Its own text, trimmed.
    pub text: String,
    /// The elements inside, in order.
    pub children: Vec<Element>,
}

/// Reads a document of one element.
pub fn parse(text: &str) -> Result<Element, ImportError> {
    let mut reader = XmlReader { text, position: 0, line: 1 };
    reader.skip_outside()?;
    let root = reader.element(0)?;
    reader.skip_outside()?;
    match reader.rest().chars().next() {
        None => Ok(root),
        Some(found) => Err(reader.refuse(&format!("`{found}`"), "the end of the file")),
    }
}

struct XmlReader<'a> {
    text: &'a str,
    position: usize,
    line: u32,
}

impl<'a> XmlReader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.position..]
    }

    fn refuse(&self, found: &str, expected: &str) -> ImportError {
        ImportError::on_line(self.line, format!("found {found}, expected {expected}"))
    }

    fn skip(&mut self, bytes: usize) {
        let skipped = &self.text[self.position..self.position + bytes];
        self.line += skipped.bytes().filter(|byte| *byte == b'\n').count() as u32;
        self.position += bytes;
    }

    fn skip_past(&mut self, end: &str) -> Result<(), ImportError> {
        match self.rest().find(end) {
            Some(length) => {
                self.skip(length + end.len());
                Ok(())
            }
            None => Err(self.refuse("the end of the file", &format!("`{end}`"))),
        }
    }

    /// Blanks, comments and declarations.
    fn skip_outside(&mut self) -> Result<(), ImportError> {
        loop {
            let rest = self.rest();
            let blanks =
                rest.len() - rest.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']).len();
            self.skip(blanks);
            let rest = self.rest();
            if rest.starts_with("<!--") {
                self.skip_past("-->")?;
            } else if rest.starts_with("<?") {
                self.skip_past("?>")?;
            } else if rest.starts_with("<!") {
                self.skip_past(">")?;
            } else {
                return Ok(());
            }
        }
    }

    fn name(&mut self) -> Result<String, ImportError> {
        let fits = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
        let rest = self.rest();
        let end = rest.find(|c| !fits(c)).unwrap_or(rest.len());
        if end == 0 {
            return Err(self.refuse("no name", "the name of a tag"));
        }
        let name = rest[..end].to_owned();
        self.skip(end);
        Ok(name)
    }

    fn element(&mut self, depth: usize) -> Result<Element, ImportError> {
        if depth > DEPTH_LIMIT {
            return Err(self.refuse("tags too deep", "at most 64 inside each other"));
        }
        if !self.rest().starts_with('<') {
            let found = if self.rest().is_empty() { "the end of the file" } else { "text" };
            return Err(self.refuse(found, "a tag"));
        }
        self.skip(1);
        let line = self.line;
        let name = self.name()?;
        let rest = self.rest();
        let Some(end) = rest.find('>') else {
            return Err(self.refuse("the end of the file", "`>`"));
        };
        let alone = rest[..end].ends_with('/');
        self.skip(end + 1);
        let mut element = Element { name, line, ..Element::default() };
        if !alone {
            self.content(&mut element, depth)?;
        }
        Ok(element)
    }

    fn content(&mut self, element: &mut Element, depth: usize) -> Result<(), ImportError> {
        let mut text = String::new();
        loop {
            let Some(next) = self.rest().find('<') else {
                return Err(self.refuse("the end of the file", &format!("`</{}>`", element.name)));
            };
            text.push_str(&self.unescaped(next)?);
            self.skip(next);
            if self.rest().starts_with("<!--") {
                self.skip_past("-->")?;
            } else if self.rest().starts_with("</") {
                self.skip(2);
                let name = self.name()?;
                if name != element.name {
                    let (found, expected) =
                        (format!("`</{name}>`"), format!("`</{}>`", element.name));
                    return Err(self.refuse(&found, &expected));
                }
                self.skip_past(">")?;
                text.trim().clone_into(&mut element.text);
                return Ok(());
            } else {
                element.children.push(self.element(depth + 1)?);
            }
        }
    }

    /// The next bytes as text, with entities resolved.
    fn unescaped(&self, bytes: usize) -> Result<String, ImportError> {
        let mut rest = &self.rest()[..bytes];
        let mut text = String::new();
        while let Some(length) = rest.find('&') {
            text.push_str(&rest[..length]);
            rest = &rest[length..];
            let known =
                [("&amp;", '&'), ("&lt;", '<'), ("&gt;", '>'), ("&quot;", '"'), ("&apos;", '\'')];
            let entity = known.iter().find(|(entity, _)| rest.starts_with(entity));
            let Some((entity, letter)) = entity else {
                return Err(self.refuse("`&`", "&amp;, &lt;, &gt;, &quot; or &apos;"));
            };
            text.push(*letter);
            rest = &rest[entity.len()..];
        }
        text.push_str(rest);
        Ok(text)
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_with_lines_comes_out() {
        let text = "\u{feff}<?xml version=\"1.0\"?>\n<!-- a -->\n<Set kind=\"x\">\n  <A> 1 </A>\n\
                    <B/><!-- <C>2</C> -->\n  <D>a &lt; b</D>\n</Set>\n";
        let root = parse(text).unwrap();
        let children: Vec<(&str, u32, &str)> = root
            .children
            .iter()
            .map(|child| (child.name.as_str(), child.line, child.text.as_str()))
            .collect();
        assert_eq!((root.name.as_str(), root.line), ("Set", 3));
        assert_eq!(children, [("A", 4, "1"), ("B", 5, ""), ("D", 6, "a < b")]);
    }

    #[test]
    fn broken_documents_are_refused_with_their_line() {
        let words = |text: &str| parse(text).unwrap_err().to_string();
        assert_eq!(words("<A>\n<B>1</C></A>"), "line 2: found `</C>`, expected `</B>`");
        assert_eq!(words("<A>\n"), "line 1: found the end of the file, expected `</A>`");
        assert_eq!(words("A"), "line 1: found text, expected a tag");
        assert_eq!(words("<A/>\n<B/>"), "line 2: found `<`, expected the end of the file");
        assert!(words("<A>&nbsp;</A>").contains("expected &amp;"));
        assert!(words(&"<A>".repeat(100)).contains("too deep"));
    }
}
