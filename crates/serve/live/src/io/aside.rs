//! Operations one waits for while others are under way.
//!
//! For: rare changes of a server that runs, such as a volume that is added. Must never know: what
//! the others are for. Units: nanoseconds. What the others bring meanwhile is kept in order for its
//! owner, so that nothing is lost; it waits for as long as the change takes.

use super::{Done, FileId, Io, IoOp, Token};

/// The eight highest bits of operations aside: no other operation has them.
const ASIDE: u64 = 0xfe << 56;

/// Carries operations out beside those that are under way.
pub struct Aside<'a, I> {
    io: &'a mut I,
    done: Vec<Done>,
    others: Vec<Done>,
}

impl<'a, I: Io> Aside<'a, I> {
    /// Beside what is under way in `io`.
    pub fn new(io: &'a mut I) -> Aside<'a, I> {
        Aside { io, done: Vec::new(), others: Vec::new() }
    }

    /// What the others have brought meanwhile.
    pub fn into_others(self) -> Vec<Done> {
        self.others
    }
}

impl<I: Io> Io for Aside<'_, I> {
    fn submit(&mut self, token: Token, op: IoOp) {
        debug_assert!(token.0 < ASIDE, "tokens of operations aside are small");
        self.io.submit(Token(ASIDE | token.0), op);
    }

    fn wait(&mut self, done: &mut Vec<Done>) {
        let before = done.len();
        while done.len() == before {
            self.io.wait(&mut self.done);
            if self.done.is_empty() {
                return;
            }
            for found in self.done.drain(..) {
                match found.token.0 & ASIDE == ASIDE {
                    true => done.push(Done { token: Token(found.token.0 & !ASIDE), ..found }),
                    false => self.others.push(found),
                }
            }
        }
    }

    fn now_ns(&self) -> u64 {
        self.io.now_ns()
    }

    fn file_bytes(&self, file: FileId) -> u64 {
        self.io.file_bytes(file)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::*;
    use crate::io::sim::{Sim, SimFile};
    use crate::io::{Buffer, batch};
    use cachewright_types::Seed;

    #[test]
    fn what_others_bring_meanwhile_is_kept() {
        for seed in 0..20 {
            let mut sim = Sim::new(Seed(seed));
            let file = sim.add_file(SimFile::new(1 << 16));
            for token in 0..4 {
                sim.submit(Token(1 << 56 | token), IoOp::Sync { file });
            }
            let mut aside = Aside::new(&mut sim);
            batch::write(&mut aside, [(file, 0, Buffer::copy_of(&[7; 4096]))]).unwrap();
            let mut brought = aside.into_others();
            let mut done = Vec::new();
            while brought.len() < 4 {
                sim.wait(&mut done);
                assert!(!done.is_empty(), "all end, here or there");
                brought.append(&mut done);
            }
            let mut tokens: Vec<u64> = brought.iter().map(|done| done.token.0 & 0xff).collect();
            tokens.sort_unstable();
            assert_eq!(tokens, [0, 1, 2, 3]);
        }
    }
}
