//! A translation layer behind one seam, whichever separation it runs.
//!
//! Pages of different tenants in different blocks. It stands in no table of separations. One stream
//! per tenant for the host's pages and one for moved ones. MQSim keeps one open block of each kind
//! per flow and plane (FAST'18, section 4.4). Tenants beyond the set number share streams in turn.
//!
//! What flash has to do, told as it is decided. A model of an SSD prices these moves, a live store
//! performs them, studies of write amplification ignore them at no cost. Order matters: a page is
//! programmed before the superblock of its old copy is erased.

use crate::mapping::Table;
use crate::separation::{self, MovedPage, Registered, Write};
use crate::{
    Entry, Ftl, FtlCounts, FtlError, Geometry, HostRequest, NEVER, Separation, Superblocks,
};
use cachewright_types::declare::Declared;
use cachewright_types::registry::{RegistryError, Resolved};
use cachewright_types::{Seed, Value, declare, registry};
use std::any::Any;

/// One thing flash has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerStep {
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
        owner: Address,
    },
}

/// What a layer wants flash to do, in order; the host's own page apart.
#[derive(Clone, Debug)]
pub struct LayerSteps {
    /// Cleaning and metadata.
    pub ordered: Vec<LayerStep>,
    /// Where the host's page goes.
    pub program: Address,
    /// Whether the host waits for the step of a model that was taken for it, if one was.
    pub predicted: Option<bool>,
}

impl Default for LayerSteps {
    fn default() -> LayerSteps {
        let program = Address { block: 0, offset: 0 };
        LayerSteps { ordered: Vec::new(), program, predicted: None }
    }
}

impl Sink for LayerSteps {
    #[inline(always)]
    fn program(&mut self, _: u32, to: Address) {
        self.program = to;
    }

    #[inline]
    fn relocate(&mut self, page: u32, from: Address, to: Address) {
        self.ordered.push(LayerStep::Move { page, from, to });
    }

    #[inline]
    fn program_meta(&mut self, to: Address) {
        self.ordered.push(LayerStep::Meta { to });
    }

    #[inline]
    fn read_meta(&mut self, owner: Address) {
        self.ordered.push(LayerStep::MetaRead { owner });
    }

    #[inline]
    fn predict(&mut self, _: u32, waits: bool) {
        self.predicted = Some(waits);
    }

    #[inline]
    fn erase(&mut self, block: u32) {
        self.ordered.push(LayerStep::Erase { block });
    }
}

/// A translation layer of any separation.
pub trait Layer: Send {
    /// Announces a request of a tenant.
    fn begin(&mut self, tenant: u16, request: &HostRequest);
    /// Writes a page. Errors: a drive that reclaim cannot free.
    fn write(&mut self, page: u32, steps: &mut LayerSteps) -> Result<(), FtlError>;
    /// Writes a page that costs no time.
    fn write_untimed(&mut self, page: u32) -> Result<(), FtlError>;
    /// Ends the request.
    fn end(&mut self, steps: &mut LayerSteps);
    /// Empties a block of the caller's choice; false if it cannot.
    fn clean(&mut self, block: u32, steps: &mut LayerSteps) -> bool;
    /// Where a page lies.
    fn locate(&self, page: u32) -> Option<Address>;
    /// Starts to load what [`Layer::locate`] of a page reads of its table first.
    fn prefetch(&self, page: u32);
    /// Forgets a page.
    fn trim(&mut self, page: u32) -> Result<(), FtlError>;
    /// Free blocks.
    fn free_blocks(&self) -> u32;
    /// Its blocks.
    fn blocks(&self) -> &Superblocks;
    /// What it has done.
    fn counts(&self) -> FtlCounts;
    /// Logical pages that hold data.
    fn mapped_pages(&self) -> u32;
    /// Checks everything, slowly.
    fn audit(&self) -> Result<(), String>;
}

impl<S: Separation + 'static, M: Table + 'static> Layer for Ftl<S, M> {
    #[inline]
    fn begin(&mut self, tenant: u16, request: &HostRequest) {
        // Only this one scheme separates tenants; for all others the test is false when compiled.
        let scheme: &mut dyn Any = self.separation_mut();
        if let Some(scheme) = scheme.downcast_mut::<ByTenant>() {
            scheme.turn(tenant);
        }
        Ftl::begin(self, request);
    }

    fn write(&mut self, page: u32, steps: &mut LayerSteps) -> Result<(), FtlError> {
        Ftl::write(self, page, NEVER, steps)
    }

    fn write_untimed(&mut self, page: u32) -> Result<(), FtlError> {
        Ftl::begin(self, &HostRequest { first_page: page, pages: 1, write: true });
        Ftl::write(self, page, NEVER, &mut NoSink)?;
        Ftl::end(self, &mut NoSink);
        Ok(())
    }

    fn end(&mut self, steps: &mut LayerSteps) {
        Ftl::end(self, steps);
    }

    fn clean(&mut self, block: u32, steps: &mut LayerSteps) -> bool {
        Ftl::clean(self, block, steps)
    }

    fn locate(&self, page: u32) -> Option<Address> {
        Ftl::locate(self, page).ok().flatten()
    }

