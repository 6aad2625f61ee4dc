//! Rules on what may end a process: `unwrap`, `expect` and `unsafe`.
//!
//! For: errors as values everywhere but in tests; unsafe only where the machine's edge is.
//! Must never know: other files.

use super::mask::words;
use super::{FileKind, Finding, SourceFile};

/// Where unsafe code may stand: SIMD kernels, hints about memory, io_uring and mmap edges, and the
/// measurement of the ring alone.
const UNSAFE_ALLOWED: [&str; 6] = [
    "crates/base/infer/src/simd",
    "crates/base/memory/src/lib.rs",
    "crates/base/memory/src/mapping.rs",
    "crates/base/trace/src/mmap",
    "crates/serve/live/src/io/uring",
    "crates/serve/live/examples/io_speed",
];
/// Largest distance in lines between a SAFETY comment and the code below it.
const SAFETY_ABOVE: usize = 6;

/// No `unwrap` and `expect` outside tests.
pub fn unwrap(source: &SourceFile) -> Vec<Finding> {
    if source.kind != FileKind::Rust {
        return Vec::new();
    }
    let calls = [".unwrap()", ".expect(", ".unwrap_err()", ".expect_err("];
    let mut findings = Vec::new();
    for call in calls {
        for (position, _) in source.code.match_indices(call) {
            let line = source.line_at(position);
            if !source.is_test(line) {
                let message = format!("found `{call}`, expected the error to be returned");
                findings.push(Finding::new(source, line, message));
            }
        }
    }
    findings
}

/// `unsafe` only in the files named above, each with a SAFETY comment.
pub fn unsafe_code(source: &SourceFile) -> Vec<Finding> {
    if source.kind != FileKind::Rust {
        return Vec::new();
    }
    let allowed = UNSAFE_ALLOWED.iter().any(|prefix| source.path.starts_with(prefix));
    let lines: Vec<&str> = source.text.lines().collect();
    let mut findings = Vec::new();
    for position in words(&source.code, "unsafe") {
        let line = source.line_at(position);
        let above = &lines[line.saturating_sub(SAFETY_ABOVE + 1)..line];
        if !allowed {
            let message = "found `unsafe`, expected it only in SIMD kernels and io_uring and mmap \
                           edges (see xtask/src/tidy/panics.rs)";
            findings.push(Finding::new(source, line, message.to_owned()));
        } else if !above.iter().any(|text| text.contains("SAFETY:")) {
            let message = "found `unsafe`, expected a `SAFETY:` comment above it";
            findings.push(Finding::new(source, line, message.to_owned()));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unwrap_is_found_outside_tests_only() {
        let text = "fn a() { b.unwrap(); }\n#[test]\nfn t() {\n    c.expect(\"x\");\n}\n\
                    // d.unwrap()\nconst E: &str = \".unwrap()\";\n";
        let found = unwrap(&SourceFile::new("a.rs", text));
        assert_eq!(found.iter().map(|f| f.line).collect::<Vec<_>>(), [1]);
        assert_eq!(unwrap(&SourceFile::new("a.rs", "fn a() { b.unwrap_or(1); }\n")), []);
    }

    #[test]
    fn unsafe_code_needs_its_place_and_its_reason() {
        let bare = "fn a() { unsafe { b() } }\n";
        let reasoned = "// SAFETY: b has no precondition.\nfn a() { unsafe { b() } }\n";
        assert_eq!(
            unsafe_code(&SourceFile::new("crates/base/trace/src/lib.rs", reasoned)).len(),
            1
        );
        assert_eq!(unsafe_code(&SourceFile::new("crates/base/trace/src/mmap.rs", bare)).len(), 1);
        assert_eq!(unsafe_code(&SourceFile::new("crates/base/trace/src/mmap.rs", reasoned)), []);
        assert_eq!(
            unsafe_code(&SourceFile::new("a.rs", "#![forbid(unsafe_code)] // unsafe\n")),
            []
        );
    }
}
