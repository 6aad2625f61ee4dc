//! Files that answer later than they do.
//!
//! For: trying a server on files that are faster than its volumes will be. Must never know: what
//! operations are for. Units: nanoseconds. Operations wait side by side: it is a delay and no
//! bandwidth. Without delays nothing is held.

use super::token::{Submitter, purpose};
use super::{Done, FileId, Io, IoOp, Token};
use slab::Slab;

/// Carries operations out by another sibling, those of some files later.
pub struct Delayed<I> {
    io: I,
    /// Files, and how much later.
    files: Vec<(FileId, u64)>,
    held: Slab<(Token, IoOp)>,
    /// What the other sibling has done: the memory is kept.
    done: Vec<Done>,
}

impl<I> Delayed<I> {
    /// With these files, and how much later each answers.
    pub fn new(io: I, files: Vec<(FileId, u64)>) -> Delayed<I> {
        Delayed { io, files, held: Slab::default(), done: Vec::new() }
    }

    /// The other sibling.
    pub fn inner(&mut self) -> &mut I {
        &mut self.io
    }

    /// One more file answers later, by so much.
    pub fn delay(&mut self, file: FileId, delay_ns: u64) {
        self.files.push((file, delay_ns));
    }
}

impl<I: Io> Delayed<I> {
    /// Takes what the other sibling has done; false if only delays have ended.
    fn take(&mut self, done: &mut Vec<Done>) -> bool {
        let mut taken = false;
        for found in self.done.drain(..) {
            let is_delay = Submitter::of(found.token) == Some(Submitter::Delay);
            let (_, index) = purpose(found.token);
            match is_delay.then(|| self.held.try_remove(index)).flatten() {
                Some((token, op)) => self.io.submit(token, op),
                None => {
                    taken = true;
                    done.push(found);
                }
            }
        }
        taken
    }
}

impl<I: Io> Io for Delayed<I> {
    fn submit(&mut self, token: Token, op: IoOp) {
        if self.files.is_empty() {
            return self.io.submit(token, op);
        }
        let file = op.file_range().map(|(file, ..)| file);
        match self.files.iter().find(|(slow, _)| Some(*slow) == file) {
            Some((_, delay_ns)) => {
                let at_ns = self.io.now_ns() + delay_ns;
                let index = self.held.insert((token, op));
                self.io.submit(Submitter::Delay.token(0, index), IoOp::Timer { at_ns });
            }
            None => self.io.submit(token, op),
        }
    }

    fn wait(&mut self, done: &mut Vec<Done>) {
        if self.files.is_empty() {
            return self.io.wait(done);
        }
        loop {
            self.io.wait(&mut self.done);
            if self.done.is_empty() || self.take(done) {
                return;
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
mod tests {
    use super::*;
    use crate::io::Buffer;
    use crate::io::sim::{Sim, SimFile};
    use cachewright_types::Seed;

    const LATE_NS: u64 = 1_000_000_000;

    fn read(file: FileId) -> IoOp {
        IoOp::Read { file, offset: 0, buffer: Buffer::zeroed(4096) }
    }

    #[test]
    fn slow_files_answer_late_and_hold_no_others_up() {
        let mut sim = Sim::new(Seed(1));
        let [fast, slow] = [0, 1].map(|_| sim.add_file(SimFile::new(8192)));
        let mut io = Delayed::new(sim, vec![(slow, LATE_NS)]);
        let began_ns = io.now_ns();
        io.submit(Token(1), read(slow));
        io.submit(Token(2), IoOp::Sync { file: slow });
        io.submit(Token(3), read(fast));
        let mut found = Vec::new();
        let mut done = Vec::new();
        while found.len() < 3 {
            io.wait(&mut done);
            assert!(!done.is_empty(), "a wait ends with something");
            found.extend(done.drain(..).map(|done| (done.token, io.now_ns() - began_ns)));
        }
        assert_eq!(found[0].0, Token(3), "{found:?}");
        assert!(found[0].1 < LATE_NS, "{found:?}");
        assert!(found[1..].iter().all(|(_, at_ns)| *at_ns >= LATE_NS), "{found:?}");
        io.wait(&mut done);
        assert!(done.is_empty(), "nothing is under way");
    }
}
