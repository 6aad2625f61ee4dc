//! `.ci/count` sums logs truly and fails when tests failed, did not compile or did not run.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::process::Command;

const CARGO: &str = "test result: ok. 3 passed; 0 failed; 2 ignored; 0 measured\n\
    test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured\nexit status: 101\n";
const PYTEST: &str = "....\n12 passed, 1 skipped in 0.53s\nexit status: 0\n";
const FAILED: &str = "FAILED tests/test_a.py::test_b[run stack.toml -q] - assert 1 == 2\n\
    FAILED tests/test_c.py::test_d - ValueError\n\
    2 failed, 1 passed in 0.53s\nexit status: 1\n";
const BROKEN: &str = "error: could not compile\nexit status: 101\n";
const ERRORS: &str =
    "==== \x1b[32m1 passed\x1b[0m, 2 errors in 61.20s (0:01:01) ====\nexit status: 1\n";

/// The last line and the exit status of `.ci/count` over logs with these texts.
fn count(name: &str, logs: &[&str]) -> (String, Option<i32>) {
    let (text, status) = printed(name, logs);
    (text.lines().last().unwrap_or_default().to_owned(), status)
}

/// All that `.ci/count` prints, and its exit status.
fn printed(name: &str, logs: &[&str]) -> (String, Option<i32>) {
    let folder = std::env::temp_dir().join(format!("xtask-count-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let paths: Vec<_> = (0..logs.len()).map(|index| folder.join(format!("{index}.log"))).collect();
    for (path, log) in paths.iter().zip(logs) {
        fs::write(path, log).unwrap();
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.ci/count");
    let output = Command::new("python3").arg(script).args(&paths).output().unwrap();
    fs::remove_dir_all(&folder).unwrap();
    (String::from_utf8(output.stdout).unwrap(), output.status.code())
}

#[test]
fn logs_are_summed() {
    let sum = count("sum", &[CARGO, PYTEST]);
    assert_eq!(sum, ("16 passed, 1 failed, 3 skipped".to_owned(), Some(1)));
    assert_eq!(count("ok", &[PYTEST]), ("12 passed, 0 failed, 1 skipped".to_owned(), Some(0)));
    assert_eq!(count("errors", &[ERRORS]), ("1 passed, 2 failed, 0 skipped".to_owned(), Some(1)));
}

#[test]
fn what_did_not_compile_or_run_fails() {
    let broken = count("broken", &[BROKEN, PYTEST]);
    assert_eq!(broken, ("12 passed, 1 failed, 1 skipped".to_owned(), Some(1)));
    assert_eq!(count("none", &["exit status: 0\n"]).1, Some(1));
    assert_eq!(
        count("unfinished", &["test result: ok. 3 passed; 0 failed; 0 ignored;\n"]).1,
        Some(2)
    );
}

#[test]
fn failed_tests_are_named() {
    let (text, status) = printed("failed", &[FAILED]);
    let expected = "failed: tests/test_a.py::test_b[run stack.toml -q]: assert 1 == 2\n\
        failed: tests/test_c.py::test_d: ValueError\n1 passed, 2 failed, 0 skipped\n";
    assert_eq!((text.as_str(), status), (expected, Some(1)));
}
