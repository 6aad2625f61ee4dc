//! Whether a thread looks for completions before it sleeps.
//!
//! To be woken takes longer than to look; a look takes the processor from others. For: siblings
//! that wait in the kernel, and those that imitate them in virtual time. Units: nanoseconds.

/// So long does a thread look before it sleeps: a little longer than a flash device takes for a
/// read, or a client for its next request.
pub const LOOK_NS: u64 = 50_000;
/// After so many looks in vain in a row the pause between two does not grow any more.
const MAX_IN_VAIN: u32 = 8;

/// Whether a wait begins with a look for completions. Each look in vain doubles the number of waits
/// that do without one: a server that has little to do, or whose device is slow, sleeps at once.
/// One look that finds something ends that.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lookout {
    in_vain: u32,
    pause: u32,
}

impl Lookout {
    /// Whether this wait begins with a look; [`Lookout::end`] says what came of it.
    pub fn begins(&mut self) -> bool {
        let begins = self.pause == 0;
        self.pause = self.pause.saturating_sub(1);
        begins
    }

    /// A look has ended.
    pub fn end(&mut self, found: bool) {
        self.in_vain = if found { 0 } else { (self.in_vain + 1).min(MAX_IN_VAIN) };
        self.pause = (1 << self.in_vain) - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits of `count` that begin with a look, where a look finds something or not.
    fn looks(lookout: &mut Lookout, count: usize, finds: bool) -> Vec<usize> {
        let mut begun = Vec::new();
        for wait in 0..count {
            if lookout.begins() {
                begun.push(wait);
                lookout.end(finds);
            }
        }
        begun
    }

    #[test]
    fn looks_in_vain_become_rare_and_one_that_finds_something_brings_them_back() {
        let mut lookout = Lookout::default();
        assert_eq!(looks(&mut lookout, 5, true), [0, 1, 2, 3, 4]);
        assert_eq!(looks(&mut lookout, 30, false), [0, 2, 6, 14]);
        assert_eq!(looks(&mut lookout, 2, true), [0, 1]);
        let many = looks(&mut lookout, 100_000, false);
        assert!(many.len() < 100_000 / 200 && many.len() > 100_000 / 300, "{}", many.len());
    }
}
