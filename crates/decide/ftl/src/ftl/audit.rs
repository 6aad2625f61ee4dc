//! The check of every invariant of a drive.
//!
//! For: tests, fuzzing and simulation. Must never know: anything that `ftl` does not. Slow: it
//! looks at every page.

use super::{Ftl, Trigger};
use crate::blocks::SuperblockState;
use crate::mapping::{Table, UNMAPPED};
use crate::separation::Separation;
use crate::sink::Address;

impl<S: Separation, M: Table> Ftl<S, M> {
    /// Checks every invariant. The error says which one is broken and how.
    pub fn audit(&self) -> Result<(), String> {
        self.blocks.audit()?;
        self.separation.audit()?;
        let stored = self.audit_blocks()?;
        let counted = &self.occupancy;
        if stored != counted.stored() {
            return Err(format!("{stored} pages are stored, {} are counted", counted.stored()));
        }
        let mut mapped = 0;
        for page in 0..self.mapping.pages() {
            let address = self.mapping.address_of(page).map_err(|error| error.to_string())?;
            if address == UNMAPPED {
                continue;
            }
            mapped += 1;
            if self.mapping.page_at(address) != page {
                let Address { block, offset } = self.mapping.split(address);
                return Err(format!("page {page} maps to {block}:{offset}, which is another's"));
            }
        }
        if mapped != counted.mapped() {
            return Err(format!("{mapped} pages are mapped, {} are counted", counted.mapped()));
        }
        let free = self.heads.free();
        if let Trigger::Reserve { .. } = self.trigger
            && free == 0
        {
            return Err("no superblock is free".to_owned());
        }
        Ok(())
    }

    /// Checks states and counts of superblocks; returns the pages they store.
    fn audit_blocks(&self) -> Result<u64, String> {
        let (mut stored, mut garbage, mut free) = (0, 0, 0);
        for id in 0..self.blocks.len() {
            let block = self.blocks.get(id);
            let state = self.blocks.state(id);
            let written = match state {
                SuperblockState::Free => 0,
                SuperblockState::Sealed => block.pages,
                SuperblockState::Open => {
                    let first = self.mapping.first(id);
                    let next = self.heads.next_before(block.stream, first + block.pages);
                    let none = || format!("superblock {id} is open, no stream writes to it");
                    next.ok_or_else(none)? - first
                }
            };
            let valid = self.mapping.valid_in(id, written);
            if valid + block.invalid != written {
                let invalid = block.invalid;
                return Err(format!("superblock {id}: {valid} + {invalid} of {written} pages"));
            }
            stored += u64::from(written);
            garbage += if state == SuperblockState::Sealed { u64::from(block.invalid) } else { 0 };
            free += u32::from(state == SuperblockState::Free);
        }
        if garbage != self.occupancy.garbage() {
            let counted = self.occupancy.garbage();
            return Err(format!("{garbage} pages of garbage, {counted} counted"));
        }
        if free != self.heads.free() {
            return Err(format!("{free} superblocks are free, {} are listed", self.heads.free()));
        }
        Ok(stored)
    }
}
