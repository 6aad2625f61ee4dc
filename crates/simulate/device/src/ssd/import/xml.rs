//! As much of XML as configuration files use: elements, text, comments, a declaration.
//!
//! For: a tree with line numbers. Must never know: what the elements mean. Attributes are skipped,
//! entities other than the five of XML are refused. Errors: line, what was found and expected.

use super::error::ImportError;

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
