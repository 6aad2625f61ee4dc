//! Logical pages that recycle: a number is given at a page's first write and freed by its trim.
//!
//! For: a drive as large as the most pages that are live at once, on which traces that trim (file
//! systems, log-structured stores) reach many drive writes. Must never know: separations, flash.
//! Units: pages. Invariants: live pages have different numbers below the peak; a page keeps its
//! number while it is live; where nothing is trimmed every page has the number it had before. A
//! page joins its lower neighbour if the number after that is free, so that requests stay whole and
//! areas stay together. Memory: 8 bytes per page ever written, 12 per step.

use super::script::Script;
use super::steps::{ScriptStep, StepWriter};
use cachewright_types::Op;
use std::io;
use std::ops::Range;

/// A page that is not live.
const NONE: u32 = u32::MAX;

/// The most pages live at once in load and run; in a `looped` run also in the rounds that follow,
/// which begin with what the one before them left.
pub fn peak(script: &Script, looped: bool) -> u32 {
    let mut live = vec![false; script.working_pages as usize];
    let (mut count, mut peak) = (0_u32, 0_u32);
    let mut visit = |step: ScriptStep| {
        let on = match step.op {
            Op::Write => true,
            Op::Trim => false,
            Op::Read | Op::Flush => return,
        };
        for page in &mut live[step.range()] {
            count = count + u32::from(on & !*page) - u32::from(!on & *page);
            *page = on;
        }
        peak = peak.max(count);
    };
    let end = script.steps.len();
    script.steps.each(0..end, &mut visit);
    if looped {
        // Which pages are live at the end is the same from the second round on.
        script.steps.each(script.load_steps..end, &mut visit);
    }
    peak
}

/// The script with numbers below `peak` that recycle. The run is repeated until it wrote
/// `run_pages`, because what a repetition finds live is not what the first round found. Errors: no
/// place for a scratch file.
pub fn recycled(script: Script, peak: u32, run_pages: u64) -> io::Result<Script> {
    let mut numbers = LiveNumbers {
        numbers: vec![NONE; script.working_pages as usize],
        free: FreeSet::full(peak),
        peak,
        steps: StepWriter::default(),
        written: 0,
        failure: None,
    };
    let run = script.load_steps..script.steps.len();
    script.steps.each(0..script.load_steps, |step| numbers.step(&step));
    let (load_steps, end) = (numbers.steps.len(), numbers.written + run_pages);
    while numbers.written < end && numbers.failure.is_none() {
        script.steps.each(run.clone(), |step| numbers.step(&step));
    }
    let run_pages = numbers.written - script.load_pages;
    let steps = numbers.failure.map_or_else(|| numbers.steps.finish(), Err)?;
    Ok(Script { steps, load_steps, run_pages, working_pages: peak, ..script })
}

/// LiveNumbers in use and the steps that use them.
struct LiveNumbers {
    /// The number of each page, [`NONE`] if it is not live.
    numbers: Vec<u32>,
    free: FreeSet,
    peak: u32,
    steps: StepWriter,
    written: u64,
    /// Why a step could not be kept.
    failure: Option<io::Error>,
}

impl LiveNumbers {
    /// Appends a step in new numbers: several where they do not follow one another, none for reads
    /// and trims of nothing live.
    fn step(&mut self, step: &ScriptStep) {
        let Range { start, end } = step.range();
        let mut run: Option<(u32, u32)> = None;
        let mut continues = step.continues;
        for page in start..end {
            let number = match step.op {
                Op::Write => self.place(page),
                Op::Trim => self.drop(page),
                Op::Read | Op::Flush => self.numbers[page],
            };
            if number == NONE {
                continue;
            }
            match &mut run {
                Some((first, pages)) if *first + *pages == number => *pages += 1,
                _ => {
                    continues |= self.flush(step.op, run, continues);
                    run = Some((number, 1));
                }
            }
        }
        self.flush(step.op, run, continues);
    }

    /// Appends one run of numbers; whether there was one.
    fn flush(&mut self, op: Op, run: Option<(u32, u32)>, continues: bool) -> bool {
        let Some((first, pages)) = run else { return false };
        if self.failure.is_none() {
            self.failure = self.steps.push(ScriptStep { op, continues, first, pages }).err();
        }
        true
    }

