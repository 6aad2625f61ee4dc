//! `cargo xtask tidy` and `cargo xtask generate [--check]`.
//!
//! For: the command line over the library. Exit status: 0 all is well, 1 something was found,
//! 2 the command was wrong or a file could not be read.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use xtask::{generate, tidy};

const USAGE: &str = "usage: cargo xtask tidy | cargo xtask generate [--check]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["tidy"] => run_tidy(&root()),
        ["generate"] => run_generate(&root(), false),
        ["generate", "--check"] => run_generate(&root(), true),
        _ => {
            eprintln!("error: found `{}`, expected {USAGE}", words.join(" "));
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// The root of the workspace: the folder above this crate.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn run_tidy(root: &Path) -> std::io::Result<bool> {
    let (files, findings) = tidy::check(root)?;
    for finding in &findings {
        println!("{finding}");
    }
    println!("tidy: {files} files, {} findings", findings.len());
    Ok(findings.is_empty())
}

fn run_generate(root: &Path, check: bool) -> std::io::Result<bool> {
    let stale = generate::pages(root, check)?;
    for path in &stale {
        let expected = "run `cargo xtask generate` and commit the result";
        println!("{path}: {}", if check { expected } else { "written" });
    }
    Ok(!check || stale.is_empty())
}
