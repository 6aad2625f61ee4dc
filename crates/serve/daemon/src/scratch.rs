//! Where files without a name go, through which long histories are read.
//!
//! For: images and services without a folder for temporary files. Must never know: what is in the
//! files. What reads asks for a place each time; this chooses it once for the whole process.

use std::env;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The folders that a service manager gives for state, one behind the other.
const STATE: &str = "STATE_DIRECTORY";

/// Lets the process keep such files in the first folder that takes them: that for temporary files
/// (`TMPDIR`, else `/tmp`), the state of the service, that of the stack. Where none does, reading
/// says that there is no temporary folder.
pub fn choose_scratch_folder(stack: &Path) {
    let usual = env::temp_dir();
    let found = first_that_takes_files(&usual, env::var_os(STATE), stack);
    if let Some(folder) = found.filter(|folder| *folder != usual) {
        // Another one was chosen before: that one takes files as well.
        let _chosen = tempfile::env::override_temp_dir(&folder);
    }
}

fn first_that_takes_files(usual: &Path, state: Option<OsString>, stack: &Path) -> Option<PathBuf> {
    let state = state.unwrap_or_default();
    let state = state.as_bytes().split(|byte| *byte == b':').map(<[u8]>::to_vec);
    let state = state.filter(|path| !path.is_empty()).map(OsString::from_vec).map(PathBuf::from);
    let own = stack.parent().map(|folder| match folder.as_os_str().is_empty() {
        true => PathBuf::from("."),
        false => folder.to_owned(),
    });
    let mut folders = [usual.to_owned()].into_iter().chain(state).chain(own);
    folders.find(|folder| tempfile::tempfile_in(folder).is_ok())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::*;

    #[test]
    fn files_go_to_the_first_folder_that_takes_them() {
        let root = tempfile::tempdir().unwrap();
        let folder = |name: &str| {
            let path = root.path().join(name);
            std::fs::create_dir(&path).unwrap();
            path
        };
        let (usual, state, own) = (folder("tmp"), folder("state"), folder("own"));
        let (missing, stack) = (root.path().join("missing"), own.join("stack.toml"));
        let listed = |folders: &[&Path]| {
            let parts: Vec<&[u8]> =
                folders.iter().map(|path| path.as_os_str().as_bytes()).collect();
            Some(OsString::from_vec(parts.join(&b':')))
        };
        let given = listed(&[&missing, &state]);
        assert_eq!(first_that_takes_files(&usual, given.clone(), &stack), Some(usual));
        assert_eq!(first_that_takes_files(&missing, given, &stack), Some(state));
        let none = listed(&[&missing]);
        assert_eq!(first_that_takes_files(&missing, none.clone(), &stack), Some(own.clone()));
        assert_eq!(first_that_takes_files(&missing, None, &stack), Some(own));
        assert_eq!(first_that_takes_files(&missing, none, &missing.join("stack.toml")), None);
    }
}