    /// The number of a page that is written.
    fn place(&mut self, page: usize) -> u32 {
        self.written += 1;
        if self.numbers[page] != NONE {
            return self.numbers[page];
        }
        let below = page.checked_sub(1).map_or(NONE, |below| self.numbers[below]);
        let wanted = if below == NONE { page as u32 } else { below + 1 } % self.peak;
        // One is free: the peak counts this page.
        let number = self.free.next(wanted).or_else(|| self.free.next(0)).unwrap_or(wanted);
        self.free.set(number, false);
        self.numbers[page] = number;
        number
    }

    /// The number that a trimmed page had.
    fn drop(&mut self, page: usize) -> u32 {
        let number = std::mem::replace(&mut self.numbers[page], NONE);
        if number != NONE {
            self.free.set(number, true);
        }
        number
    }
}

/// A set of numbers that finds the next one at or after another: bits, and bits over their words.
struct FreeSet {
    /// The numbers first; then each level has a bit per word of the one before.
    levels: Vec<Vec<u64>>,
}

impl FreeSet {
    /// All numbers below `count`.
    fn full(count: u32) -> FreeSet {
        let mut levels = Vec::new();
        let mut bits = count as usize;
        loop {
            let mut level = vec![u64::MAX; bits / 64];
            if !bits.is_multiple_of(64) {
                level.push((1 << (bits % 64)) - 1);
            }
            bits = level.len();
            levels.push(level);
            if bits <= 1 {
                return FreeSet { levels };
            }
        }
    }

    fn set(&mut self, number: u32, free: bool) {
        let mut index = number as usize;
        let mut any = free;
        for level in &mut self.levels {
            let (word, bit) = (&mut level[index / 64], 1 << (index % 64));
            *word = if any { *word | bit } else { *word & !bit };
            any = *word != 0;
            index /= 64;
        }
    }

