//! The translation layer of a store, and what it has ordered.
//!
//! For: where pages lie and go, faults, what was done since the store was filled. Must never know:
//! devices, time. Units: pages, segments.

use cachewright_ftl::layer::{Layer, LayerStep, LayerSteps};
use cachewright_ftl::{Address, FtlCounts, FtlError, HostRequest};

/// The layer that decides.
pub struct Translation {
    layer: Box<dyn Layer>,
    /// What it had done when the store was filled.
    before: FtlCounts,
    steps: LayerSteps,
    /// Segments with metadata that the write at hand needs.
    metadata: Vec<u32>,
    /// Why a write was refused, if one was.
    fault: Option<FtlError>,
}

impl Translation {
    /// A layer that is filled; what it did so far is not counted.
    pub fn new(layer: Box<dyn Layer>) -> Translation {
        let (before, steps) = (layer.counts(), LayerSteps::default());
        Translation { layer, before, steps, metadata: Vec::new(), fault: None }
    }

    /// Announces a request of a tenant.
    pub fn begin(&mut self, tenant: u16, request: &HostRequest) {
        self.layer.begin(tenant, request);
    }

    /// Ends the request.
    pub fn end(&mut self) {
        self.layer.end(&mut self.steps);
    }

    /// Decides where a page is written; nothing where the layer refuses it, which is a fault.
    pub fn write(&mut self, page: u32) -> Option<Address> {
        match self.layer.write(page, &mut self.steps) {
            Ok(()) => Some(self.steps.program),
            Err(error) => {
                self.fault.get_or_insert(error);
                None
            }
        }
    }

    /// Forgets a page.
    pub fn trim(&mut self, page: u32) {
        if let Err(error) = self.layer.trim(page) {
            self.fault.get_or_insert(error);
        }
    }

    /// Where a page lies, or will when it has arrived.
    pub fn locate(&self, page: u32) -> Option<Address> {
        self.layer.locate(page)
    }

    /// Whether the layer has ordered anything.
    pub fn has_ordered(&self) -> bool {
        !self.steps.ordered.is_empty()
    }

    /// Takes what the layer has ordered, to be handed back with [`Translation::keep`].
    pub fn take_ordered(&mut self) -> Vec<LayerStep> {
        std::mem::take(&mut self.steps.ordered)
    }

    /// Keeps the memory of orders that have been carried out.
    pub fn keep(&mut self, mut ordered: Vec<LayerStep>) {
        ordered.clear();
        self.steps.ordered = ordered;
    }

    /// The write at hand needs the metadata of a segment.
    pub fn need_metadata(&mut self, segment: u32) {
        self.metadata.push(segment);
    }

    /// Segments with metadata that the write at hand needs and that no page is appended to.
    pub fn take_sealed_metadata(&mut self) -> Vec<u32> {
        let mut segments = std::mem::take(&mut self.metadata);
        segments.retain(|segment| self.layer.blocks().is_sealed(*segment));
        segments
    }

    /// What the layer has done since the store was filled.
    pub fn counts(&self) -> FtlCounts {
        self.layer.counts() - self.before
    }

    /// Why a write was refused, if one was.
    pub fn fault(&self) -> Option<&FtlError> {
        self.fault.as_ref()
    }

    /// Checks the layer, and that it refused nothing. Errors: the rule broken, in words.
    pub fn audit(&self) -> Result<(), String> {
        self.layer.audit()?;
        self.fault().map_or(Ok(()), |fault| Err(format!("a write was refused: {fault}")))
    }
}
