//! LHD as tables of hits and evictions per class and age, and blocks in one vector.

use crate::ghost_models::{GhostModel, ModelVerdict};
use cachewright_types::{Rng, Seed};

const AGES: usize = 4096;
const CLASSES: usize = 16;

#[derive(Clone, Copy)]
struct Block {
    id: u32,
    used: usize,
    last: usize,
    before: usize,
    explorer: bool,
}

pub struct Density {
    capacity: usize,
    candidates: usize,
    interval: usize,
    explorers: f64,
    /// Accesses per bucket of ages.
    bucket: usize,
    blocks: Vec<Block>,
    hits: Vec<Vec<f32>>,
    evictions: Vec<Vec<f32>>,
    densities: Vec<Vec<f32>>,
    now: usize,
    since: usize,
    recent: [Option<u32>; 8],
    next_recent: usize,
    victims: f32,
    rng: Rng,
}

impl Density {
    pub fn new(capacity: usize, candidates: usize, interval: usize, explorers: f64) -> Density {
        let mut bucket = 1;
        while bucket * AGES < 64 * capacity {
            bucket *= 2;
        }
        let unknown =
            |class: usize| (0..AGES).map(move |age| (class + 1) as f32 / (age + 1) as f32);
        Density {
            capacity,
            candidates,
            interval: interval.max(capacity),
            explorers,
            bucket,
            blocks: Vec::new(),
            hits: vec![vec![0.0; AGES]; CLASSES],
            evictions: vec![vec![0.0; AGES]; CLASSES],
            densities: (0..CLASSES).map(|class| unknown(class).collect()).collect(),
            now: 0,
            since: 0,
            recent: [None; 8],
            next_recent: 0,
            victims: 0.0,
            rng: Seed(1).derive("lhd").rng(),
        }
    }

    fn class_and_age(&self, block: &Block) -> (usize, usize) {
        let age = ((self.now - block.used) / self.bucket).min(AGES - 1);
        let mut sum = (block.last + block.before) / self.bucket;
        if sum == 0 {
            return (CLASSES - 1, age);
        }
        let mut class = 0;
        while sum < AGES && class < CLASSES - 1 {
            sum *= 2;
            class += 1;
        }
        (class, age)
    }

    fn density(&self, block: &Block) -> f32 {
        let (class, age) = self.class_and_age(block);
        if age == AGES - 1 {
            return f32::NEG_INFINITY;
        }
        self.densities[class][age] + if block.explorer { 1.0 } else { 0.0 }
    }

    fn draw_explorer(&mut self) -> (bool, bool) {
        let explores = self.rng.below(32) == 0;
        let there = self.blocks.iter().filter(|block| block.explorer).count();
        (explores, explores && there < (self.explorers * self.capacity as f64) as usize)
    }

    fn evict(&mut self) -> u32 {
        let mut seen = Vec::new();
        for _ in 0..self.candidates {
            seen.push(self.rng.below(self.blocks.len() as u64) as usize);
        }
        for id in self.recent.iter().flatten() {
            seen.push(self.blocks.iter().position(|block| block.id == *id).unwrap());
        }
        let mut victim = seen[0];
        for place in seen {
            if self.density(&self.blocks[place]) < self.density(&self.blocks[victim]) {
                victim = place;
            }
        }
        let density = self.density(&self.blocks[victim]);
        if density.is_finite() {
            self.victims = 0.9 * self.victims + (1.0 - 0.9) * density;
        }
        let (class, age) = self.class_and_age(&self.blocks[victim]);
        self.evictions[class][age] += 1.0;
        let id = self.blocks.swap_remove(victim).id;
        self.recent.iter_mut().filter(|recent| **recent == Some(id)).for_each(|gone| *gone = None);
        id
    }

    /// Straight from the definition: hits from an age on, over the time to them and to evictions.
    fn model(&mut self) {
        for class in 0..CLASSES {
            self.hits[class].iter_mut().for_each(|count| *count *= 0.9);
            self.evictions[class].iter_mut().for_each(|count| *count *= 0.9);
            let (mut hits, mut events, mut time) = (0.0, 0.0, 0.0);
            for age in (0..AGES).rev() {
                hits += f64::from(self.hits[class][age]);
                events += f64::from(self.hits[class][age] + self.evictions[class][age]);
                time += events;
                let density = if events > 1e-5 { (hits / time) as f32 } else { 0.0 };
                self.densities[class][age] = density;
            }
        }
    }

    fn hit(&mut self, place: usize) {
        let (class, age) = self.class_and_age(&self.blocks[place]);
        self.hits[class][age] += 1.0;
        self.blocks[place].explorer = false;
        let (_, explorer) = self.draw_explorer();
        let now = self.now;
        let block = &mut self.blocks[place];
        (block.before, block.last) = (block.last, now - block.used);
        (block.used, block.explorer) = (now, explorer);
    }

    fn miss(&mut self, id: u32) -> Option<u32> {
        let evicted = (self.blocks.len() == self.capacity).then(|| self.evict());
        let (explores, explorer) = self.draw_explorer();
        let block = Block { id, used: self.now, last: 0, before: u32::MAX as usize, explorer };
        self.blocks.push(block);
        if !explores && self.density(&block) < self.victims {
            self.recent[self.next_recent % 8] = Some(id);
            self.next_recent += 1;
        }
        evicted
    }
}

impl GhostModel for Density {
    fn access(&mut self, id: u32, _: bool) -> ModelVerdict {
        let verdict = match self.blocks.iter().position(|block| block.id == id) {
            Some(place) => {
                self.hit(place);
                ModelVerdict::Hit
            }
            None => ModelVerdict::In(self.miss(id)),
        };
        self.now += 1;
        self.since += 1;
        if self.since == self.interval {
            self.since = 0;
            self.model();
        }
        verdict
    }
}
