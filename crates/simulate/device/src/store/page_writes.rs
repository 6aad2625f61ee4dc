//! Pages on their way to the device.
//!
//! For: which page comes to which place, and what it still waits for. Must never know: devices,
//! when a page may be written. Units: pages. A place is a life and a page within its segment.

use super::under_way::{OpenPageWrite, PagePlace};
use hashbrown::HashMap;
use slab::Slab;

/// Pages on their way, by number and by place.
#[derive(Clone, Debug, Default)]
pub struct PageWrites {
    writes: Slab<OpenPageWrite>,
    /// The page on its way to each place.
    places: HashMap<(u32, u32), u32, foldhash::fast::FixedState>,
}

impl PageWrites {
    /// A page is on its way; returns its number.
    pub fn begin(&mut self, write: OpenPageWrite) -> u32 {
        let place = (write.life, write.offset);
        let number = self.writes.insert(write) as u32;
        self.places.insert(place, number);
        number
    }

    /// A page on its way.
    pub fn get(&self, number: u32) -> Option<&OpenPageWrite> {
        self.writes.get(number as usize)
    }

    /// A page on its way, to be changed.
    pub fn get_mut(&mut self, number: u32) -> Option<&mut OpenPageWrite> {
        self.writes.get_mut(number as usize)
    }

    /// Where the page of a place can be read: there, or on its way to it.
    pub fn source_of(&self, life: u32, offset: u32) -> PagePlace {
        let coming =
            self.places.get(&(life, offset)).and_then(|write| self.writes.get(*write as usize));
        match coming {
            None => PagePlace::At { life, offset },
            Some(write) => match write.from {
                Some((life, offset)) => PagePlace::At { life, offset },
                None => PagePlace::Memory,
            },
        }
    }

    /// A page has arrived at a place; returns what was known of it.
    pub fn end(&mut self, life: u32, offset: u32) -> Option<OpenPageWrite> {
        let number = self.places.remove(&(life, offset))?;
        self.writes.try_remove(number as usize)
    }

    /// Pages on their way.
    pub fn len(&self) -> usize {
        self.writes.len()
    }

    /// All pages on their way.
    pub fn iter(&self) -> impl Iterator<Item = &OpenPageWrite> {
        self.writes.iter().map(|(_, write)| write)
    }

    /// Checks that every page goes to a place of its own. Errors: the rule broken, in words.
    pub fn audit(&self) -> Result<(), String> {
        let (pages, places) = (self.writes.len(), self.places.len());
        if pages == places {
            Ok(())
        } else {
            Err(format!("{pages} pages are on their way to {places} places"))
        }
    }
}
