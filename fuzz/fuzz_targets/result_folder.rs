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
    std::fs::write(FOLDER.join("cases/key.json"), input).expect("a writable temporary folder");
    let store = Store::open(Some(&FOLDER), false).expect("a folder");
    if let Ok(Some((answer, rows))) = store.load("key") {
        assert!(answer.is_object());
        // What is kept again reads the same.
        store.save("key", &answer, &rows).expect("a writable temporary folder");
        let (again, same) = store.load("key").expect("readable").expect("kept");
        assert_eq!((again, same.len()), (answer, rows.len()));
    }
});
