//! What Shiro keeps of each logical page: 36 bytes.
//!
//! For: the model's hidden state (32 bytes), and in 4 bytes the moment of the last write and the
//! class given then. Must never know: models, where a page lies. Source: Shiro, section III-D. The
//! class shares its 4 bytes with the time, which leaves 30 bits. A lifetime is known modulo 2^30
//! host page writes (16 TiB of 16 KiB pages).

/// Bytes of hidden state per page.
pub const STATE_BYTES: usize = 32;
/// Bytes of write time and class per page.
pub const STAMP_BYTES: usize = 4;
const TIME_BITS: u32 = 30;
const TIME_MASK: u32 = (1 << TIME_BITS) - 1;
/// Never written, or trimmed.
const ABSENT: u32 = 3;

/// What the classifier said of a page write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LifetimeClass {
    /// Overwritten soon.
    Short,
    /// Overwritten later.
    Long,
    /// Not predicted: a first write, or no model yet.
    Unseen,
}

impl LifetimeClass {
    /// The index of its stream and of its bin in the agent's table.
    pub fn index(self) -> u8 {
        match self {
            LifetimeClass::Short => 0,
            LifetimeClass::Long => 1,
            LifetimeClass::Unseen => 2,
        }
    }
}

/// State and stamp of every page.
#[derive(Clone, Debug)]
pub struct Pages {
    states: Vec<[i8; STATE_BYTES]>,
    stamps: Vec<u32>,
}

impl Pages {
    /// Pages never written.
    pub fn new(pages: u32) -> Pages {
        Pages {
            states: vec![[0; STATE_BYTES]; pages as usize],
            stamps: vec![ABSENT << TIME_BITS; pages as usize],
        }
    }

    /// Host page writes since the last write of a page, if it holds data.
    #[inline]
    pub fn age(&self, page: u32, clock: u64) -> Option<u32> {
        let stamp = self.stamps.get(page as usize)?;
        let age = (clock as u32).wrapping_sub(*stamp) & TIME_MASK;
        (stamp >> TIME_BITS != ABSENT).then_some(age)
    }

    /// The class given at the last write.
    #[inline]
    pub fn class(&self, page: u32) -> LifetimeClass {
        match self.stamps.get(page as usize).map(|stamp| stamp >> TIME_BITS) {
            Some(0) => LifetimeClass::Short,
            Some(1) => LifetimeClass::Long,
            _ => LifetimeClass::Unseen,
        }
    }

    /// A page was written and classified.
    #[inline]
    pub fn stamp(&mut self, page: u32, clock: u64, class: LifetimeClass) {
        if let Some(stamp) = self.stamps.get_mut(page as usize) {
            *stamp = (clock as u32 & TIME_MASK) | u32::from(class.index()) << TIME_BITS;
        }
    }

    /// A page holds nothing any more.
    pub fn forget(&mut self, page: u32) {
        if let Some(stamp) = self.stamps.get_mut(page as usize) {
            *stamp = ABSENT << TIME_BITS;
        }
        if let Some(state) = self.states.get_mut(page as usize) {
            *state = [0; STATE_BYTES];
        }
    }

    /// The hidden state after the last write of a page.
    #[inline]
    pub fn state(&mut self, page: u32) -> Option<&mut [i8; STATE_BYTES]> {
        self.states.get_mut(page as usize)
    }

    /// Loads a page's entries ahead of their use.
    #[inline(always)]
    pub fn touch(&self, page: u32) -> u32 {
        let state = self.states.get(page as usize).map_or(0, |state| state[0]);
        let stamp = self.stamps.get(page as usize).copied().unwrap_or(0);
        stamp.wrapping_add(u32::from(state.cast_unsigned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_holds_time_and_class() {
        let mut pages = Pages::new(4);
        assert_eq!((pages.age(1, 9), pages.class(1)), (None, LifetimeClass::Unseen));
        for class in [LifetimeClass::Short, LifetimeClass::Long, LifetimeClass::Unseen] {
            pages.stamp(1, 100, class);
            assert_eq!((pages.age(1, 107), pages.class(1)), (Some(7), class));
        }
        let late = (1_u64 << 34) - 2;
        pages.stamp(2, late, LifetimeClass::Long);
        assert_eq!(pages.age(2, late + 5), Some(5), "the clock passes 30 bits");
        pages.forget(1);
        assert_eq!(pages.age(1, 107), None);
        assert_eq!(size_of::<[i8; STATE_BYTES]>() + STAMP_BYTES, 36);
    }
}
