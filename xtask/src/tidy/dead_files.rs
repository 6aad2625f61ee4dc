//! The rule on dead files: another file reaches every source file.
//!
//! For: Rust modules that no `mod` declares, Python modules that nothing imports. Must never know:
//! whether a reached file is used; the compilers check that.

use super::mask::words;
use super::{FileKind, Finding, SourceFile};

/// Folders of a crate whose files Cargo finds without a declaration.
const DISCOVERED: [&str; 4] = ["/tests/", "/examples/", "/benches/", "/src/bin/"];

/// Files that no other file reaches.
pub fn unreached(sources: &[SourceFile]) -> Vec<Finding> {
    sources
        .iter()
        .filter(|source| match source.kind {
            FileKind::Rust => !rust_reached(source, sources),
            FileKind::Python => !python_reached(source, sources),
            _ => false,
        })
        .map(|source| {
            let message = "found a file that nothing reaches, expected a `mod`, an import or a \
                           manifest to name it";
            Finding::new(source, 1, message.to_owned())
        })
        .collect()
}

fn rust_reached(source: &SourceFile, sources: &[SourceFile]) -> bool {
    let (folder, file) = source.path.rsplit_once('/').unwrap_or(("", &source.path));
    let stem = file.trim_end_matches(".rs");
    if matches!(file, "lib.rs" | "main.rs" | "build.rs") {
        return true;
    }
    let (folder, stem) = if stem == "mod" {
        folder.rsplit_once('/').unwrap_or(("", folder))
    } else {
        (folder, stem)
    };
    let in_root = |name: &str| format!("{folder}/").ends_with(name);
    if DISCOVERED.iter().any(|name| in_root(name)) || named_by_manifest(source, sources) {
        return true;
    }
    let parents = |other: &SourceFile| {
        let path = other.path.as_str();
        let beside = path.rsplit_once('/').is_some_and(|(dir, _)| dir == folder);
        path == format!("{folder}.rs") || beside
    };
    sources.iter().filter(|other| other.kind == FileKind::Rust && parents(other)).any(|other| {
        other.path != source.path
            && (words(&other.code, &format!("mod {stem}")).next().is_some()
                || other.text.contains(&format!("path = \"{file}\"")))
    })
}

/// Whether a manifest gives the file as the path of a target.
fn named_by_manifest(source: &SourceFile, sources: &[SourceFile]) -> bool {
    sources.iter().filter(|other| other.path.ends_with("Cargo.toml")).any(|manifest| {
        let folder = manifest.path.trim_end_matches("Cargo.toml");
        source
            .path
            .strip_prefix(folder)
            .is_some_and(|path| manifest.text.contains(&format!("path = \"{path}\"")))
    })
}

fn python_reached(source: &SourceFile, sources: &[SourceFile]) -> bool {
    let file = source.path.rsplit('/').next().unwrap_or(&source.path);
    let Some(stem) = file.strip_suffix(".py") else { return true };
    let run_by_hand = source.text.starts_with("#!") || !source.path.contains('/');
    if run_by_hand || stem.starts_with("__") || stem == "conftest" || stem.starts_with("test_") {
        return true;
    }
    let others = sources.iter().filter(|other| other.path != source.path);
    others.filter(|other| other.kind != FileKind::Rust).any(|other| {
        let imports = other.text.lines().filter(|line| {
            let line = line.trim_start();
            other.kind != FileKind::Python || line.contains("import") || line.contains('"')
        });
        imports.into_iter().any(|line| words(line, stem).next().is_some())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dead(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<SourceFile> = files.iter().map(|(p, t)| SourceFile::new(p, t)).collect();
        unreached(&sources).into_iter().map(|finding| finding.path).collect()
    }

    #[test]
    fn a_rust_file_without_mod_is_dead() {
        let files = [
            ("crates/a/src/lib.rs", "//! x\nmod used;\n// mod dead;\npub mod deep;\n"),
            ("crates/a/src/used.rs", "//! x\n"),
            ("crates/a/src/dead.rs", "//! x\n"),
            ("crates/a/src/deep/mod.rs", "//! x\nmod leaf;\n"),
            ("crates/a/src/deep/leaf.rs", "//! x\n"),
            ("crates/a/tests/one.rs", "//! x\n"),
            ("crates/a/benches/Cargo.toml", "path = \"speed.rs\"\n"),
        ];
        assert_eq!(dead(&files), ["crates/a/src/dead.rs"]);
    }

    #[test]
    fn a_target_named_by_its_manifest_is_alive() {
        let files = [
            ("fuzz/Cargo.toml", "[[bin]]\nname = \"msr\"\npath = \"fuzz_targets/msr.rs\"\n"),
            ("fuzz/fuzz_targets/msr.rs", "//! x\n"),
            ("fuzz/fuzz_targets/lost.rs", "//! x\n"),
        ];
        assert_eq!(dead(&files), ["fuzz/fuzz_targets/lost.rs"]);
    }

    #[test]
    fn a_python_file_that_nothing_imports_is_dead() {
        let files = [
            ("python/cachewright/__init__.py", "\"\"\"x\"\"\"\nfrom .api import run\n"),
            ("python/cachewright/api.py", "\"\"\"x\"\"\"\n"),
            ("python/cachewright/lost.py", "\"\"\"x\"\"\"\n"),
            ("python/tests/test_api.py", "\"\"\"x\"\"\"\n"),
        ];
        assert_eq!(dead(&files), ["python/cachewright/lost.py"]);
    }
}
