//! How long each written page lives: the future, known before the run.
//!
//! For: schemes that need it, and the distribution per stream. Must never know: schemes. Units:
//! pages written by the host; a lifetime ends with the next write of the page or its trim, and is
//! [`NEVER`] if neither comes. One backward pass; 8 bytes per logical page meanwhile.

use super::script::Script;
use super::steps::ScriptSteps;
use cachewright_ftl::NEVER;
use cachewright_memory::{BackwardWriter, Column};
use cachewright_types::Op;
use std::io;
use std::ops::Range;

/// The lifetime of each page written by load and run, in order; at most `held_bytes` of them are
/// held in memory. When the run is `looped`, what it does first follows what it does last. Errors:
/// no place for a scratch file.
pub fn lifetimes(script: &Script, looped: bool, held_bytes: usize) -> io::Result<Column<u32>> {
    let (load, run) = (0..script.load_steps, script.load_steps..script.steps.len());
    let written = script.load_pages + script.run_pages;
    let mut pass = Backward {
        ends: vec![u64::MAX; script.working_pages as usize],
        clock: if looped { written + script.run_pages } else { written },
    };
    if looped {
        pass.over(&script.steps, run.clone(), &mut |_| {});
    }
    let mut found = BackwardWriter::holding(held_bytes, written as usize, NEVER)?;
    pass.over(&script.steps, run, &mut |lifetime| found.push(lifetime));
    pass.over(&script.steps, load, &mut |lifetime| found.push(lifetime));
    found.finish()
}

struct Backward {
    /// The clock at which each page's present copy ends.
    ends: Vec<u64>,
    /// Pages written up to here.
    clock: u64,
}

impl Backward {
    fn over(&mut self, steps: &ScriptSteps, range: Range<usize>, store: &mut impl FnMut(u32)) {
        steps.each_back(range, |step| match step.op {
            Op::Write => {
                for end in self.ends[step.range()].iter_mut().rev() {
                    let lifetime = *end - self.clock;
                    store(u32::try_from(lifetime).unwrap_or(NEVER));
                    *end = self.clock;
                    self.clock -= 1;
                }
            }
            Op::Trim => self.ends[step.range()].fill(self.clock),
            Op::Read | Op::Flush => {}
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::steps::ScriptStep;
    use super::super::steps::tests::steps;
    use super::*;

    fn step(op: Op, first: u32, pages: u32) -> ScriptStep {
        ScriptStep { op, continues: false, first, pages }
    }

    /// Load: 0 1 2. Run: 1, trim of 0..2, 2 0.
    fn script() -> Script {
        let all = [
            step(Op::Write, 0, 3),
            step(Op::Write, 1, 1),
            step(Op::Read, 2, 1),
            step(Op::Trim, 0, 2),
            step(Op::Write, 2, 1),
            step(Op::Write, 0, 1),
        ];
        Script {
            steps: steps(&all, 1),
            load_steps: 1,
            load_pages: 3,
            run_pages: 3,
            working_pages: 3,
            ..Script::default()
        }
    }

    #[test]
    fn a_lifetime_ends_with_the_next_write_or_trim() {
        for held_bytes in [4, 12, 1 << 20] {
            let found = lifetimes(&script(), false, held_bytes).unwrap();
            assert_eq!(found, [3, 2, 2, 0, NEVER, NEVER]);
        }
    }

    /// The next round writes 1 (clock 7), trims 0 and 1, writes 2 (8), 0 (9).
    #[test]
    fn in_a_loop_the_first_follows_the_last() {
        assert_eq!(lifetimes(&script(), true, 8).unwrap(), [3, 2, 2, 0, 3, 1]);
    }
}
