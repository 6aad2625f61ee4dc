//! The schemes of a log whose owner keeps the segments itself.
//!
//! For: a live log, which knows where its blocks lie and asks two things: the stream of a page, and
//! the segment to clean. Must never know: bytes, devices, records, why a segment may not be
//! cleaned. A segment stands for a superblock. Units: pages, which are blocks of the log; moments
//! on the clock of pages that are written, not moved. The owner tells what its segments are before
//! each choice ([`LogSchemes::look`]). Until then a scheme sees those of the last look. Memory:
//! that of the schemes, and about 80 bytes per segment.

use crate::reclaim::{self, Named, Round};
use crate::registry::Need;
use crate::separation::{
    self, HostRequest, Invalidated, MovedPage, Registered, Separation, SeparationVisitor, Stream,
    VictimSource, Write,
};
use crate::superblocks::{Block, Superblocks};
use crate::{FtlError, Geometry, NEVER};
use cachewright_types::Seed;
use cachewright_types::declare::Scheme;

/// Which schemes a log follows.
#[derive(Clone, Debug, PartialEq)]
pub struct CleaningSchemes {
    /// The scheme that gives each page its stream.
    pub separation: Scheme,
    /// The policy that chooses victims.
    pub reclaim: Scheme,
    /// The root of their randomness.
    pub seed: Seed,
}

impl Default for CleaningSchemes {
    /// Moved pages apart from written ones, and the least work first.
    fn default() -> CleaningSchemes {
        let (separation, reclaim) = (Scheme::named("2r"), Scheme::named("greedy"));
        CleaningSchemes { separation, reclaim, seed: Seed(0) }
    }
}

/// A segment, as the log knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentFacts {
    /// Its index.
    pub id: u32,
    /// How often it was begun: it tells lives of one index apart.
    pub life: u64,
    /// The stream that filled it.
    pub stream: Stream,
    /// Whether it is full and closed.
    pub sealed: bool,
    /// The clock when it was begun.
    pub opened_at: u64,
    /// The clock when it was full.
    pub sealed_at: u64,
    /// Pages that cleaning it wins; 0 if it must not be cleaned.
    pub reclaimable: u32,
}

/// How many streams a separation has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamCounts {
    /// All of them, 1 to 64.
    pub all: u32,
    /// Those to which pages of requests may go.
    pub user: u32,
    /// Those to which moved pages may go.
    pub moved: u32,
}

/// A page that a request writes or fills.
#[derive(Clone, Copy, Debug)]
pub struct PageWrite {
    /// The name of the page.
    pub page: u32,
    /// The clock, with this write counted.
    pub clock: u64,
    /// Pages of the log that are live.
    pub live_pages: u64,
    /// The segment of the copy that it replaces, and the copy's offset.
    pub old: Option<(SegmentFacts, u32)>,
}

/// What a log asks of its schemes. Names of pages beyond the geometry are taken modulo its pages.
pub trait LogSchemes: Send {
    /// The streams.
    fn streams(&self) -> StreamCounts;

    /// The stream of a page that a request writes or fills.
    fn place_written(&mut self, write: &PageWrite) -> Stream;

    /// A page has left, and its copy is void.
    fn note_left(&mut self, page: u32, copy: (SegmentFacts, u32), clock: u64);

    /// The stream of a valid page of the segment that is being cleaned.
    fn place_moved(&mut self, page: u32, offset: u32, clock: u64) -> Stream;

    /// What all segments are now, each once and in the order of their indices.
    fn look(&mut self, segments: &[SegmentFacts]);

    /// The segment to be cleaned next, while so many are free. If any may be cleaned, one is
    /// chosen; it may be cleaned.
    fn choose(&mut self, free: u32, clock: u64) -> Option<u32>;

    /// A segment of the last look is about to be cleaned.
    fn begin(&mut self, segment: u32, clock: u64);

    /// The segment that was being cleaned is empty; or it was given up and stays as it is.
    fn end(&mut self, is_empty: bool, clock: u64);

    /// Checks every invariant, slowly.
    fn audit(&self) -> Result<(), String>;
}

impl CleaningSchemes {
    /// The schemes, for a log of this size. Errors: an unknown scheme or setting; a separation that
    /// needs a model or the future, or keeps metadata in flash: a log has none of them.
    pub fn make(&self, geometry: Geometry) -> Result<Box<dyn LogSchemes>, FtlError> {
        let Scheme { name, pairs } = &self.separation;
        let needs = separation::entry(name)?.needs;
        let lacks = needs.iter().map(|need| match need {
            Need::Future => "the future",
            Need::Model => "a trained model",
        });
        if let Some(what) = lacks.into_iter().next() {
            return Err(FtlError::InLog { separation: name.clone(), what });
        }
        let (seed, policy) = (self.seed.derive("reclaim"), &self.reclaim);
        let reclaim = reclaim::by_name(&policy.name, &policy.pairs, &geometry, seed)?;
        let seed = self.seed.derive("separation");
        separation::visit(name, pairs, Making { geometry, seed, reclaim })?
    }