    fn prefetch(&self, page: u32) {
        Ftl::prefetch(self, page);
    }

    fn trim(&mut self, page: u32) -> Result<(), FtlError> {
        Ftl::trim(self, page, 1)
    }

    fn free_blocks(&self) -> u32 {
        Ftl::free_blocks(self)
    }

    fn blocks(&self) -> &Superblocks {
        Ftl::blocks(self)
    }

    fn counts(&self) -> FtlCounts {
        Ftl::counts(self)
    }

    fn mapped_pages(&self) -> u32 {
        Ftl::mapped_pages(self)
    }

    fn audit(&self) -> Result<(), String> {
        Ftl::audit(self)
    }
}

declare! {
    /// How many tenants are told apart.
    pub struct TenantSettings {
        /// tenants with blocks of their own
        tenants: u32 = 2, "tenants", 1 ..= 32;
    }
}

/// The separations that a layer can run, by name.
pub fn names() -> Vec<&'static str> {
    let entries = separation::entries();
    entries.iter().map(|entry| entry.name).chain([ByTenant::ENTRY.name]).collect()
}

/// Every setting of one of them under `pairs`. Errors: no such scheme; a setting is refused.
pub fn resolved(name: &str, pairs: &[(String, Value)]) -> Result<Resolved, RegistryError> {
    if name == ByTenant::ENTRY.name {
        let settings = registry::settings::<TenantSettings>("separation", name, pairs)?;
        return Ok(settings.values());
    }
    separation::resolved(name, pairs)
}

/// A stream for each tenant.
#[derive(Clone, Copy, Debug)]
pub struct ByTenant {
    tenants: u8,
    writer: u8,
}

impl ByTenant {
    /// Notes whose the next writes are.
    #[inline]
    pub fn turn(&mut self, tenant: u16) {
        self.writer = (tenant % u16::from(self.tenants)) as u8;
    }
}

impl Registered for ByTenant {
    type Settings = TenantSettings;
    const ENTRY: Entry = Entry {
        name: "by-tenant",
        doc: "pages of each tenant apart, and moved pages apart from both",
        source: "MQSim (Tavakkol et al.), FAST'18, section 4.4",
        needs: &[],
    };

    fn new(_: &Geometry, settings: &TenantSettings, _: Seed) -> ByTenant {
        ByTenant { tenants: settings.tenants as u8, writer: 0 }
    }
}

impl Separation for ByTenant {
    fn streams(&self) -> u32 {
        2 * u32::from(self.tenants)
    }

    #[inline]
    fn place_user(&mut self, _: &Write) -> Stream {
        Stream(self.writer)
    }

    #[inline]
    fn place_moved(&mut self, page: &MovedPage<'_>) -> Stream {
        Stream(self.tenants + page.victim.stream.0 % self.tenants)
    }

    fn metadata_bytes_per_page(&self) -> f64 {
        0.0
    }
}
/// A physical page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// Superblock.
    pub block: u32,
    /// Page within it.
    pub offset: u32,
}

/// The receiver of moves. Every method does nothing unless it is overridden.
pub trait Sink {
    /// Whether [`Sink::keep`] is asked.
    const MAY_DROP: bool = false;

    /// Whether a valid page of a victim is moved; otherwise the drive forgets it, as by a trim. A
    /// cache may drop a clean page whose block it then forgets.
    #[inline(always)]
    fn keep(&mut self, _page: u32, _address: Address) -> bool {
        true
    }

    /// A page from the host is programmed.
    #[inline(always)]
    fn program(&mut self, _page: u32, _to: Address) {}
    /// A valid page of a victim is read and programmed elsewhere.
    #[inline(always)]
    fn relocate(&mut self, _page: u32, _from: Address, _to: Address) {}
    /// A page of the separation's own metadata is programmed.
    #[inline(always)]
    fn program_meta(&mut self, _to: Address) {}
    /// A page of the separation's own metadata is read for a host write. It belongs to the page at
    /// this offset of this superblock, and lies in the same superblock.
    #[inline(always)]
    fn read_meta(&mut self, _of: Address) {}
    /// The separation took a step of its model for a page that the host writes. If `waits`, the
    /// host waits for the step.
    #[inline(always)]
    fn predict(&mut self, _page: u32, _waits: bool) {}
    /// A superblock is erased; nothing valid is left in it.
    #[inline(always)]
    fn erase(&mut self, _block: u32) {}
}

/// Ignores all work.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSink;

impl Sink for NoSink {}
/// A stream: pages placed on one stream fill the same superblock one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Stream(pub u8);

impl Stream {
    /// The index into per-stream arrays.
    #[inline(always)]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The set that holds only this stream.
    #[inline(always)]
    pub fn mask(self) -> u64 {
        1 << (self.0 & 63)
    }
}

/// What reclaim may know of a separation's classes (Shiro's equation 1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShortLived {
    /// Streams whose pages are believed to be overwritten soon, a bit each.
    pub streams: u64,
    /// Lifetime in pages below which a page counts as short-lived.
    pub threshold: u64,
}
