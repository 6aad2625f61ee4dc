//! 2R: pages of the host apart from moved pages.
//!
//! For: the simplest separation. Must never know: ages. Source: Kang et al., PVLDB'20 (two regions,
//! normal and cold), as SepBIT's simulator has it (`SepGC`). The paper also adapts the sizes of the
//! regions and can take victims in order of age from the normal one. Here the reclaim policy does
//! that. Memory: none.

use super::{MovedPage, Registered, Separation, Stream, Write};
use crate::{Entry, Geometry};
use cachewright_types::Seed;
use cachewright_types::declare::NoSettings;

/// Two regions.
#[derive(Clone, Copy, Debug, Default)]
pub struct TwoRegion;

impl Registered for TwoRegion {
    type Settings = NoSettings;
    const ENTRY: Entry = Entry {
        name: "2r",
        doc: "pages of the host apart from moved pages (sep-gc)",
        source: "Kang et al., PVLDB'20; SepGC of SepBIT, FAST'22",
        needs: &[],
    };

    fn new(_: &Geometry, _: &NoSettings, _: Seed) -> Self {
        TwoRegion
    }
}

impl Separation for TwoRegion {
    fn streams(&self) -> u32 {
        2
    }

    fn user_streams(&self) -> u32 {
        1
    }

    fn moved_streams(&self) -> u32 {
        1
    }

    #[inline(always)]
    fn place_user(&mut self, _: &Write) -> Stream {
        Stream(0)
    }

    #[inline(always)]
    fn place_moved(&mut self, _: &MovedPage<'_>) -> Stream {
        Stream(1)
    }

    fn metadata_bytes_per_page(&self) -> f64 {
        0.0
    }
}
