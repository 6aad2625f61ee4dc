//! The house is tidy: `cargo xtask tidy` as a test.

use std::path::Path;

#[test]
fn the_house_is_tidy() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (files, findings) = xtask::tidy::check(&root).unwrap();
    assert!(files > 50, "only {files} files were seen");
    let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(lines.is_empty(), "{} findings:\n{}", lines.len(), lines.join("\n"));
}

#[test]
fn generated_pages_are_fresh() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    assert_eq!(xtask::generate::pages(&root, true).unwrap(), Vec::<String>::new());
}
