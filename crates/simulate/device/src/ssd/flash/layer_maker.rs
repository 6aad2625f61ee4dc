//! The translation layers of a drive's flash, made by the names of their schemes.
//!
//! For: layers of one geometry, filled or empty. Must never know: planes, time. Units: pages.
//! Source: `cachewright-ftl`.

use super::error::FlashError;
use cachewright_ftl::layer::ByTenant;
use cachewright_ftl::layer::Layer;
use cachewright_ftl::separation::{self, Registered, SeparationVisitor};
use cachewright_ftl::{FillRule, Ftl, FtlError, Geometry, Lazy, Need, Space, reclaim};
use cachewright_types::declare::Declared;
use cachewright_types::{RegistryError, Rng, Seed, Value};
use std::sync::Arc;

/// Names and settings of the schemes.
#[derive(Clone, Copy, Debug)]
pub struct Schemes<'a> {
    /// Which pages share a block.
    pub separation: &'a str,
    /// Its settings.
    pub separation_settings: &'a [(String, Value)],
    /// Which block is cleaned.
    pub reclaim: &'a str,
    /// Its settings.
    pub reclaim_settings: &'a [(String, Value)],
}

/// What a layer holds at the start.
#[derive(Clone, Copy, Debug)]
pub enum InitialContent {
    /// The first pages, in blocks that are full of them.
    Written {
        /// How many.
        pages: u32,
    },
    /// The first pages, spread as uniform writes spread them in the long run.
    Steady {
        /// How many.
        pages: u32,
    },
}

/// Makes layers of one geometry; those after the first share its rule of filling.
pub struct LayerMaker<'a> {
    geometry: Geometry,
    schemes: Schemes<'a>,
    content: InitialContent,
    fill: Option<Arc<FillRule>>,
    rng: Rng,
}

impl<'a> LayerMaker<'a> {
    /// A maker of layers.
    pub fn new(
        geometry: Geometry,
        schemes: Schemes<'a>,
        content: InitialContent,
        seed: Seed,
    ) -> LayerMaker<'a> {
        let rng = seed.derive("flash/layers").rng();
        LayerMaker { geometry, schemes, content, fill: None, rng }
    }

    /// The next layer. Errors: unknown names and settings, schemes that need the future, a
    /// geometry without room.
    pub fn make(&mut self) -> Result<Box<dyn Layer>, FlashError> {
        let seed = Seed(self.rng.next_u64());
        let (name, pairs) = (self.schemes.separation, self.schemes.separation_settings);
        if name == ByTenant::ENTRY.name {
            let settings = <ByTenant as Registered>::Settings::from_pairs(pairs);
            let (stage, name) = ("separation", ByTenant::ENTRY.name);
            let settings = settings.map_err(|error| {
                FtlError::Registry(RegistryError::Setting { stage, name: name.to_owned(), error })
            })?;
            return Ok(Making { maker: self, seed }.visit::<ByTenant>(settings)?);
        }
        let entry = separation::entry(name).map_err(FtlError::from)?;
        if entry.needs.contains(&Need::Future) {
            return Err(FlashError::Future { separation: entry.name });
        }
        Ok(separation::visit(name, pairs, Making { maker: self, seed })??)
    }

    /// The rule of filling for blocks of so many data pages beside the open ones of some streams.
    fn rule(&self, data_pages: u32, streams: u32) -> FillRule {
        let Space::Fixed { blocks, reserve_blocks, .. } = self.geometry.space else {
            return FillRule::new(data_pages, &[]);
        };
        match self.content {
            InitialContent::Written { pages } => {
                let full = pages.div_ceil(data_pages);
                let left = |block: u32| pages - block * data_pages;
                let valid: Vec<u32> = (0..full).map(|block| left(block).min(data_pages)).collect();
                FillRule::new(data_pages, &valid)
            }
            InitialContent::Steady { pages } => {
                let usable_blocks = blocks.saturating_sub(reserve_blocks + streams);
                FillRule::steady(data_pages, usable_blocks.max(pages.div_ceil(data_pages)), pages)
            }
        }
    }
}

struct Making<'m, 'a> {
    maker: &'m mut LayerMaker<'a>,
    seed: Seed,
}

impl SeparationVisitor for Making<'_, '_> {
    type Output = Result<Box<dyn Layer>, FtlError>;

    fn visit<S: Registered>(self, settings: S::Settings) -> Self::Output {
        let Making { maker, seed } = self;
        let scheme = S::new(&maker.geometry, &settings, seed);
        let data_pages = maker.geometry.block_pages.saturating_sub(scheme.meta_pages()).max(1);
        let fill = match &maker.fill {
            Some(fill) => Arc::clone(fill),
            None => Arc::new(maker.rule(data_pages, scheme.streams())),
        };
        maker.fill = Some(Arc::clone(&fill));
        let skipped = match maker.content {
            InitialContent::Written { .. } => 0,
            InitialContent::Steady { .. } => maker.rng.below(u64::from(data_pages)) as u32,
        };
        let (name, pairs) = (maker.schemes.reclaim, maker.schemes.reclaim_settings);
        let reclaim = reclaim::by_name(name, pairs, &maker.geometry, seed)?;
        let ftl: Ftl<S, Lazy> = Ftl::filled(maker.geometry, scheme, reclaim, &fill, skipped)?;
        Ok(Box::new(ftl))
    }
}
