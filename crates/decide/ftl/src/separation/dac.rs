//! DAC: a page climbs one level when the host rewrites it and falls one when it is moved.
//!
//! For: update frequency in one small number per page. Must never know: ages. Source: Chiang, Lee
//! and Chang, Software: Practice and Experience 29(3), 1999, as SepBIT's simulator has it: level 0
//! is the coldest, levels are classes. Memory: 1 byte per page.

use super::{MovedPage, Registered, Separation, Stream, Write};
use crate::{Entry, Geometry};
use cachewright_types::Seed;

cachewright_types::declare! {
    /// The number of levels.
    pub struct DacSettings {
        /// levels, the coldest first
        levels: u32 = 6, "levels", 2 ..= 64;
    }
}

/// Dynamic data clustering.
#[derive(Clone, Debug)]
pub struct Dac {
    /// Level of each page plus one; 0 before its first write.
    level: Vec<u8>,
    levels: u8,
}

impl Registered for Dac {
    type Settings = DacSettings;
    const ENTRY: Entry = Entry {
        name: "dac",
        doc: "a page climbs one level at each rewrite and falls one each time it is moved",
        source: "Chiang et al., SP&E 29(3), 1999; DAC of SepBIT, FAST'22",
        needs: &[],
    };

    fn new(geometry: &Geometry, settings: &DacSettings, _: Seed) -> Self {
        Dac { level: vec![0; geometry.logical_pages as usize], levels: settings.levels as u8 }
    }
}

impl Separation for Dac {
    fn streams(&self) -> u32 {
        u32::from(self.levels)
    }

    #[inline(always)]
    fn place_user(&mut self, write: &Write) -> Stream {
        let level = &mut self.level[write.page as usize];
        *level = (*level + 1).min(self.levels);
        Stream(*level - 1)
    }

    #[inline(always)]
    fn place_moved(&mut self, moved: &MovedPage<'_>) -> Stream {
        let level = &mut self.level[moved.page as usize];
        *level = level.saturating_sub(1).max(1);
        Stream(*level - 1)
    }

    fn metadata_bytes_per_page(&self) -> f64 {
        1.0
    }

    #[inline(always)]
    fn touch(&self, page: u32) -> u32 {
        self.level.get(page as usize).copied().map_or(0, u32::from)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{geometry, moved, write};
    use super::*;
    use crate::Block;

    /// First write: level 0; three rewrites: 1, 2, 2 of three levels; three moves: 1, 0, 0.
    #[test]
    fn pages_climb_and_fall() {
        let settings = DacSettings { levels: 3 };
        let mut dac = Dac::new(&geometry(), &settings, Seed(0));
        let user: Vec<u8> = (1..5).map(|clock| dac.place_user(&write(7, clock)).0).collect();
        assert_eq!(user, [0, 1, 2, 2]);
        let victim = Block::default();
        let moves: Vec<u8> = (0..3).map(|_| dac.place_moved(&moved(7, &victim, 5)).0).collect();
        assert_eq!(moves, [1, 0, 0]);
    }
}
