//! MiDA: a page's stream is the number of times it was moved since the host wrote it.
//!
//! For: age without any state per page. Must never know: clocks. Source: MiDA (Park et al.,
//! APSys'21), the predecessor of MiDAS (FAST'24), which falls back to it; also the initial table of
//! Shiro. Memory: none; the victim's stream is the count.

use super::{MovedPage, Registered, Separation, Stream, Write};
use crate::{Entry, Geometry};
use cachewright_types::Seed;

cachewright_types::declare! {
    /// The number of levels.
    pub struct MidaSettings {
        /// streams: one for pages of the host, the others for pages moved once, twice, ...
        levels: u32 = 6, "levels", 2 ..= 64;
    }
}

/// Migration counts.
#[derive(Clone, Copy, Debug)]
pub struct Mida {
    last: u8,
}

impl Registered for Mida {
    type Settings = MidaSettings;
    const ENTRY: Entry = Entry {
        name: "mida",
        doc: "the stream is the number of times a page was moved since the host wrote it",
        source: "Park et al., APSys'21; MiDA of MiDAS, FAST'24",
        needs: &[],
    };

    fn new(_: &Geometry, settings: &MidaSettings, _: Seed) -> Self {
        Mida { last: settings.levels as u8 - 1 }
    }
}

impl Separation for Mida {
    fn streams(&self) -> u32 {
        u32::from(self.last) + 1
    }

    fn user_streams(&self) -> u32 {
        1
    }

    #[inline(always)]
    fn place_user(&mut self, _: &Write) -> Stream {
        Stream(0)
    }

    #[inline(always)]
    fn place_moved(&mut self, moved: &MovedPage<'_>) -> Stream {
        Stream((moved.victim.stream.0 + 1).min(self.last))
    }

    fn metadata_bytes_per_page(&self) -> f64 {
        0.0
    }
}
