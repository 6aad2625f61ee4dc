//! The names under which Shiro stands in the registry.
//!
//! For: the scheme as published and its variants, each with a name of its own. Must never know: how
//! they place pages.

use super::super::Registered;
use super::{KNOWN, NO_LEVELS, PAPER, RISING, Shiro, ShiroSettings};
use crate::registry::Need;
use crate::{Entry, Geometry};
use cachewright_types::Seed;

macro_rules! registered {
    ($variant:expr, $name:literal, $doc:literal, $section:literal, $needs:expr) => {
        impl Registered for Shiro<{ $variant }> {
            type Settings = ShiroSettings;
            const ENTRY: Entry = Entry {
                name: $name,
                doc: $doc,
                source: concat!("Sun et al., Shiro (extends DAC'23), ", $section),
                needs: $needs,
            };

            fn new(geometry: &Geometry, settings: &ShiroSettings, seed: Seed) -> Self {
                Shiro::empty(geometry, settings, seed)
            }
        }
    };
}

registered!(
    PAPER,
    "shiro",
    "a GRU sorts user writes by lifetime, Q-learning moves pages among five levels",
    "sections III and IV",
    &[]
);
registered!(
    RISING,
    "shiro-levels",
    "shiro with moved pages rising through the levels by a fixed rule",
    "section III-C, the rule that starts the table",
    &[]
);
registered!(NO_LEVELS, "shiro-ng", "shiro with all moved pages on one stream", "section V-D", &[]);
registered!(
    KNOWN,
    "shiro-known",
    "shiro with the true class of every rewrite (a bound)",
    "classes of Cachewright's own",
    &[Need::Future]
);
