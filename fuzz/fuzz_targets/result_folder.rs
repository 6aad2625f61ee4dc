//! Result folders: a kept answer is whole, or counts as absent.
#![no_main]

use cachewright_experiment::store::Store;
use libfuzzer_sys::fuzz_target;
use std::path::PathBuf;
use std::sync::LazyLock;

/// One folder per process.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("cachewright-fuzz-{}", std::process::id()));
    let _ = std::fs::create_dir_all(folder.join("cases"));
    folder
});

fuzz_target!(|input: &[u8]| {
    // A temporary folder that cannot be written says nothing about the input.
    let written = std::fs::write(FOLDER.join("cases/key.json"), input);
    let Ok(store) = Store::open(Some(&FOLDER), false) else { return };
    let Some((answer, rows)) = written.ok().and_then(|()| store.load("key").ok()).flatten() else {
        return;
    };
    assert!(answer.is_object());
    // What is kept again reads the same.
    if store.save("key", &answer, &rows).is_ok() {
        let again = store.load("key").ok().flatten().map(|(answer, rows)| (answer, rows.len()));
        assert_eq!(again, Some((answer, rows.len())));
    }
});
