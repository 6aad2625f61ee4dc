//! A drive that begins filled.
//!
//! For: steady state without the writes that lead to it. Must never know: how a table stores it.
//! Units: pages and superblocks. Schemes are notified of every filled superblock when it is sealed,
//! and of no page. What they learn from single writes begins with the first write after.

use super::Ftl;
use crate::mapping::Table;
use crate::mapping::lazy::{FillRule, Lazy};
use crate::reclaim::Named;
use crate::separation::{Registered, Separation, Stream};
use crate::{FtlError, Geometry};
use std::sync::Arc;

impl<S: Separation> Ftl<S, Lazy> {
    /// A drive of fixed size whose first logical pages lie where `fill` puts them, all on the first
    /// stream. Its open superblock has `skipped` pages without data, so that drives that share a
    /// rule do not clean in step. Errors: as [`Ftl::new`]; more superblocks or pages than the drive
    /// has beside the open ones and one that is free, superblocks of another size.
    pub fn filled(
        geometry: Geometry,
        separation: S,
        reclaim: Named,
        fill: &Arc<FillRule>,
        skipped: u32,
    ) -> Result<Ftl<S, Lazy>, FtlError>
    where
        S: Registered,
    {
        let mut ftl: Ftl<S, Lazy> = Ftl::on_table(geometry, separation, S::ENTRY.name, reclaim)?;
        let (blocks, free) = (fill.blocks(), ftl.heads.free());
        let max = free.saturating_sub(ftl.heads.streams() + 1);
        let block_pages = ftl.blocks.data_pages();
        for (what, found, low, high) in [
            ("filled superblocks", blocks, 0, max),
            ("filled pages", fill.pages(), 0, geometry.logical_pages),
            ("data pages in a filled superblock", fill.block_pages(), block_pages, block_pages),
        ] {
            if !(low..=high).contains(&found) {
                let (found, expected) = (u64::from(found), format!("{low}..={high}"));
                return Err(FtlError::Geometry { what, found, expected });
            }
        }
        for block in 0..blocks {
            ftl.heads.take_free();
            let invalid = block_pages - fill.valid(block).min(block_pages);
            ftl.blocks.open(block, Stream(0), ftl.clock);
            ftl.clock += u64::from(block_pages);
            ftl.blocks.waste(block, invalid);
            ftl.blocks.seal(block, ftl.clock);
            ftl.occupancy.store(block_pages);
            ftl.occupancy.seal(invalid);
            ftl.separation.on_seal(&ftl.blocks.get(block));
        }
        ftl.occupancy.fill(fill.pages());
        ftl.mapping.fill(Arc::clone(fill));
        let skipped = skipped.min(block_pages - 1);
        if skipped > 0
            && let Some(block) = ftl.heads.take_free()
        {
            ftl.blocks.open(block, Stream(0), ftl.clock);
            ftl.blocks.waste(block, skipped);
            ftl.occupancy.store(skipped);
            let first = ftl.mapping.first(block);
            ftl.heads.go_on(Stream(0), first + skipped, first + block_pages);
        }
        Ok(ftl)
    }
}
