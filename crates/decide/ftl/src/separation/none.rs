//! None: all pages share one stream.
//!
//! For: the base that every separation is measured against (`NoSep`, `Base`). Must never know:
//! anything. Memory: none.

use super::{MovedPage, Registered, Separation, Stream, Write};
use crate::{Entry, Geometry};
use cachewright_types::Seed;
use cachewright_types::declare::NoSettings;

/// No separation.
#[derive(Clone, Copy, Debug, Default)]
pub struct None;

impl Registered for None {
    type Settings = NoSettings;
    const ENTRY: Entry = Entry {
        name: "none",
        doc: "pages of the host and moved pages share one open superblock",
        source: "SepBIT, FAST'22, section 4.1 (NoSep)",
        needs: &[],
    };

    fn new(_: &Geometry, _: &NoSettings, _: Seed) -> Self {
        None
    }
}

impl Separation for None {
    fn streams(&self) -> u32 {
        1
    }

    #[inline(always)]
    fn place_user(&mut self, _: &Write) -> Stream {
        Stream(0)
    }

    #[inline(always)]
    fn place_moved(&mut self, _: &MovedPage<'_>) -> Stream {
        Stream(0)
    }

    fn metadata_bytes_per_page(&self) -> f64 {
        0.0
    }
}
