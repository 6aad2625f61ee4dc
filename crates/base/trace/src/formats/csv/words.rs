//! What the fields of a CSV say: the words of operations, and which rows are requests.
//!
//! For: one record at a time. Must never know: units, addresses.

use super::CsvOptions;
use super::names::column_at;
use crate::options::bad_option;
use crate::rwbs;
use crate::{OpenOptions, TraceError};
use cachewright_types::Op;

/// The rows that are requests, by what one column says.
#[derive(Clone)]
pub(super) struct Keep {
    /// From 1.
    pub(super) column: u32,
    values: Vec<Vec<u8>>,
}

impl Keep {
    /// The rows that `text`, `column=value|value`, means; all where it is empty.
    pub(super) fn new(text: &str, names: &[String]) -> Result<Option<Keep>, TraceError> {
        if text.is_empty() {
            return Ok(None);
        }
        let parts = text.split_once('=').map(|(place, values)| (place.trim(), values.trim()));
        let Some((place, values)) = parts.filter(|(_, values)| !values.is_empty()) else {
            return Err(bad_option("keep", text, "`column=value|value`, as in `event=D`"));
        };
        let column = column_at("keep", text, place, names)?;
        let values = values.split('|').map(|value| value.trim().as_bytes().to_vec()).collect();
        Ok(Some(Keep { column, values }))
    }

    /// Whether a row with this field is a request.
    #[inline]
    pub(super) fn has(&self, field: &[u8]) -> bool {
        self.values.iter().any(|value| value == field)
    }
}

/// What the kernel writes of a request; see [`rwbs`].
const KERNEL_LETTERS: &[u8] = b"RWDFNZASMUE";

/// The words of the operation column.
#[derive(Clone)]
pub(in crate::formats) struct Words {
    /// By the word's only byte.
    letters: [Option<Op>; 256],
    longer: Vec<(String, Op)>,
}

impl Words {
    /// The words that the options list. Errors: a word that means two things.
    pub(super) fn new(own: &CsvOptions, options: &OpenOptions) -> Result<Words, TraceError> {
        let lists = [
            ("read_words", &own.read_words, Op::Read),
            ("write_words", &own.write_words, Op::Write),
            ("trim_words", &own.trim_words, Op::Trim),
            ("flush_words", &own.flush_words, Op::Flush),
        ];
        let mut words = Words { letters: [None; 256], longer: Vec::new() };
        // Lists that the user gave come first: they may take a word from another's default.
        for given in [true, false] {
            for (key, list, op) in lists {
                if options.format_options.contains_key(key) == given {
                    words.add(key, list, op, given)?;
                }
            }
        }
        Ok(words)
    }

    fn add(&mut self, key: &str, list: &str, op: Op, given: bool) -> Result<(), TraceError> {
        for word in list.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match self.op(word.as_bytes()) {
                Some(other) if given && other != op => {
                    let expected = format!("a word that does not mean a {} already", other.word());
                    return Err(bad_option(key, word, expected));
                }
                Some(_) => {}
                None => match word.as_bytes() {
                    [letter] => {
                        self.letters[usize::from(letter.to_ascii_lowercase())] = Some(op);
                        self.letters[usize::from(letter.to_ascii_uppercase())] = Some(op);
                    }
                    _ => self.longer.push((word.to_owned(), op)),
                },
            }
        }
        Ok(())
    }

    /// What `word` asks, in any case. Of several words (`write|sync`, `READ - DIRECT`) the first
    /// one counts; the kernel's letters (`WS`, `RAM`) are known.
    #[inline]
    pub(in crate::formats) fn op(&self, word: &[u8]) -> Option<Op> {
        if let [letter] = word {
            return self.letters[usize::from(*letter)];
        }
        self.listed(word).or_else(|| self.composed(word))
    }

    fn listed(&self, word: &[u8]) -> Option<Op> {
        let same = |(known, _): &&(String, Op)| known.as_bytes().eq_ignore_ascii_case(word);
        self.longer.iter().find(same).map(|(_, op)| *op)
    }

    #[cold]
    fn composed(&self, word: &[u8]) -> Option<Op> {
        let end = word.iter().position(|byte| !byte.is_ascii_alphanumeric());
        match end.map(|end| &word[..end]) {
            Some([letter]) => self.letters[usize::from(*letter)],
            Some(first) => self.listed(first),
            None if word.iter().all(|byte| KERNEL_LETTERS.contains(byte)) => {
                let request = rwbs::request(word)?;
                request.data.or_else(|| request.flush.then_some(Op::Flush))
            }
            None => None,
        }
    }
}
