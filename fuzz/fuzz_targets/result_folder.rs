//! Result folders: a kept answer is whole, or counts as absent.
#![no_main]

use cachewright_experiment::folder::AnswerStore;
use cachewright_result::run::Case;
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
    let Ok(store) = AnswerStore::open(Some(&FOLDER), false) else { return };
    let found = written.ok().and_then(|()| store.load::<Case>("key").ok()).flatten();
    let Some((answer, rows)) = found else { return };
    // What is kept again reads the same.
    if store.save("key", &answer, &rows).is_ok() {
        let again = store.load::<Case>("key").ok().flatten();
        assert_eq!(again.map(|(answer, rows)| (answer, rows.len())), Some((answer, rows.len())));
    }
});
