//! A translation layer behind one seam, whichever separation it runs.
//!
//! For: making a layer by the names of its schemes, filled or empty, and collecting what it tells
//! flash to do. Must never know: planes, time. Units: pages. Source: `cachewright-ftl`.

use super::error::FlashError;
use super::tenants::ByTenant;
use cachewright_ftl::separation::{self, Registered, Separation, SeparationVisitor};
use cachewright_ftl::{
    Address, Blocks, Counts, Fill, Ftl, FtlError, Geometry, HostRequest, Lazy, NEVER, Need, NoSink,
    Sink, Space, reclaim,
};
use cachewright_types::settings::Settings;
use cachewright_types::{RegistryError, Rng, Seed, Value};
use std::any::Any;
use std::sync::Arc;

/// One thing flash has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// A valid page moves.
    Move {
        /// The page.
        page: u32,
        /// Where it lies.
        from: Address,
        /// Where it goes.
        to: Address,
    },
    /// The block whose pages moved before is erased.
    Erase {
        /// The block.
        block: u32,
    },
    /// A page of the separation's own is programmed.
    Meta {
        /// Where.
        to: Address,
    },
    /// A page of the separation's own is read before the host's page is programmed.
    MetaRead {
        /// A page of the block whose metadata it is.
        of: Address,
    },
}

/// What a layer told flash, in order; the host's own page apart.
#[derive(Clone, Debug)]
pub struct Steps {
    /// Cleaning and metadata.
    pub told: Vec<Told>,
    /// Where the host's page goes.
    pub program: Address,
}

impl Default for Steps {
    fn default() -> Steps {
        Steps { told: Vec::new(), program: Address { block: 0, offset: 0 } }
    }
}

impl Sink for Steps {
    #[inline(always)]
    fn program(&mut self, _: u32, to: Address) {
        self.program = to;
    }

    fn relocate(&mut self, page: u32, from: Address, to: Address) {
        self.told.push(Told::Move { page, from, to });
    }

    fn program_meta(&mut self, to: Address) {
        self.told.push(Told::Meta { to });
    }

    fn read_meta(&mut self, of: Address) {
        self.told.push(Told::MetaRead { of });
    }

    fn erase(&mut self, block: u32) {
        self.told.push(Told::Erase { block });
    }
}

/// A translation layer of any separation.
pub trait Layer: Send {
    /// Announces a request of a tenant.
    fn begin(&mut self, tenant: u16, request: &HostRequest);
    /// Writes a page. Errors: a drive that reclaim cannot free.
    fn write(&mut self, page: u32, steps: &mut Steps) -> Result<(), FtlError>;
    /// Writes a page that costs no time.
    fn write_untimed(&mut self, page: u32) -> Result<(), FtlError>;
    /// Ends the request.
    fn end(&mut self, steps: &mut Steps);
    /// Empties a block of the caller's choice; false if it cannot.
    fn clean(&mut self, block: u32, steps: &mut Steps) -> bool;
    /// Where a page lies.
    fn locate(&self, page: u32) -> Option<Address>;
    /// Forgets a page.
    fn trim(&mut self, page: u32) -> Result<(), FtlError>;
    /// Free blocks.
    fn free_blocks(&self) -> u32;
    /// Its blocks.
    fn blocks(&self) -> &Blocks;
    /// What it has done.
    fn counts(&self) -> Counts;
    /// Logical pages that hold data.
    fn mapped_pages(&self) -> u32;
    /// Checks everything, slowly.
    fn audit(&self) -> Result<(), String>;
}

impl<S: Separation + 'static> Layer for Ftl<S, Lazy> {
    #[inline]
    fn begin(&mut self, tenant: u16, request: &HostRequest) {
        // Only this one scheme is told; for all others the test is false when compiled.
        let scheme: &mut dyn Any = self.separation_mut();
        if let Some(scheme) = scheme.downcast_mut::<ByTenant>() {
            scheme.turn(tenant);
        }
        Ftl::begin(self, request);
    }

    fn write(&mut self, page: u32, steps: &mut Steps) -> Result<(), FtlError> {
        Ftl::write(self, page, NEVER, steps)
    }

    fn write_untimed(&mut self, page: u32) -> Result<(), FtlError> {
        Ftl::begin(self, &HostRequest { first_page: page, pages: 1, write: true });
        Ftl::write(self, page, NEVER, &mut NoSink)?;
        Ftl::end(self, &mut NoSink);
        Ok(())
    }

    fn end(&mut self, steps: &mut Steps) {
        Ftl::end(self, steps);
    }

    fn clean(&mut self, block: u32, steps: &mut Steps) -> bool {
        Ftl::clean(self, block, steps)
    }

    fn locate(&self, page: u32) -> Option<Address> {
        Ftl::locate(self, page).ok().flatten()
    }

    fn trim(&mut self, page: u32) -> Result<(), FtlError> {
        Ftl::trim(self, page, 1)
    }

    fn free_blocks(&self) -> u32 {
        Ftl::free_blocks(self)
    }

    fn blocks(&self) -> &Blocks {
        Ftl::blocks(self)
    }

    fn counts(&self) -> Counts {
        Ftl::counts(self)
    }

    fn mapped_pages(&self) -> u32 {
        Ftl::mapped_pages(self)
    }

    fn audit(&self) -> Result<(), String> {
        Ftl::audit(self)
    }
}

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
pub enum Content {
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
pub struct Maker<'a> {
    geometry: Geometry,
    schemes: Schemes<'a>,
    content: Content,
    fill: Option<Arc<Fill>>,
    rng: Rng,
}

impl<'a> Maker<'a> {
    /// A maker of layers.
    pub fn new(
        geometry: Geometry,
        schemes: Schemes<'a>,
        content: Content,
        seed: Seed,
    ) -> Maker<'a> {
        let rng = seed.derive("flash/layers").rng();
        Maker { geometry, schemes, content, fill: None, rng }
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
                FtlError::Registry(RegistryError::Setting { stage, name, error })
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
    fn rule(&self, data_pages: u32, streams: u32) -> Fill {
        let Space::Fixed { blocks, reserve_blocks, .. } = self.geometry.space else {
            return Fill::new(data_pages, &[]);
        };
        match self.content {
            Content::Written { pages } => {
                let full = pages.div_ceil(data_pages);
                let left = |block: u32| pages - block * data_pages;
                let valid: Vec<u32> = (0..full).map(|block| left(block).min(data_pages)).collect();
                Fill::new(data_pages, &valid)
            }
            Content::Steady { pages } => {
                let room = blocks.saturating_sub(reserve_blocks + streams);
                Fill::steady(data_pages, room.max(pages.div_ceil(data_pages)), pages)
            }
        }
    }
}

struct Making<'m, 'a> {
    maker: &'m mut Maker<'a>,
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
            Content::Written { .. } => 0,
            Content::Steady { .. } => maker.rng.below(u64::from(data_pages)) as u32,
        };
        let (name, pairs) = (maker.schemes.reclaim, maker.schemes.reclaim_settings);
        let reclaim = reclaim::by_name(name, pairs, &maker.geometry, seed)?;
        let ftl: Ftl<S, Lazy> = Ftl::filled(maker.geometry, scheme, reclaim, &fill, skipped)?;
        Ok(Box::new(ftl))
    }
}
