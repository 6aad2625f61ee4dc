//! ReCA answers each access as lists that are searched from end to end do.
#![allow(clippy::unwrap_used)] // a failed test may panic

use cachewright_policy::registry::boxed;
use cachewright_policy::{Access, RequestInfo, Verdict};
use cachewright_types::{BlockId, Rng, Seed, Value};

const KIB: u64 = 1 << 10;

/// The cache as one list of (block, class of its last request, last access), and every request.
struct Lists {
    capacity: usize,
    window: usize,
    stale_after: f64,
    held: Vec<(u32, &'static str, usize)>,
    requests: Vec<(u64, u64)>,
    classes: Vec<&'static str>,
    now: usize,
}

impl Lists {
    fn on_request(&mut self, start: u64, length: u64) {
        let end = start + length;
        let near = self.requests.iter().rev().take(128);
        let any = |test: &dyn Fn(u64, u64) -> bool| near.clone().any(|&(s, e)| test(s, e));
        let class = if length > 64 * KIB || any(&|s, e| start == e || end == s) {
            "sequential"
        } else if any(&|s, e| start < e && s < end) {
            "overlapped"
        } else if any(&|s, e| {
            start >= e && start - e <= 64 * KIB || s >= end && s - end <= 64 * KIB
        }) {
            "strided"
        } else {
            "random"
        };
        self.requests.push((start, end));
        self.classes.push(class);
    }

    /// The classes of what runs, the one whose blocks leave first last, and how many come in.
    fn order(&self) -> ([&'static str; 4], usize) {
        let whole = (self.classes.len() - 1) / self.window;
        let last = match whole {
            0 => &[][..],
            _ => &self.classes[(whole - 1) * self.window..whole * self.window],
        };
        let rules =
            |class: &str| 2 * last.iter().filter(|seen| **seen == class).count() > self.window;
        if rules("sequential") {
            (["random", "overlapped", "strided", "sequential"], 3)
        } else if rules("overlapped") {
            (["overlapped", "random", "strided", "sequential"], 4)
        } else if rules("strided") {
            (["overlapped", "strided", "random", "sequential"], 3)
        } else {
            (["overlapped", "random", "strided", "sequential"], 3)
        }
    }

    fn access(&mut self, block: u32) -> Verdict {
        self.now += 1;
        let class = *self.classes.last().unwrap();
        if let Some(held) = self.held.iter_mut().find(|held| held.0 == block) {
            *held = (block, class, self.now);
            return Verdict::Hit;
        }
        let (order, admitted) = self.order();
        if !order[..admitted].contains(&class) {
            return Verdict::Bypass;
        }
        let mut evicted = None;
        if self.held.len() == self.capacity {
            let oldest = self.held.iter().min_by_key(|held| held.2).unwrap();
            let stale = (self.now - oldest.2) as f64 > self.capacity as f64 * self.stale_after;
            let place = |class: &str| order.iter().position(|one| *one == class);
            let least = |held: &&(u32, &str, usize)| (std::cmp::Reverse(place(held.1)), held.2);
            let victim = if stale { oldest } else { self.held.iter().min_by_key(least).unwrap() };
            let victim = victim.0;
            self.held.retain(|held| held.0 != victim);
            evicted = Some(BlockId(victim));
        }
        self.held.push((block, class, self.now));
        Verdict::Admit { evicted }
    }
}

/// First block and blocks of a request: streams, what was asked for before, near it, anywhere.
fn request(rng: &mut Rng, phase: u64, last: &mut (u64, u64)) -> (u64, u64) {
    let kind = if rng.below(3) == 0 { rng.below(4) } else { phase };
    let blocks = 1 + rng.below(3);
    *last = match kind {
        0 => (last.0 + last.1, blocks),
        1 => (last.0, last.1),
        2 => (last.0 + last.1 + 2 + rng.below(6), blocks),
        _ => (rng.below(400), blocks),
    };
    last.0 %= 400;
    *last
}

#[test]
fn it_is_lists_by_class() {
    for (capacity, window, stale_after) in
        [(1, 7, 2.0), (5, 20, 2.0), (30, 50, 0.5), (60, 10, 4.0), (200, 100, 1.0)]
    {
        let pairs = [
            ("window".to_owned(), Value::Int(window as i64)),
            ("stale_after".to_owned(), Value::Float(stale_after)),
        ];
        let mut policy = boxed("reca", &pairs, capacity as u32, Seed(0)).unwrap();
        policy.reserve_ids(410);
        let (held, requests, classes) = (Vec::new(), Vec::new(), Vec::new());
        let mut lists = Lists { capacity, window, stale_after, held, requests, classes, now: 0 };
        let (mut rng, mut last, mut evictions) = (Seed(capacity as u64).rng(), (0, 1), 0);
        for number in 0..6_000 {
            let (first, blocks) = request(&mut rng, number / 300 % 4, &mut last);
            // Blocks of a mebibyte's space each tenth, so that not everything is near.
            let place = |block: u64| block / 10 * KIB * KIB + block % 10 * 4 * KIB;
            let (start, length) = (place(first), blocks * 4 * KIB);
            policy.on_request(&RequestInfo { offset: start, length, ..RequestInfo::default() });
            lists.on_request(start, length);
            for block in first..first + blocks {
                let verdict = policy.access(Access::read(BlockId(block as u32)));
                let words = format!("{capacity} blocks, request {number}, block {block}");
                assert_eq!(verdict, lists.access(block as u32), "{words}");
                evictions += u32::from(matches!(verdict, Verdict::Admit { evicted: Some(_) }));
            }
            if number % 101 == 0 {
                assert_eq!(policy.audit(), Ok(()), "{capacity} blocks, request {number}");
            }
        }
        assert!(evictions > 100, "{evictions} evictions of {capacity} blocks");
    }
}
