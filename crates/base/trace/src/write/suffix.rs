//! What the name of a file to be written says: the format, and how its bytes are compressed.
//!
//! For: writers, which have no content to recognise a format by. Must never know: what formats
//! hold. Suffixes are compared without regard to case.

use super::{WRITE_FORMATS, WriteEntry};
use crate::TraceError;
use crate::source::Container;
use std::path::Path;

/// Suffixes that ask for compression.
pub const COMPRESSIONS: [(&str, Container); 4] = [
    (".gz", Container::Gzip),
    (".zst", Container::Zstd),
    (".xz", Container::Xz),
    (".bz2", Container::Bzip2),
];

/// The format that the suffix of `path` names. Errors: no format has that suffix.
pub fn format_by_suffix(path: &Path) -> Result<&'static str, TraceError> {
    let name = lower_name(path);
    let (name, _) = split(&name);
    let fits =
        |entry: &&WriteEntry| entry.suffixes.iter().any(|suffix| name.ends_with(&lower(suffix)));
    WRITE_FORMATS.iter().find(fits).map(|entry| entry.name).ok_or_else(|| TraceError::File {
        path: path.to_owned(),
        found: "a name whose suffix is that of no format".to_owned(),
        expected: format!("{}, or a format by its name", known()),
    })
}

/// How the suffix of `path` asks for the file to be compressed.
pub(super) fn container_of(path: &Path) -> Container {
    split(&lower_name(path)).1
}

/// All suffixes in words.
pub(super) fn known() -> String {
    let compressions = COMPRESSIONS.map(|(suffix, _)| suffix).join(", ");
    let list = |compressed: bool| {
        let entries = WRITE_FORMATS.iter().filter(|entry| entry.compressed == compressed);
        let suffixes: Vec<&str> = entries.flat_map(|entry| entry.suffixes).copied().collect();
        suffixes.join(", ")
    };
    format!("{}, or {} with or without {compressions}", list(false), list(true))
}

fn lower(text: &str) -> String {
    text.to_ascii_lowercase()
}

fn lower_name(path: &Path) -> String {
    path.file_name().map(|name| lower(&name.to_string_lossy())).unwrap_or_default()
}

/// The name without a suffix of compression, and what that suffix asks for.
fn split(name: &str) -> (&str, Container) {
    let found = COMPRESSIONS
        .iter()
        .find_map(|(suffix, container)| Some((name.strip_suffix(suffix)?, *container)));
    found.unwrap_or((name, Container::Plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_name_formats_and_compression() {
        for (name, format, container) in [
            ("a.csv", "alibaba", Container::Plain),
            ("x/a.b.CSV.gz", "alibaba", Container::Gzip),
            ("a.parquet", "parquet", Container::Plain),
            ("w106.oracleGeneral", "oracle-general", Container::Plain),
            ("w106.oracleGeneral.bin.zst", "oracle-general", Container::Zstd),
            ("w106.oraclegeneral.xz", "oracle-general", Container::Xz),
            ("a.csv.bz2", "alibaba", Container::Bzip2),
        ] {
            assert_eq!(format_by_suffix(Path::new(name)).unwrap(), format, "{name}");
            assert_eq!(container_of(Path::new(name)), container, "{name}");
        }
        for name in ["a", "a.txt", "a.csv.", "csv", "a.bin", "a.gz", "a.csv.7z", "", "a.csv/x"] {
            let error = format_by_suffix(Path::new(name)).unwrap_err().to_string();
            assert!(error.contains(".parquet, or .csv, .oracleGeneral"), "{name}: {error}");
            assert!(error.contains(".gz, .zst, .xz, .bz2"), "{name}: {error}");
        }
    }
}