    /// The streams of the separation. Errors: as of [`CleaningSchemes::make`].
    pub fn streams(&self) -> Result<StreamCounts, FtlError> {
        Ok(self.make(Geometry::with_over_provisioning(64, 16, 1.0, 2))?.streams())
    }
}

struct Making {
    geometry: Geometry,
    seed: Seed,
    reclaim: Named,
}

impl SeparationVisitor for Making {
    type Output = Result<Box<dyn LogSchemes>, FtlError>;

    fn visit<S: Registered>(self, settings: S::Settings) -> Self::Output {
        let Making { geometry, seed, mut reclaim } = self;
        let mut separation = S::new(&geometry, &settings, seed);
        if separation.meta_pages() > 0 || separation.meta_part() > 0.0 {
            let (separation, what) = (S::ENTRY.name.to_owned(), "pages of metadata in flash");
            return Err(FtlError::InLog { separation, what });
        }
        separation.on_reclaim(&reclaim);
        reclaim.policy.prepare(geometry.block_pages);
        let order = reclaim.policy.order(MIN_INVALID);
        let blocks = Superblocks::new(geometry.block_pages, order);
        let (listed, victim) = (Vec::new(), None);
        Ok(Box::new(SchemesOf { separation, reclaim, geometry, blocks, listed, victim }))
    }
}

/// Invalid pages that a segment must have to be cleaned: others are of no use.
const MIN_INVALID: u32 = 1;

/// What stands in the lists of sealed segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Listed {
    life: u64,
    /// Whether it may be cleaned.
    allowed: bool,
}

/// The schemes of a log under one separation.
struct SchemesOf<S> {
    separation: S,
    reclaim: Named,
    geometry: Geometry,
    /// Sealed segments; all others are free in it.
    blocks: Superblocks,
    /// Those that stand in lists, by index.
    listed: Vec<Option<Listed>>,
    /// The segment that is being cleaned, which is in no list.
    victim: Option<Block>,
}

impl<S: Separation> SchemesOf<S> {
    fn page(&self, page: u32) -> u32 {
        page % self.geometry.logical_pages.max(1)
    }

    fn within(&self, stream: Stream) -> Stream {
        Stream(stream.0.min((self.separation.streams() - 1) as u8))
    }

    /// A segment as schemes see it: groups that a scheme has merged count.
    fn block(&self, facts: &SegmentFacts) -> Block {
        let known = self.listed.get(facts.id as usize).copied().flatten();
        if known.is_some_and(|known| known.life == facts.life) {
            return self.blocks.get(facts.id);
        }
        let pages = self.geometry.block_pages;
        Block {
            id: facts.id,
            stream: self.within(facts.stream),
            sealed: facts.sealed,
            pages,
            invalid: facts.reclaimable.min(pages),
            opened_at: facts.opened_at,
            sealed_at: facts.sealed_at,
            number: facts.life,
            erases: 0,
        }
    }

    fn invalidate(&mut self, page: u32, copy: (SegmentFacts, u32), clock: u64, trimmed: bool) {
        let (facts, offset) = copy;
        let block = &self.block(&facts);
        let offset = offset.min(self.geometry.block_pages - 1);
        self.separation.on_invalidate(&Invalidated { page, offset, block, clock, trimmed });
    }

    /// Takes a segment out of all lists.
    fn unlist(&mut self, id: u32) {
        if self.listed[id as usize].take().is_some() {
            self.blocks.withdraw(id);
            self.blocks.erase(id);
        }
    }

    /// A sealed segment that was not known is listed.
    fn list(&mut self, facts: &SegmentFacts) {
        let (id, pages) = (facts.id, self.geometry.block_pages);
        self.blocks.open(id, self.within(facts.stream), facts.opened_at);
        self.blocks.waste(id, facts.reclaimable.min(pages));
        self.blocks.seal(id, facts.sealed_at);
        let allowed = facts.reclaimable > 0;
        self.listed[id as usize] = Some(Listed { life: facts.life, allowed });
        self.separation.on_seal(&self.blocks.get(id));
    }

    fn is_allowed(&self, id: u32) -> bool {
        let known = self.listed.get(id as usize).copied().flatten();
        known.is_some_and(|known| known.allowed)
    }

