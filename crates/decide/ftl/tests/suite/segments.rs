//! A log that follows the schemes of the registry does as the translation layer does under them.

use cachewright_ftl::separation::{Registered, SeparationVisitor};
use cachewright_ftl::{
    CleaningSchemes, Ftl, FtlError, Geometry, LogSchemes, NoSink, PageWrite, SegmentFacts, Space,
    Stream, reclaim, separation,
};
use cachewright_types::declare::Scheme;
use cachewright_types::{Seed, Value};
use std::collections::{BTreeSet, VecDeque};

const PAGES: u32 = 32;
const SEGMENTS: u32 = 100;
const LOGICAL: u32 = 2200;
const RESERVE: u32 = 4;

fn geometry() -> Geometry {
    let space = Space::Fixed { blocks: SEGMENTS, reserve_blocks: RESERVE, idle_blocks: RESERVE };
    Geometry { logical_pages: LOGICAL, block_pages: PAGES, space }
}

/// A log in memory: the pages of each segment, and where each page lies.
struct ToyLog {
    schemes: Box<dyn LogSchemes>,
    facts: Vec<SegmentFacts>,
    pages: Vec<Vec<u32>>,
    places: Vec<Option<(u32, u32)>>,
    heads: Vec<Option<u32>>,
    free: VecDeque<u32>,
    clock: u64,
    moved: u64,
    /// Streams that took pages of requests.
    user: BTreeSet<u8>,
    moved_to: BTreeSet<u8>,
}

impl ToyLog {
    fn new(schemes: Box<dyn LogSchemes>) -> ToyLog {
        let fact = |id| SegmentFacts { id, ..SegmentFacts::default() };
        ToyLog {
            heads: vec![None; schemes.streams().all as usize],
            schemes,
            facts: (0..SEGMENTS).map(fact).collect(),
            pages: vec![Vec::new(); SEGMENTS as usize],
            places: vec![None; LOGICAL as usize],
            free: (0..SEGMENTS).collect(),
            clock: 0,
            moved: 0,
            user: BTreeSet::new(),
            moved_to: BTreeSet::new(),
        }
    }

    fn valid(&self, id: u32) -> Vec<(u32, u32)> {
        let pages = self.pages[id as usize].iter().zip(0..);
        let lies = |(page, offset): &(u32, u32)| self.places[*page as usize] == Some((id, *offset));
        pages.map(|(page, offset)| (*page, offset)).filter(lies).collect()
    }

    fn append(&mut self, stream: Stream, page: u32) {
        let mut stream = stream.index();
        if self.heads[stream].is_none() && self.free.is_empty() {
            stream = self.heads.iter().rposition(Option::is_some).unwrap();
        }
        let id = self.heads[stream].unwrap_or_else(|| {
            let id = self.free.pop_front().unwrap();
            let life = self.facts[id as usize].life + 1;
            let (stream, opened_at) = (Stream(stream as u8), self.clock);
            let fresh = SegmentFacts { id, life, stream, opened_at, ..SegmentFacts::default() };
            self.facts[id as usize] = fresh;
            id
        });
        self.heads[stream] = Some(id);
        self.places[page as usize] = Some((id, self.pages[id as usize].len() as u32));
        self.pages[id as usize].push(page);
        if self.pages[id as usize].len() == PAGES as usize {
            self.facts[id as usize].sealed = true;
            self.facts[id as usize].sealed_at = self.clock;
            self.heads[stream] = None;
        }
    }

    fn clean(&mut self) {
        for id in 0..SEGMENTS {
            let sealed = self.facts[id as usize].sealed;
            let won = PAGES - self.valid(id).len() as u32;
            self.facts[id as usize].reclaimable = if sealed { won } else { 0 };
        }
        self.schemes.look(&self.facts);
        let victim = self.schemes.choose(self.free.len() as u32, self.clock).unwrap();
        let known = self.facts[victim as usize];
        assert!(known.sealed && known.reclaimable > 0, "{known:?}");
        self.schemes.begin(victim, self.clock);
        for (page, offset) in self.valid(victim) {
            let stream = self.schemes.place_moved(page, offset, self.clock);
            self.moved_to.insert(stream.0);
            self.append(stream, page);
            self.moved += 1;
        }
        self.facts[victim as usize].sealed = false;
        self.pages[victim as usize].clear();
        self.schemes.end(true, self.clock);
        self.free.push_back(victim);
    }

    fn write(&mut self, page: u32) {
        while (self.free.len() as u32) < RESERVE {
            self.clean();
        }
        self.clock += 1;
        let old = self.places[page as usize].take();
        let old = old.map(|(id, offset)| (self.facts[id as usize], offset));
        let live_pages = LOGICAL.into();
        let write = PageWrite { page, clock: self.clock, live_pages, old };
        let stream = self.schemes.place_written(&write);
        self.user.insert(stream.0);
        self.append(stream, page);
    }
}

