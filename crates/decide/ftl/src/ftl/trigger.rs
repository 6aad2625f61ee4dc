//! What starts reclaim.
//!
//! For: the check before a host page is placed and after a request, in the units of the hot path.
//! Must never know: superblocks at hand, victims. Units: superblocks, pages, ratios.

use crate::Geometry;
use crate::geometry::Space;

/// What starts reclaim.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Trigger {
    /// Fewer free superblocks than this.
    Reserve { blocks: u32 },
    /// More garbage than a share of all pages, or more superblocks than that needs.
    GarbageShare { share: f64, max_blocks: u32, min_invalid: u32 },
}

impl Trigger {
    /// Of a drive with so many streams, whose superblocks hold so many pages of metadata.
    pub(super) fn new(geometry: &Geometry, streams: u32, meta_pages: u32) -> Trigger {
        match geometry.space {
            Space::Fixed { reserve_blocks, .. } => Trigger::Reserve { blocks: reserve_blocks },
            Space::GarbageShare { share } => {
                let data_pages = geometry.block_pages - meta_pages;
                let min_invalid = ((share * f64::from(data_pages)).ceil() as u32).max(1);
                let max_blocks = geometry.max_blocks(share, streams, meta_pages) as u32;
                Trigger::GarbageShare { share, max_blocks, min_invalid }
            }
        }
    }

    /// Fewest invalid pages of a victim.
    pub(super) fn min_invalid(self) -> u32 {
        match self {
            Trigger::Reserve { .. } => 0,
            Trigger::GarbageShare { min_invalid, .. } => min_invalid,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_victim_holds_the_share_of_garbage_at_least() {
        let space = Space::GarbageShare { share: 0.15 };
        let geometry = Geometry { logical_pages: 1024, block_pages: 64, space };
        // 0.15 of the 62 pages without metadata is 9.3.
        let trigger = Trigger::new(&geometry, 2, 2);
        assert_eq!(trigger.min_invalid(), 10);
        assert_eq!(Trigger::Reserve { blocks: 3 }.min_invalid(), 0);
    }
}
