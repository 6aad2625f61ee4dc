//! The steps of a script, of any number.
//!
//! For: passes over all steps in order, a piece at a time. Must never know: what replays them.
//! Steps beyond what memory should hold lie in a scratch file (`cachewright_memory::Column`): a
//! pass gives back what it has read. Units: steps, pages. Size: 12 bytes per step, and 4 per page
//! written where lifetimes are known.

use cachewright_memory::{Column, ColumnWriter, HELD_BYTES};
use cachewright_types::Op;
use std::io;
use std::ops::Range;

/// Steps of a piece, at least, but for the last one.
const PIECE: usize = 1 << 16;
/// The bit of a packed step that says whether it continues the one before.
const CONTINUES: u32 = 1 << 8;

/// One request in logical pages, or a part of one whose pages do not follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptStep {
    /// What is asked; never a flush.
    pub op: Op,
    /// Whether the step belongs to the request of the step before it.
    pub continues: bool,
    /// First page.
    pub first: u32,
    /// Number of pages, at least 1.
    pub pages: u32,
}

impl ScriptStep {
    /// The pages, as indices.
    pub fn range(&self) -> Range<usize> {
        self.first as usize..self.first as usize + self.pages as usize
    }

    /// Pages that it writes.
    pub fn written(&self) -> u64 {
        if self.op == Op::Write { u64::from(self.pages) } else { 0 }
    }

    fn packed(self) -> [u32; 3] {
        let continues = if self.continues { CONTINUES } else { 0 };
        [self.first, self.pages, self.op as u32 | continues]
    }

    fn unpacked([first, pages, kind]: [u32; 3]) -> ScriptStep {
        let op = match kind & !CONTINUES {
            kind if kind == Op::Write as u32 => Op::Write,
            kind if kind == Op::Trim as u32 => Op::Trim,
            _ => Op::Read,
        };
        ScriptStep { op, continues: kind & CONTINUES != 0, first, pages }
    }
}

/// All steps, in order.
#[derive(Clone, Debug, Default)]
pub struct ScriptSteps(Column<[u32; 3]>);

impl ScriptSteps {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// A step, if there are so many.
    pub fn get(&self, index: usize) -> Option<ScriptStep> {
        self.0.get(index).copied().map(ScriptStep::unpacked)
    }

    /// Gives back the memory of steps that will not be read soon.
    pub fn release(&self, range: Range<usize>) {
        self.0.release(range);
    }

    /// Passes the steps of a range in order.
    pub fn each(&self, range: Range<usize>, mut visit: impl FnMut(ScriptStep)) {
        for start in range.clone().step_by(PIECE) {
            let piece = start..(start + PIECE).min(range.end);
            self.0[piece.clone()].iter().for_each(|step| visit(ScriptStep::unpacked(*step)));
            self.release(piece);
        }
    }

    /// Passes the steps of a range from its end.
    pub fn each_back(&self, range: Range<usize>, mut visit: impl FnMut(ScriptStep)) {
        let mut end = range.end;
        while end > range.start {
            let piece = end.saturating_sub(PIECE).max(range.start)..end;
            self.0[piece.clone()].iter().rev().for_each(|step| visit(ScriptStep::unpacked(*step)));
            self.release(piece.clone());
            end = piece.start;
        }
    }

    /// The end of a piece of whole requests that starts at `start`, at most at `end`.
    fn piece_end(&self, start: usize, end: usize) -> usize {
        let mut found = (start + PIECE).min(end);
        while found < end && self.get(found).is_some_and(|step| step.continues) {
            found += 1;
        }
        found
    }
}

/// Steps and the lifetimes of the pages that they write, to be replayed.
#[derive(Clone, Debug)]
pub struct Stretch<'a> {
    /// All steps of a script.
    pub steps: &'a ScriptSteps,
    /// Those to replay.
    pub range: Range<usize>,
    /// Of every page that the script writes.
    pub lifetimes: &'a Column<u32>,
    /// Pages written before the range.
    pub written: usize,
}