    /// The choice of the schemes; nothing if it must not be cleaned.
    fn chosen(&mut self, free: u32, clock: u64) -> Option<u32> {
        let streams = match self.separation.choose_victim(&mut self.blocks, free, clock) {
            VictimSource::Block(block) if self.is_allowed(block) => return Some(block),
            VictimSource::Among(streams) => streams,
            VictimSource::Any | VictimSource::Block(_) => u64::MAX,
        };
        self.blocks.settle();
        let (blocks, min_invalid) = (&self.blocks, MIN_INVALID);
        let short_lived = self.separation.short_lived();
        let round = Round { blocks, clock, streams, min_invalid, short_lived };
        let policy = &mut self.reclaim.policy;
        let mut found = policy.choose(&round);
        if found.is_none() && streams != u64::MAX {
            found = policy.choose(&Round { streams: u64::MAX, ..round });
        }
        found.filter(|id| self.is_allowed(*id))
    }
}

impl<S: Separation> LogSchemes for SchemesOf<S> {
    fn streams(&self) -> StreamCounts {
        let separation = &self.separation;
        let [all, user, moved] =
            [separation.streams(), separation.user_streams(), separation.moved_streams()];
        StreamCounts { all, user, moved }
    }

    fn place_written(&mut self, write: &PageWrite) -> Stream {
        let PageWrite { clock, live_pages, old, .. } = *write;
        let page = self.page(write.page);
        let request = HostRequest { first_page: page, pages: 1, write: true };
        self.separation.on_request(&request, clock - 1);
        if S::WATCHES_INVALIDATION
            && let Some(copy) = old
        {
            self.invalidate(page, copy, clock, false);
        }
        let (rewrite, lifetime) = (old.is_some(), NEVER);
        let stream =
            self.separation.place_user(&Write { page, clock, rewrite, live_pages, lifetime });
        self.within(stream)
    }

    fn note_left(&mut self, page: u32, copy: (SegmentFacts, u32), clock: u64) {
        self.invalidate(self.page(page), copy, clock, true);
    }

    fn place_moved(&mut self, page: u32, offset: u32, clock: u64) -> Stream {
        let page = self.page(page);
        let offset = offset.min(self.geometry.block_pages - 1);
        let Some(victim) = &self.victim else { return self.within(Stream(u8::MAX)) };
        let moved = MovedPage { page, offset, victim, clock };
        let stream = self.separation.place_moved(&moved);
        self.within(stream)
    }

    fn look(&mut self, segments: &[SegmentFacts]) {
        while (self.blocks.len() as usize) < segments.len() {
            self.blocks.grow();
            self.listed.push(None);
        }
        let mut fresh: Vec<&SegmentFacts> = Vec::new();
        for facts in segments {
            let (id, index) = (facts.id, facts.id as usize);
            match self.listed[index] {
                Some(known) if facts.sealed && known.life == facts.life => {
                    // Schemes count on it that pages once invalid stay so.
                    let invalid = facts.reclaimable.min(self.geometry.block_pages);
                    (self.blocks.invalid(id)..invalid).for_each(|_| {
                        self.blocks.invalidate(id);
                    });
                    let allowed = facts.reclaimable > 0;
                    self.listed[index] = Some(Listed { allowed, ..known });
                    continue;
                }
                _ => self.unlist(id),
            }
            if facts.sealed && self.victim.is_none_or(|victim| victim.id != id) {
                fresh.push(facts);
            }
        }
        fresh.sort_unstable_by_key(|facts| (facts.sealed_at, facts.opened_at, facts.id));
        fresh.into_iter().for_each(|facts| self.list(facts));
    }

    fn choose(&mut self, free: u32, clock: u64) -> Option<u32> {
        let allowed = (0..self.blocks.len()).filter(|id| self.is_allowed(*id));
        let greedy = allowed.max_by_key(|id| (self.blocks.invalid(*id), u32::MAX - id))?;
        Some(self.chosen(free, clock).unwrap_or(greedy))
    }

    fn begin(&mut self, segment: u32, clock: u64) {
        if self.listed.get(segment as usize).copied().flatten().is_none() {
            self.victim = None;
            return;
        }
        let block = self.blocks.get(segment);
        self.separation.on_collect(&block, clock);
        self.unlist(segment);
        self.victim = Some(block);
    }

    fn end(&mut self, is_empty: bool, clock: u64) {
        if let Some(victim) = self.victim.take().filter(|_| is_empty) {
            self.separation.on_erase(&victim, clock);
        }
    }

    fn audit(&self) -> Result<(), String> {
        self.blocks.audit()?;
        self.separation.audit()
    }
}
