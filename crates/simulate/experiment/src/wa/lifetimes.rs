//! How long each written page lives: the future, known before the run.
//!
//! For: schemes that need it, and the distribution per stream. Must never know: schemes. Units:
//! pages written by the host; a lifetime ends with the next write of the page or its trim, and is
//! [`NEVER`] if neither comes. One backward pass; 8 bytes per logical page meanwhile.

use super::script::{Script, Step};
use cachewright_ftl::NEVER;
use cachewright_types::Op;

/// The lifetime of each page written by load and run, in order. When the run is `looped`, what it
/// does first follows what it does last.
pub fn lifetimes(script: &Script, looped: bool) -> Vec<u32> {
    let (load, run) = script.steps.split_at(script.load_steps);
    let written = script.load_pages + script.run_pages;
    let mut pass = Backward {
        ends: vec![u64::MAX; script.working_pages as usize],
        clock: if looped { written + script.run_pages } else { written },
    };
    if looped {
        pass.over(run, &mut |_, _| {});
    }
    let mut found = vec![NEVER; written as usize];
    let mut store = |clock: u64, lifetime| found[clock as usize - 1] = lifetime;
    pass.over(run, &mut store);
    pass.over(load, &mut store);
    found
}

struct Backward {
    /// The clock at which each page's present copy ends.
    ends: Vec<u64>,
    /// Pages written up to here.
    clock: u64,
}

impl Backward {
    fn over(&mut self, steps: &[Step], store: &mut impl FnMut(u64, u32)) {
        for step in steps.iter().rev() {
            match step.op {
                Op::Write => {
                    for end in self.ends[step.range()].iter_mut().rev() {
                        let lifetime = *end - self.clock;
                        store(self.clock, u32::try_from(lifetime).unwrap_or(NEVER));
                        *end = self.clock;
                        self.clock -= 1;
                    }
                }
                Op::Trim => self.ends[step.range()].fill(self.clock),
                Op::Read | Op::Flush => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(op: Op, first: u32, pages: u32) -> Step {
        Step { op, continues: false, first, pages }
    }

    /// Load: 0 1 2. Run: 1, trim of 0..2, 2 0.
    fn script() -> Script {
        Script {
            steps: vec![
                step(Op::Write, 0, 3),
                step(Op::Write, 1, 1),
                step(Op::Read, 2, 1),
                step(Op::Trim, 0, 2),
                step(Op::Write, 2, 1),
                step(Op::Write, 0, 1),
            ],
            load_steps: 1,
            load_pages: 3,
            run_pages: 3,
            working_pages: 3,
            ..Script::default()
        }
    }

    #[test]
    fn a_lifetime_ends_with_the_next_write_or_trim() {
        assert_eq!(lifetimes(&script(), false), [3, 2, 2, 0, NEVER, NEVER]);
    }

    /// The next round writes 1 (clock 7), trims 0 and 1, writes 2 (8), 0 (9).
    #[test]
    fn in_a_loop_the_first_follows_the_last() {
        assert_eq!(lifetimes(&script(), true), [3, 2, 2, 0, 3, 1]);
    }
}