    /// The least number in the set that is not below `from`.
    fn next(&self, from: u32) -> Option<u32> {
        let mut index = from as usize;
        for (height, level) in self.levels.iter().enumerate() {
            let word = level.get(index / 64)? & (u64::MAX << (index % 64));
            if word != 0 {
                let mut found = index / 64 * 64 + word.trailing_zeros() as usize;
                for level in self.levels[..height].iter().rev() {
                    found = found * 64 + level[found].trailing_zeros() as usize;
                }
                return Some(found as u32);
            }
            index = index / 64 + 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::steps::tests::{listed, steps as written};
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    fn step(op: Op, first: u32, pages: u32) -> ScriptStep {
        ScriptStep { op, continues: false, first, pages }
    }

    /// Steps in words: the operation, small where it goes on, first page and number of pages.
    fn spelled(words: &str) -> Vec<ScriptStep> {
        let read = |word: &str| {
            let op = match word.as_bytes()[0].to_ascii_uppercase() {
                b'R' => Op::Read,
                b'W' => Op::Write,
                _ => Op::Trim,
            };
            let (first, pages) = word[1..].split_once('+').unwrap();
            let continues = word.as_bytes()[0].is_ascii_lowercase();
            ScriptStep {
                op,
                continues,
                first: first.parse().unwrap(),
                pages: pages.parse().unwrap(),
            }
        };
        words.split_whitespace().map(read).collect()
    }

    fn script(steps: Vec<ScriptStep>, load_steps: usize, working_pages: u32) -> Script {
        let writes = |steps: &[ScriptStep]| {
            let writes = steps.iter().filter(|step| step.op == Op::Write);
            writes.map(|step| u64::from(step.pages)).sum()
        };
        let (load_pages, run_pages) = (writes(&steps[..load_steps]), writes(&steps[load_steps..]));
        let steps = written(&steps, 40);
        Script { steps, load_steps, load_pages, run_pages, working_pages, ..Script::default() }
    }

    /// Pages 0 to 3, 1 and 2 trimmed, 4 to 6 written: 4 follows 3, then 1 and 2 are given again.
    #[test]
    fn trimmed_numbers_are_given_again() {
        let plain = script(spelled("W0+4 T1+2 R0+4 W4+3 T1+2 T3+3"), 1, 7);
        assert_eq!(peak(&plain, false), 5);
        let found = recycled(plain, 5, 3).unwrap();
        assert_eq!(listed(&found.steps), spelled("W0+4 T1+2 R0+1 r3+1 W4+1 w1+2 T3+2 t1+1"));
        assert_eq!((found.load_steps, found.load_pages, found.run_pages), (1, 4, 3));
        assert_eq!(found.working_pages, 5);
    }

    /// The first round leaves 2 live beside 0, so the second needs three numbers.
    #[test]
    fn a_repetition_begins_with_what_the_round_before_left() {
        let plain = script(spelled("W0+1 W1+1 T1+1 W2+1"), 1, 3);
        assert_eq!([peak(&plain, false), peak(&plain, true)], [2, 3]);
        let found = recycled(plain, 3, 3).unwrap();
        assert_eq!((found.run_pages, found.steps.len()), (4, 7));
    }

    fn steps(trims: bool) -> impl Strategy<Value = Vec<ScriptStep>> {
        let op = prop_oneof![Just(Op::Write), Just(Op::Write), Just(Op::Trim)];
        let one = (op, 0_u32..200, 1_u32..20).prop_map(move |(op, first, pages)| {
            step(if trims { op } else { Op::Write }, first, pages)
        });
        prop::collection::vec(one, 1..80)
    }

    proptest! {
        /// Exactly the old numbers where nothing is trimmed.
        #[test]
        fn without_trims_nothing_changes(steps in steps(false)) {
            let mut written = BTreeSet::new();
            for step in &steps {
                written.extend(step.range());
            }
            // Dense first, as the script's pages are.
            let rank: BTreeMap<usize, u32> =
                written.iter().zip(0..).map(|(page, rank)| (*page, rank)).collect();
            let dense: Vec<ScriptStep> = steps
                .iter()
                .map(|one| step(Op::Write, rank[&one.range().start], one.pages))
                .collect();
            let plain = script(dense.clone(), 0, written.len() as u32);
            let peak = peak(&plain, true);
            prop_assert_eq!(peak as usize, written.len());
            let run_pages = plain.run_pages;
            let found = recycled(plain, peak, run_pages).unwrap();
            prop_assert_eq!(listed(&found.steps), dense);
        }

        /// Live pages have numbers of their own below the peak, kept until their trim, and the
        /// peak is reached; no page of the host is lost.
        #[test]
        fn live_pages_never_share_a_number(steps in steps(true), looped: bool) {
            let plain = script(steps.clone(), 0, 220);
            prop_assume!(plain.run_pages > 0);
            let peak = peak(&plain, looped);
            let rounds = if looped { 3 } else { 1 };
            let found = recycled(plain.clone(), peak, rounds * plain.run_pages).unwrap();
            let pieces = listed(&found.steps);
            prop_assert_eq!(found.run_pages, rounds * plain.run_pages);
            let mut live: BTreeMap<usize, u32> = BTreeMap::new();
            let (mut most, mut at) = (0, 0);
            for one in steps.iter().cycle().take(rounds as usize * steps.len()) {
                let mut numbers = Vec::new();
                let due = one.range().filter(|page| one.op == Op::Write || live.contains_key(page));
                let due: Vec<usize> = due.collect();
                while numbers.len() < due.len() {
                    let piece = &pieces[at];
                    prop_assert_eq!((piece.op, piece.continues), (one.op, !numbers.is_empty()));
                    numbers.extend(piece.first..piece.first + piece.pages);
                    at += 1;
                }
                prop_assert_eq!(numbers.len(), due.len());
                for (page, number) in due.into_iter().zip(numbers) {
                    prop_assert!(number < peak);
                    match (one.op, live.get(&page)) {
                        (_, Some(kept)) => prop_assert_eq!(*kept, number),
                        _ => prop_assert!(!live.values().any(|taken| *taken == number)),
                    }
                    if one.op == Op::Write {
                        live.insert(page, number);
                    } else {
                        live.remove(&page);
                    }
                }
                most = most.max(live.len());
            }
            prop_assert_eq!(at, found.steps.len());
            prop_assert_eq!(most, peak as usize);
        }
    }
}
