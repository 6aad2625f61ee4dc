//! Rules on how a file looks: header, columns, blanks.
//!
//! For: what a reader sees before reading. Must never know: other files. Unit: characters.

use super::{FileKind, Finding, SourceFile};

/// The widest line.
const COLUMNS: usize = 100;

/// Every source file opens with what it is for.
pub fn header(source: &SourceFile) -> Vec<Finding> {
    let first =
        source.text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with("#!"));
    let Some(first) = first else { return Vec::new() };
    let (opens, expected) = match source.kind {
        FileKind::Rust => (first.starts_with("//!"), "a header of `//!` lines"),
        FileKind::Python => (
            ["\"\"\"", "r\"\"\"", "#"].iter().any(|quote| first.starts_with(quote))
                && (first.starts_with('#') == source.path.ends_with(".pyi")
                    || !first.starts_with('#')),
            "a docstring (a comment in stubs)",
        ),
        FileKind::Shell => (first.starts_with('#'), "a comment that says what it is for"),
        FileKind::Toml if source.path.starts_with("specs/") => {
            (first.starts_with('#'), "a comment that says what it shows")
        }
        FileKind::Toml | FileKind::Text => return Vec::new(),
    };
    if opens {
        return Vec::new();
    }
    vec![Finding::new(source, 1, format!("found `{}`, expected {expected}", shorten(first)))]
}

/// No line is wider than a page.
pub fn columns(source: &SourceFile) -> Vec<Finding> {
    if source.kind == FileKind::Text || source.is_generated() {
        return Vec::new();
    }
    let wide = source.lines().map(|(line, text)| (line, text.chars().count()));
    wide.filter(|(_, width)| *width > COLUMNS)
        .map(|(line, width)| {
            let message = format!("found {width} columns, expected at most {COLUMNS}");
            Finding::new(source, line, message)
        })
        .collect()
}

/// No tabs (but in a Makefile), no trailing spaces, no carriage returns, one newline at the end.
pub fn blanks(source: &SourceFile) -> Vec<Finding> {
    let others = ["data/", "LICENSE", "fuzz/seeds/"];
    if others.iter().any(|prefix| source.path.starts_with(prefix)) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (line, text) in source.text.split('\n').enumerate().map(|(index, text)| (index + 1, text)) {
        if text.contains('\t') && !source.path.ends_with("Makefile") {
            findings.push(Finding::new(source, line, "found a tab, expected spaces".to_owned()));
        }
        if text.ends_with([' ', '\t', '\r']) {
            let message = "found blanks at the end of the line, expected none".to_owned();
            findings.push(Finding::new(source, line, message));
        }
    }
    if !source.text.is_empty() && !source.text.ends_with('\n') {
        let line = source.text.lines().count();
        let message = "found no newline at the end of the file, expected one".to_owned();
        findings.push(Finding::new(source, line, message));
    }
    findings
}

fn shorten(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_header_is_found() {
        let bare = |path, text| header(&SourceFile::new(path, text)).len();
        assert_eq!(bare("a.rs", "use std::fmt;\n"), 1);
        assert_eq!(bare("a.rs", "//! For.\n"), 0);
        assert_eq!(bare("a.py", "import os\n"), 1);
        assert_eq!(bare("a.py", "# not a docstring\n"), 1);
        assert_eq!(bare("a.py", "#!/usr/bin/env python3\n\"\"\"For.\"\"\"\n"), 0);
        assert_eq!(bare("a.pyi", "# For.\n"), 0);
        assert_eq!(bare("specs/a.toml", "[cache]\n"), 1);
        assert_eq!(bare(".ci/run", "#!/usr/bin/env bash\nset -e\n"), 1);
    }

    #[test]
    fn a_wide_line_is_found_by_characters_not_bytes() {
        let wide = |text: String| columns(&SourceFile::new("a.rs", &text)).len();
        assert_eq!(wide(format!("// {}", "x".repeat(98))), 1);
        assert_eq!(wide(format!("// {}", "é".repeat(97))), 0);
    }

    #[test]
    fn stray_blanks_are_found() {
        let found = blanks(&SourceFile::new("a.rs", "a \n\tb\nc\r\nd"));
        let lines: Vec<usize> = found.iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [1, 2, 3, 4]);
        assert!(blanks(&SourceFile::new("Makefile", "a:\n\tb\n")).is_empty());
    }
}