/// Pages of which a tenth gets nine of ten writes.
fn writes(seed: u64) -> Vec<u32> {
    let mut rng = Seed(seed).derive("writes").rng();
    let fill = 0..LOGICAL;
    let mut page = |write: u32| match write % 10 {
        0 => rng.below(LOGICAL.into()) as u32,
        _ => rng.below(u64::from(LOGICAL) / 10) as u32,
    };
    let over: Vec<u32> = (0..30 * LOGICAL).map(&mut page).collect();
    fill.chain(over).collect()
}

struct Translated<'a>(&'a str, &'a [u32]);

impl SeparationVisitor for Translated<'_> {
    type Output = Result<f64, FtlError>;

    fn visit<S: Registered>(self, settings: S::Settings) -> Self::Output {
        let scheme = S::new(&geometry(), &settings, Seed(1).derive("separation"));
        let reclaim = reclaim::by_name(self.0, &[], &geometry(), Seed(1).derive("reclaim"))?;
        let mut ftl = Ftl::new(geometry(), scheme, reclaim)?;
        for page in self.1 {
            ftl.write_request(*page, 1, &mut NoSink)?;
        }
        Ok(ftl.counts().write_amplification())
    }
}

#[test]
fn a_log_moves_as_many_pages_as_the_translation_layer() {
    let writes = writes(7);
    for entry in separation::entries() {
        for policy in reclaim::entries() {
            let schemes = CleaningSchemes {
                separation: Scheme::named(entry.name),
                reclaim: Scheme::named(policy.name),
                seed: Seed(1),
            };
            let Ok(made) = schemes.make(geometry()) else { continue };
            let mut log = ToyLog::new(made);
            writes.iter().for_each(|page| log.write(*page));
            log.schemes.audit().unwrap();
            let name = format!("{} with {}", entry.name, policy.name);
            let streams = log.schemes.streams();
            let used = [&log.user, &log.moved_to].map(|streams| streams.len() as u32);
            assert!(used[0] <= streams.user && used[1] <= streams.moved, "{name}: {used:?}");
            let found = 1.0 + log.moved as f64 / log.clock as f64;
            let expected = separation::visit(entry.name, &[], Translated(policy.name, &writes));
            let expected = expected.unwrap().unwrap();
            let ratio = found / expected;
            // A log never cleans a segment of which nothing is won; fifo in a drive does.
            let lowest = if policy.name == "fifo" { 0.8 } else { 0.95 };
            assert!((lowest..1.05).contains(&ratio), "{name}: {found:.3}, layer {expected:.3}");
        }
    }
}

#[test]
fn a_segment_that_was_given_up_is_not_chosen_while_it_must_not_be() {
    let mut schemes = CleaningSchemes::default().make(geometry()).unwrap();
    let fact = |id, reclaimable| SegmentFacts {
        id,
        life: 1,
        sealed: true,
        sealed_at: 9,
        reclaimable,
        ..SegmentFacts::default()
    };
    schemes.look(&[fact(0, 5), fact(1, 9)]);
    assert_eq!(schemes.choose(3, 10), Some(1));
    schemes.begin(1, 10);
    schemes.look(&[fact(0, 5), fact(1, 9)]);
    assert_eq!(schemes.choose(3, 10), Some(0), "the other is being cleaned");
    schemes.end(false, 10);
    schemes.look(&[fact(0, 5), fact(1, 0)]);
    assert_eq!(schemes.choose(3, 10), Some(0), "it wins nothing");
    schemes.look(&[fact(0, 0), fact(1, 0)]);
    assert_eq!(schemes.choose(3, 10), None);
    schemes.look(&[fact(0, 0), fact(1, 2)]);
    assert_eq!(schemes.choose(3, 10), Some(1), "it may be cleaned again");
    schemes.audit().unwrap();
}

#[test]
fn what_a_log_does_not_have_is_refused() {
    let with = |separation: Scheme| {
        let schemes = CleaningSchemes { separation, ..CleaningSchemes::default() };
        let streams = schemes.streams().map(|streams| (streams.all, streams.user, streams.moved));
        streams.map_err(|error| error.to_string())
    };
    assert_eq!(with(Scheme::named("2r")), Ok((2, 1, 1)));
    assert_eq!(with(Scheme::named("sepbit")), Ok((6, 2, 6)));
    let expected = ", expected a separation that a log can follow";
    assert_eq!(
        with(Scheme::named("fk")).unwrap_err(),
        format!("found `fk`, which needs the future{expected}")
    );
    let mut sepbit = Scheme::named("sepbit");
    sepbit.pairs.push(("meta_share".to_owned(), Value::Float(0.001)));
    assert_eq!(
        with(sepbit).unwrap_err(),
        format!("found `sepbit`, which needs pages of metadata in flash{expected}")
    );
}
