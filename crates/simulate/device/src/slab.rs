//! Things by small numbers that are given out again.
//!
//! For: commands, pages and lives under way. Must never know: what they are. A number means nothing
//! once its thing was taken.

/// The number of nothing.
pub const NIL: u32 = u32::MAX;

/// A slab.
#[derive(Clone, Debug)]
pub struct Slab<T> {
    all: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab { all: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// Keeps a thing; returns its number.
    pub fn insert(&mut self, thing: T) -> u32 {
        match self.free.pop() {
            Some(number) => {
                self.all[number as usize] = Some(thing);
                number
            }
            None => {
                self.all.push(Some(thing));
                self.all.len() as u32 - 1
            }
        }
    }

    /// A thing.
    pub fn get(&self, number: u32) -> Option<&T> {
        self.all.get(number as usize)?.as_ref()
    }

    /// A thing, to be changed.
    pub fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.all.get_mut(number as usize)?.as_mut()
    }

    /// Takes a thing; its number may be given out again.
    pub fn take(&mut self, number: u32) -> Option<T> {
        let thing = self.all.get_mut(number as usize)?.take();
        if thing.is_some() {
            self.free.push(number);
        }
        thing
    }

    /// Every thing with its number.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.all.iter().zip(0..).filter_map(|(thing, number)| Some((number, thing.as_ref()?)))
    }

    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Things kept.
    pub fn len(&self) -> usize {
        self.all.len() - self.free.len()
    }
}
