//! Labels known beforehand, in place of a model: one per request, in order.
//!
//! For: rows of tables that bound what training can reach: an oracle's own labels through the
//! queues of `rc-rnn`, and those of a model that was given them. Must never know: how
//! the labels were made. No policy to use: the labels of an oracle know the future.
//!
//! A file is [`MAGIC`] and one byte per read or write: 0 not cached, 1 soon, 2 mean, 3 late.

use super::features::{CachingLabel, StayClass};

/// How a file of labels begins.
pub const MAGIC: &[u8] = b"cachewright rc-rnn labels 1\n";

/// The labels.
#[derive(Clone, Debug, Default)]
pub struct LabelTable {
    labels: Vec<u8>,
}

impl LabelTable {
    /// Reads a file. Errors: a byte that is no label, with its place.
    pub fn load(bytes: &[u8]) -> Result<LabelTable, String> {
        let labels = bytes.strip_prefix(MAGIC).ok_or("found no file of labels")?;
        match labels.iter().position(|label| *label > 3) {
            Some(at) => Err(format!("label {at}: found {}, expected 0 to 3", labels[at])),
            None => Ok(LabelTable { labels: labels.to_vec() }),
        }
    }

    /// The label of the last of so many requests; nothing behind the end of the file.
    pub fn label(&self, requests: usize) -> Option<CachingLabel> {
        self.labels.get(requests.checked_sub(1)?).map(|label| decoded(*label))
    }
}

/// The file of these labels.
pub fn file(labels: impl IntoIterator<Item = CachingLabel>) -> Vec<u8> {
    MAGIC.iter().copied().chain(labels.into_iter().map(encoded)).collect()
}

/// A label as a byte of a file.
pub fn encoded(label: CachingLabel) -> u8 {
    if label.cached { label.duration as u8 + 1 } else { 0 }
}

fn decoded(label: u8) -> CachingLabel {
    let duration = match label {
        0 | 1 => StayClass::Soon,
        2 => StayClass::Mean,
        _ => StayClass::Late,
    };
    CachingLabel { cached: label > 0, duration }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_other_bytes_are_refused() {
        let all = [0, 1, 2, 3].map(decoded);
        let table = LabelTable::load(&file(all)).unwrap_or_default();
        assert_eq!(table.label(0), None, "no request has passed");
        for (before, label) in all.into_iter().enumerate() {
            assert_eq!(table.label(before + 1), Some(label));
        }
        assert_eq!(table.label(all.len() + 1), None, "behind the end");
        let bad = [MAGIC, &[0, 4]].concat();
        assert_eq!(
            LabelTable::load(&bad).err().as_deref(),
            Some("label 1: found 4, expected 0 to 3")
        );
    }
}
