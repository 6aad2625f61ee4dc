//! Shiro-x with true residual lifetimes, of all pages or of some: what its predictions cost.
//!
//! For: ablations; it stands in no registry. Must never know: how lifetimes were found. Streams are
//! cut and reclaim is done as under `shiro-x` without trials; only the bin of the residual lifetime
//! is the true one, where it is asked for. Units: host page writes. Memory: 8 bytes per page beside
//! those of `shiro-x`.

use super::history::span;
use super::{ShiroX, ShiroXSettings, Side};
use crate::separation::{HostRequest, Invalidated, MovedPage, Registered, Separation};
use crate::separation::{Stream, Write};
use crate::{Block, Geometry, NEVER};
use cachewright_types::Seed;

/// Which pages are placed by their true residual lifetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Pages that the host writes.
    pub written: bool,
    /// Pages that reclaim moves.
    pub moved: bool,
}

/// The scheme.
pub struct ShiroXKnown {
    inner: ShiroX,
    known: Known,
    /// The clock at each page's next write or trim; the highest value if there is none.
    death: Vec<u64>,
}

impl ShiroXKnown {
    /// The scheme for an empty drive.
    pub fn new(geometry: &Geometry, known: Known) -> ShiroXKnown {
        let settings = ShiroXSettings { trials: false, ..ShiroXSettings::default() };
        let inner = ShiroX::new(geometry, &settings, Seed(0));
        ShiroXKnown { inner, known, death: vec![u64::MAX; geometry.logical_pages as usize] }
    }

    /// The true bin of a page that is placed now.
    fn truth(&self, page: u32, clock: u64) -> usize {
        let death = self.death.get(page as usize).copied().unwrap_or(u64::MAX);
        span(u32::try_from(death.saturating_sub(clock)).unwrap_or(NEVER))
    }
}

impl Separation for ShiroXKnown {
    const WATCHES_INVALIDATION: bool = true;

    fn streams(&self) -> u32 {
        self.inner.streams()
    }

    fn on_request(&mut self, request: &HostRequest, clock: u64) {
        self.inner.on_request(request, clock);
    }

    fn place_user(&mut self, write: &Write) -> Stream {
        if let Some(death) = self.death.get_mut(write.page as usize) {
            let known = write.lifetime != NEVER;
            *death = if known { write.clock + u64::from(write.lifetime) } else { u64::MAX };
        }
        let learned = self.inner.learn(write);
        let truth = self.truth(write.page, write.clock);
        let residual = if self.known.written { truth } else { learned };
        self.inner.division.place(Side::Host, residual)
    }

    fn place_moved(&mut self, moved: &MovedPage<'_>) -> Stream {
        if !self.known.moved {
            return self.inner.place_moved(moved);
        }
        let residual = self.truth(moved.page, moved.clock);
        self.inner.division.place(Side::Moved, residual)
    }

    fn on_invalidate(&mut self, gone: &Invalidated<'_>) {
        self.inner.on_invalidate(gone);
    }

    fn on_seal(&mut self, block: &Block) {
        self.inner.on_seal(block);
    }

    fn metadata_bytes_per_page(&self) -> f64 {
        8.0 + self.inner.metadata_bytes_per_page()
    }
}
