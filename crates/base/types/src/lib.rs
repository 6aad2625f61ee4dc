//! The nouns of Cachewright: what every other room speaks of.
//!
//! For: identifiers, requests, units, settings and seeds. Must never know: files, clocks, threads,
//! policies, devices. Units are in the type or the last word of the name.

pub mod block_key;
pub mod blocks;
pub mod declare;
pub mod ids;
mod index_ids;
pub mod measure;
pub mod registry;
pub mod request;
pub mod seed;
pub mod units;
mod visible;

pub use block_key::{BlockKey, VolumeKeys};
pub use blocks::{block_bytes, block_numbers, whole_block_numbers};
pub use declare::{Key, SettingError, Value};
pub use ids::{BlockId, TenantId};
pub use registry::RegistryError;
pub use request::{Op, Request};
pub use seed::{Rng, Seed};
pub use units::{Bytes, Nanos, Size, UnitError, parse_bytes, parse_duration, parse_size};
pub use visible::{is_hidden, visible};

/// The registered name nearest to `wanted`, if any is near enough to be worth suggesting.
///
/// Distance is Levenshtein's; a name further than a third of its length (at least 2) is not near.
pub fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    names
        .into_iter()
        .map(|name| (edit_distance(wanted, name), name))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, name)| *distance <= (name.len() / 3).max(2))
        .map(|(_, name)| name)
}

/// Levenshtein distance over bytes, O(len(a) * len(b)) time, one row of memory.
fn edit_distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.bytes().enumerate() {
            let substitute = diagonal + usize::from(ca != cb);
            diagonal = row[j + 1];
            row[j + 1] = substitute.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_misspelt_name_finds_its_neighbour() {
        assert_eq!(nearest("s3fifo", ["lru", "s3-fifo", "fifo"]), Some("s3-fifo"));
        assert_eq!(nearest("zzzzzz", ["lru", "s3-fifo"]), None);
    }
}
