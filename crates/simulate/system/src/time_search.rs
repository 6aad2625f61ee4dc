//! Where many times lie in a recording, one after another.
//!
//! For: the ends of intervals and windows of a long recording. Must never know: what ends there.
//! Units: nanoseconds. A binary search per time would load all of a column in a scratch file; this
//! one goes forward and gives back what it has passed, so that memory does not grow with requests.

use crate::recording::Recording;

/// Requests looked at together.
const PIECE: usize = 1 << 20;

/// Finds positions of times that never fall.
pub(crate) struct TimeSearch<'a> {
    recording: &'a Recording,
    /// Requests per piece.
    piece: usize,
    /// Requests that are before every time asked for from now on.
    passed: usize,
}

impl<'a> TimeSearch<'a> {
    pub(crate) fn new(recording: &'a Recording) -> TimeSearch<'a> {
        TimeSearch { recording, piece: PIECE, passed: 0 }
    }

    /// As [`Recording::position_at`], for a time that is not before the one asked for last.
    pub(crate) fn position_at(&mut self, time_ns: u64) -> usize {
        let times = self.recording.times_ns();
        loop {
            let end = (self.passed + self.piece).min(times.len());
            let piece = &times[self.passed..end];
            if piece.last().is_none_or(|last| *last >= time_ns) {
                let request = self.passed + piece.partition_point(|time| *time < time_ns);
                return self.recording.start_of(request);
            }
            self.release(end);
            self.passed = end;
        }
    }

    /// Gives back the requests from those that are passed up to `end`.
    fn release(&self, end: usize) {
        self.recording.arrivals.release(self.passed..end);
    }
}

impl Drop for TimeSearch<'_> {
    fn drop(&mut self) {
        self.release(self.passed + self.piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrivals::Arrivals;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_finds_what_a_binary_search_finds(
            mut times in prop::collection::vec(0_u64..60, 0..80),
            mut asked in prop::collection::vec(0_u64..70, 1..40),
            lengths in prop::collection::vec(1_u32..4, 80),
            piece in 1_usize..20,
            whole: bool,
        ) {
            times.sort_unstable();
            asked.sort_unstable();
            let starts: Vec<u32> = lengths
                .iter()
                .scan(0, |next, length| Some(std::mem::replace(next, *next + length)))
                .take(times.len())
                .collect();
            let blocks: u32 = lengths.iter().take(times.len()).sum();
            let blocks = if whole { times.len() } else { blocks as usize };
            let starts = if whole { Vec::new() } else { starts };
            let recording = Recording {
                ids: vec![0; blocks].into(),
                arrivals: Arrivals::new(times.into(), starts.into()),
                ..Recording::default()
            };
            let mut search = TimeSearch { piece, ..TimeSearch::new(&recording) };
            for time_ns in asked {
                prop_assert_eq!(search.position_at(time_ns), recording.position_at(time_ns));
            }
        }
    }
}
