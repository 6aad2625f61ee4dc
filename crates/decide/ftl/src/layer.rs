//! A translation layer behind one seam, whichever separation it runs.
//!
//! For: the flash inside a drive and the log of a store on any device, which perform what a layer
//! tells. Must never know: planes, devices, time. Units: pages.

use crate::mapping::Table;
use crate::tenants::ByTenant;
use crate::{
    Address, Ftl, FtlCounts, FtlError, HostRequest, NEVER, NoSink, Separation, Sink, Superblocks,
};
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
