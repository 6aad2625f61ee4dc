//! Policies of code outside decide as the same policy inside does; broken rules are kept.
//!
//! For: `foreign`. Must never know: Python; the code outside is Rust here.

use cachewright_policy::foreign::{Foreign, ForeignSettings};
use cachewright_policy::lru::Lru;
use cachewright_policy::{
    Access, CodeFault, ForeignClass, ForeignCode, ForeignPolicy, Policy, PolicyHooks, Registered,
    Verdict, entries, entry,
};
use cachewright_types::declare::NoSettings;
use cachewright_types::{BlockId, Seed, Value};
use proptest::prelude::*;
use std::sync::Arc;

/// What the code answers to one access, or to every call of another method.
type Wrong = fn(&mut Lru, BlockId) -> Result<Verdict, String>;

/// LRU outside; `wrong` answers from an access on.
struct Outside {
    lru: Lru,
    left: u32,
    wrong: Wrong,
}

impl ForeignPolicy for Outside {
    fn access(&mut self, block: BlockId, write: bool) -> Result<Verdict, String> {
        if self.left == 0 {
            return (self.wrong)(&mut self.lru, block);
        }
        self.left -= 1;
        self.lru.reserve_ids(block.index() + 1);
        Ok(self.lru.access(Access { write, ..Access::read(block) }))
    }

    fn remove(&mut self, block: BlockId) -> Result<(), String> {
        self.lru.reserve_ids(block.index() + 1);
        self.lru.remove(block);
        Ok(())
    }

    fn resize(&mut self, capacity_blocks: u32, evicted: &mut Vec<BlockId>) -> Result<(), String> {
        if self.left == 0 {
            return (self.wrong)(&mut self.lru, BlockId(0)).map(|_| ());
        }
        self.lru.resize(capacity_blocks, evicted);
        Ok(())
    }
}

struct Class(u32, Wrong);

impl ForeignClass for Class {
    fn make(
        &self,
        capacity_blocks: u32,
        settings: &[(String, Value)],
    ) -> Result<Box<dyn ForeignPolicy>, String> {
        if !settings.is_empty() {
            return Err("no settings here".to_owned());
        }
        let lru = Lru::new(capacity_blocks, &NoSettings::default(), Seed(0));
        Ok(Box::new(Outside { lru, left: self.0, wrong: self.1 }))
    }

    fn resizes(&self) -> bool {
        true
    }

    fn removes(&self) -> bool {
        true
    }
}

fn cache(capacity: u32, right: u32, wrong: Wrong) -> (Foreign, Arc<CodeFault>) {
    let fault = Arc::new(CodeFault::default());
    let class = Arc::new(Class(right, wrong));
    let code = ForeignCode { name: "python:x".to_owned(), class, fault: Arc::clone(&fault) };
    let mut cache = Foreign::new(capacity, &ForeignSettings::default(), Seed(0));
    cache.attach_code(&code);
    cache.reserve_ids(64);
    (cache, fault)
}

proptest! {
    #[test]
    fn code_outside_decides_as_the_same_code_inside(
        capacity in 0_u32..12,
        steps in prop::collection::vec((0_u32..24, 0_u32..8), 0..400),
    ) {
        let (mut outside, fault) = cache(capacity, u32::MAX, |_, _| unreachable!());
        let mut inside = Lru::new(capacity, &NoSettings::default(), Seed(0));
        inside.reserve_ids(64);
        for (id, kind) in steps {
            let block = BlockId(id);
            match kind {
                0 => prop_assert_eq!(outside.remove(block), inside.remove(block)),
                1 => {
                    let (mut one, mut other) = (Vec::new(), Vec::new());
                    outside.resize(id / 2, &mut one);
                    inside.resize(id / 2, &mut other);
                    prop_assert_eq!(one, other);
                }
                _ => {
                    let access = Access::read(block);
                    prop_assert_eq!(outside.access(access), inside.access(access));
                }
            }
            prop_assert_eq!(outside.len(), inside.len());
            prop_assert_eq!(outside.contains(block), inside.contains(block));
            prop_assert_eq!(outside.audit(), Ok(()));
        }
        prop_assert_eq!(fault.message(), None);
    }
}

/// Two blocks come into a cache of two; the third access is answered wrongly.
#[test]
fn a_broken_rule_is_kept_and_the_cache_stays_sound() {
    let cases: [(Wrong, u32, &str); 7] = [
        (|_, _| Ok(Verdict::Hit), 5, "returned a hit on a block that is not cached"),
        (|_, _| Ok(Verdict::Bypass), 1, "returned a bypass of a block that is cached"),
        (|_, _| Ok(Verdict::Admit { evicted: None }), 1, "admission of a block that is cached"),
        (|_, _| Ok(Verdict::Admit { evicted: None }), 5, "a cache that holds 2 of 2 blocks"),
        (|_, _| Ok(Verdict::Admit { evicted: Some(BlockId(9)) }), 5, "the eviction of block 9,"),
        (|_, block| Ok(Verdict::Admit { evicted: Some(block) }), 5, "the eviction of block 5,"),
        (|_, _| Err("no idea".to_owned()), 5, "access 3 (block 5): no idea"),
    ];
    for (wrong, third, said) in cases {
        let (mut cache, fault) = cache(2, 2, wrong);
        for id in [1, 2] {
            assert_eq!(cache.access(Access::read(BlockId(id))), Verdict::Admit { evicted: None });
        }
        let stays = if third == 1 { Verdict::Hit } else { Verdict::Bypass };
        assert_eq!(cache.access(Access::read(BlockId(third))), stays);
        let message = fault.message().unwrap();
        assert!(message.starts_with("policy `python:x`: ") && message.contains(said), "{message}");
        // It answers by itself from here on, and shrinks all the same.
        let mut evicted = Vec::new();
        cache.resize(1, &mut evicted);
        assert_eq!((evicted, cache.len(), cache.audit()), (vec![BlockId(1)], 1, Ok(())));
        assert!(cache.remove(BlockId(2)) && !cache.remove(BlockId(2)));
        assert_eq!(fault.message(), Some(message));
    }
}

#[test]
fn a_resize_that_leaves_too_much_is_kept() {
    let (mut cache, fault) = cache(2, 2, |_, _| Ok(Verdict::Bypass));
    for id in [1, 2] {
        cache.access(Access::read(BlockId(id)));
    }
    let mut evicted = Vec::new();
    cache.resize(1, &mut evicted);
    assert_eq!((evicted, cache.len()), (vec![BlockId(1)], 1));
    let said = "`resize` left 2 blocks in a cache of 1, expected 1 more to leave";
    assert!(fault.message().unwrap().contains(said));
}

#[test]
fn no_table_lists_code_outside_and_its_name_is_known_all_the_same() {
    assert!(entries().iter().all(|entry| entry.name != Foreign::ENTRY.name));
    assert_eq!(entry("python:any"), Ok(&Foreign::ENTRY));
    assert!(entry("python").is_err());
}
