//! Pages that cleaning is to read, and how much of cleaning is under way.
//!
//! For: pages side by side as one read, the oldest first. Must never know: where moved pages go.
//! Units: pages, commands.

use std::collections::VecDeque;

/// Pages side by side that one command will read to move them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gathering {
    /// Where they lie.
    pub life: u32,
    /// The first of them.
    pub first: u32,
    /// The writes that wait for them, one per page.
    pub writes: Vec<u32>,
}

/// Reads of pages to be moved, and commands of cleaning under way.
#[derive(Clone, Debug, Default)]
pub struct PageMoves {
    waiting: VecDeque<Gathering>,
    under_way: u32,
}

impl PageMoves {
    /// A page of a life is to be read for a write, with the last one noted if it lies behind that
    /// and the command has at most `max_pages`. Returns whether it begins a new command.
    pub fn note(&mut self, life: u32, offset: u32, write: u32, max_pages: u32) -> bool {
        if let Some(last) = self.waiting.back_mut()
            && last.life == life
            && last.first + last.writes.len() as u32 == offset
            && last.writes.len() < max_pages as usize
        {
            last.writes.push(write);
            return false;
        }
        self.waiting.push_back(Gathering { life, first: offset, writes: vec![write] });
        true
    }

    /// The oldest pages that are to be read, which begins a command of cleaning.
    pub fn begin_next(&mut self) -> Option<Gathering> {
        let next = self.waiting.pop_front()?;
        self.under_way += 1;
        Some(next)
    }

    /// Another command of cleaning begins.
    pub fn begin(&mut self) {
        self.under_way += 1;
    }

    /// A command of cleaning is done.
    pub fn end(&mut self) {
        self.under_way -= 1;
    }

    /// Commands of cleaning under way.
    pub fn under_way(&self) -> u32 {
        self.under_way
    }

    /// Commands that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_side_by_side_are_one_read_up_to_the_longest_command() {
        let mut queue = PageMoves::default();
        let pages = [(1, 4), (1, 5), (1, 6), (1, 8), (2, 9)];
        let begun = [true, false, true, true, true];
        for ((write, (life, offset)), begins) in (0..).zip(pages).zip(begun) {
            assert_eq!(queue.note(life, offset, write, 2), begins, "page {offset}");
        }
        let first = Gathering { life: 1, first: 4, writes: vec![0, 1] };
        assert_eq!((queue.begin_next(), queue.under_way(), queue.waiting()), (Some(first), 1, 3));
        queue.begin();
        queue.end();
        queue.end();
        assert_eq!(queue.under_way(), 0);
    }
}