impl Stretch<'_> {
    /// Passes whole requests with the lifetimes of the pages they write, a piece at a time, for as
    /// long as `visit` returns true. Errors: those of `visit`.
    pub fn pieces<E>(
        &self,
        mut visit: impl FnMut(&[ScriptStep], &[u32]) -> Result<bool, E>,
    ) -> Result<(), E> {
        let (mut start, mut page) = (self.range.start, self.written);
        let mut steps = Vec::new();
        while start < self.range.end {
            let end = self.steps.piece_end(start, self.range.end);
            steps.clear();
            self.steps.each(start..end, |step| steps.push(step));
            let written = steps.iter().map(ScriptStep::written).sum::<u64>() as usize;
            let goes_on = visit(&steps, &self.lifetimes[page..page + written])?;
            self.lifetimes.release(page..page + written);
            if !goes_on {
                break;
            }
            (start, page) = (end, page + written);
        }
        Ok(())
    }
}

/// Writes steps in order.
#[derive(Debug)]
pub struct StepWriter(ColumnWriter<[u32; 3]>);

impl StepWriter {
    /// No step yet; at most so many bytes are held in memory.
    pub fn holding(held_bytes: usize) -> StepWriter {
        StepWriter(ColumnWriter::holding(held_bytes))
    }

    /// Steps added.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds a step. Errors: no place for a scratch file.
    pub fn push(&mut self, step: ScriptStep) -> io::Result<()> {
        self.0.tail.push(step.packed());
        self.0.settle()
    }

    /// The steps, to be read. Errors: as `push`.
    pub fn finish(self) -> io::Result<ScriptSteps> {
        Ok(ScriptSteps(self.0.finish()?))
    }
}

impl Default for StepWriter {
    fn default() -> StepWriter {
        StepWriter::holding(HELD_BYTES)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Steps that lie in memory, or all but a few in a file.
    pub fn steps(steps: &[ScriptStep], held_bytes: usize) -> ScriptSteps {
        let mut writer = StepWriter::holding(held_bytes);
        steps.iter().for_each(|step| writer.push(*step).unwrap());
        writer.finish().unwrap()
    }

    /// All steps in memory.
    pub fn listed(steps: &ScriptSteps) -> Vec<ScriptStep> {
        let mut found = Vec::new();
        steps.each(0..steps.len(), |step| found.push(step));
        found
    }

    #[test]
    fn steps_from_a_file_are_those_written() {
        let op = |index: u32| [Op::Read, Op::Write, Op::Trim][index as usize % 3];
        let step = |index: u32| ScriptStep {
            op: op(index),
            continues: index % 5 == 4,
            first: index ^ 0x7fff_0000,
            pages: u32::MAX - index,
        };
        let all: Vec<ScriptStep> = (0..2 * PIECE as u32 + 9).map(step).collect();
        for held_bytes in [100, 1 << 30] {
            let found = steps(&all, held_bytes);
            assert_eq!(
                (found.len(), found.get(7), found.get(all.len())),
                (all.len(), Some(all[7]), None)
            );
            assert_eq!(listed(&found), all);
            let mut back = Vec::new();
            found.each_back(3..all.len(), |step| back.push(step));
            back.reverse();
            assert_eq!(back, all[3..]);
        }
    }

    /// A request of two steps lies across the end of the first piece: it is not cut.
    #[test]
    fn pieces_are_of_whole_requests_with_their_lifetimes() {
        let step = |index: usize| ScriptStep {
            op: if index.is_multiple_of(4) { Op::Read } else { Op::Write },
            continues: (PIECE - 1..PIECE + 2).contains(&index),
            first: index as u32,
            pages: 1 + index as u32 % 2,
        };
        let all: Vec<ScriptStep> = (0..PIECE + 10).map(step).collect();
        let written: u64 = all.iter().map(ScriptStep::written).sum();
        let lifetimes: Column<u32> = (0..written as u32).collect::<Vec<_>>().into();
        for held_bytes in [100, 1 << 30] {
            let found = steps(&all, held_bytes);
            let skipped: u64 = all[..5].iter().map(ScriptStep::written).sum();
            let stretch = Stretch {
                steps: &found,
                range: 5..all.len() - 1,
                lifetimes: &lifetimes,
                written: skipped as usize,
            };
            let (mut seen, mut lives, mut ends) = (Vec::new(), Vec::new(), Vec::new());
            let pieces = stretch.pieces(|steps, lifetimes| {
                seen.extend_from_slice(steps);
                lives.extend_from_slice(lifetimes);
                ends.push(seen.len());
                Ok::<bool, ()>(true)
            });
            assert!(pieces.is_ok());
            assert_eq!(seen, all[5..all.len() - 1]);
            assert!(lives.iter().copied().eq(skipped as u32..skipped as u32 + lives.len() as u32));
            assert_eq!(ends, [PIECE, PIECE + 4]);
        }
    }
}
