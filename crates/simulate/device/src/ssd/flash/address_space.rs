//! Logical pages to physical ones, over all groups of channels, and the layers that map them.
//!
//! A group has one layer over all planes (superblocks), or one per plane, whose first pages are the
//! group's share of the mapping table. Its pages follow the order of planes either way. Layers are
//! made by the names of their schemes (`cachewright-ftl`), filled or empty. Units: pages, sectors.

use super::geometry::{LayerId, LogicalPage, PhysicalPage, PlaneId};
use super::page_map::SectorMasks;
use super::params::{FlashError, FlashParams, InitialFill, MapCache};
use cachewright_ftl::layer::ByTenant;
use cachewright_ftl::layer::{Layer, LayerSteps};
use cachewright_ftl::separation::{Registered, SeparationVisitor};
use cachewright_ftl::{
    Address, FillRule, Ftl, FtlCounts, FtlError, Geometry, HostRequest, Lazy, Need, Space, reclaim,
    separation,
};
use cachewright_types::declare::Declared;
use cachewright_types::{RegistryError, Rng, Seed, Value};
use std::sync::Arc;

/// Pages under one numbering: some channels of the device.
struct ChannelShare {
    layers: Vec<Box<dyn Layer>>,
    /// Planes in the order in which pages visit them.
    planes: Vec<PlaneId>,
    /// Pages of the host.
    pages: u32,
    /// Pages at the start of each layer that hold the mapping table.
    map_local: u32,
    /// Number of its first page, counted over all groups.
    first: u32,
    superblock: bool,
}

impl ChannelShare {
    /// The layer of a page (of the host) and its number there.
    #[inline]
    fn host_page(&self, page: u32) -> (usize, u32) {
        if self.superblock {
            return (0, page + self.map_local);
        }
        let planes = self.planes.len() as u32;
        ((page % planes) as usize, page / planes + self.map_local)
    }

    /// The layer of a page of the mapping table and its number there.
    fn map_page(&self, page: u32) -> (usize, u32) {
        if self.superblock {
            return (0, page);
        }
        let planes = self.planes.len() as u32;
        ((page % planes) as usize, page / planes)
    }

    #[inline]
    fn place(&self, layer: usize, address: Address) -> PhysicalPage {
        let Address { block, offset } = address;
        if self.superblock {
            let planes = self.planes.len() as u32;
            let plane = self.planes[(offset % planes) as usize];
            return PhysicalPage { plane, block, page: offset / planes };
        }
        PhysicalPage { plane: self.planes[layer], block, page: offset }
    }
}

/// All logical pages of a device.
pub struct AddressSpace {
    groups: Vec<ChannelShare>,
    sectors: SectorMasks,
    /// Entries of a page of the mapping table; 0 if the table is in memory.
    map_entries: u32,
    /// What the last layer that wrote wants flash to do.
    steps: LayerSteps,
    /// What the layers had done when the device was filled.
    filling: FtlCounts,
}

impl AddressSpace {
    /// The pages of a device, filled as asked for. Errors: schemes and geometries that the
    /// translation layer refuses.
    pub fn new(params: &FlashParams, seed: Seed) -> Result<AddressSpace, FlashError> {
        let mut space = AddressSpace::with_layers(params, seed, u32::MAX)?;
        if let InitialFill::Replay { occupancy, overwrites } = params.fill {
            space.replay(occupancy, overwrites, seed)?;
        }
        space.filling = space.total();
        Ok(space)
    }

    /// Pages of each group that the host would see. Errors: schemes and geometries that the
    /// translation layer refuses. It makes one layer of each group, as all of a group are alike.
    pub fn host_pages(params: &FlashParams, seed: Seed) -> Result<Vec<u32>, FlashError> {
        let space = AddressSpace::with_layers(params, seed, 1)?;
        Ok(space.groups.iter().map(|group| group.pages).collect())
    }

    /// All pages with so many layers of each group at most.
    fn with_layers(
        params: &FlashParams,
        seed: Seed,
        max_layers: u32,
    ) -> Result<AddressSpace, FlashError> {
        let shape = &params.shape;
        let every: Vec<u32> = (0..shape.channels).collect();
        let listed = &params.layout.groups;
        let groups = if listed.is_empty() { std::slice::from_ref(&every) } else { listed };
        let map_entries = match params.map {
            MapCache::Ideal => 0,
            MapCache::Cached { stored_bytes, .. } => shape.page_bytes / stored_bytes,
        };
        let mut space = AddressSpace {
            groups: Vec::new(),
            sectors: SectorMasks::new(shape.page_bytes / shape.sector_bytes),
            map_entries,
            steps: LayerSteps::default(),
            filling: FtlCounts::default(),
        };
        let mut first = 0;
        for (index, channels) in groups.iter().enumerate() {
            let seed = seed.derive(&format!("flash/group/{index}"));
            let group = space.group(params, channels, first, seed, max_layers)?;
            first += group.pages;
            space.groups.push(group);
        }
        Ok(space)
    }

    fn group(
        &self,
        params: &FlashParams,
        channels: &[u32],
        first: u32,
        seed: Seed,
        max_layers: u32,
    ) -> Result<ChannelShare, FlashError> {
        let (shape, collect) = (&params.shape, &params.collect);
        let planes = params.layout.order.planes(shape, channels).into_iter();
        let planes: Vec<PlaneId> = planes.map(PlaneId).collect();
        let superblock = params.layout.superblock;
        let per_layer = if superblock { planes.len() as u32 } else { 1 };
        let layers = planes.len() as u32 / per_layer;
        let raw = f64::from(shape.plane_pages()) * f64::from(per_layer);
        let pages = (raw * (1.0 - collect.over_provisioning)) as u32;
        let map_pages =
            if self.map_entries > 0 { (pages * layers).div_ceil(self.map_entries) } else { 0 };
        let map_local = map_pages.div_ceil(layers);
        let blocks = shape.blocks_per_plane;
        let reserve_blocks = ((collect.soft_threshold * f64::from(blocks)) as u32).max(2);
        let geometry = Geometry {
            logical_pages: pages + map_local,
            block_pages: shape.pages_per_block * per_layer,
            space: Space::Fixed { blocks, reserve_blocks, idle_blocks: reserve_blocks },
        };
        let content = match params.fill {
            InitialFill::Analytic { occupancy } => {
                let pages = map_local + (occupancy * f64::from(pages)).round() as u32;
                InitialContent::Steady { pages }
            }
            InitialFill::Empty | InitialFill::Replay { .. } => {
                InitialContent::Written { pages: map_local }
            }
        };
        let schemes = Schemes {
            separation: &collect.separation,
            separation_settings: &collect.separation_settings,
            reclaim: &collect.reclaim,
            reclaim_settings: &collect.reclaim_settings,
        };
        let mut maker = LayerMaker::new(geometry, schemes, content, seed);
        let made: Result<Vec<Box<dyn Layer>>, FlashError> =
            (0..layers.min(max_layers)).map(|_| maker.make()).collect();
        let pages = pages * layers;
        Ok(ChannelShare { layers: made?, planes, pages, map_local, first, superblock })
    }

    /// Writes the first share of each group in order and then pages of it at random.
    fn replay(&mut self, occupancy: f64, overwrites: f64, seed: Seed) -> Result<(), FlashError> {
        for (index, group) in self.groups.iter_mut().enumerate() {
            let pages = (occupancy * f64::from(group.pages)) as u32;
            let mut rng = seed.derive(&format!("flash/replay/{index}")).rng();
            let again = (f64::from(pages) * overwrites) as u64;
            let random = (0..again).map(|_| rng.below(u64::from(pages)) as u32);
            for page in (0..pages).chain(random) {
                let (layer, local) = group.host_page(page);
                group.layers[layer].write_untimed(local)?;
            }
        }
        Ok(())
    }

    /// Groups.
    pub fn groups(&self) -> u16 {
        self.groups.len() as u16
    }

    /// Pages of a group that the host sees; 0 for a group that is not there.
    pub fn pages(&self, group: u16) -> u32 {
        self.groups.get(usize::from(group)).map_or(0, |group| group.pages)
    }

    /// Which sectors of pages hold data.
    #[inline]
    pub fn sectors(&self) -> &SectorMasks {
        &self.sectors
    }

    /// Which sectors of pages hold data, to be changed.
    #[inline]
    pub fn sectors_mut(&mut self) -> &mut SectorMasks {
        &mut self.sectors
    }

    /// The number of a page over all groups.
    #[inline]
    pub fn global(&self, group: u16, page: u32) -> u32 {
        self.groups[usize::from(group)].first + page
    }

    /// A page of the host by its layer.
    #[inline]
    pub fn host_page(&self, group: u16, page: u32) -> LogicalPage {
        let (index, page) = self.groups[usize::from(group)].host_page(page);
        LogicalPage { layer: LayerId { group, index: index as u32 }, page }
    }

    /// A page of the mapping table by its layer.
    pub fn map_page(&self, group: u16, page: u32) -> LogicalPage {
        let (index, page) = self.groups[usize::from(group)].map_page(page);
        LogicalPage { layer: LayerId { group, index: index as u32 }, page }
    }

    /// The page of the mapping table that holds the entry of a page.
    #[inline]
    pub fn table_page(&self, page: u32) -> u32 {
        page / self.map_entries.max(1)
    }

    /// Where a page lies.
    #[inline]
    pub fn locate(&self, page: LogicalPage) -> Option<PhysicalPage> {
        let group = &self.groups[usize::from(page.layer.group)];
        let index = page.layer.index as usize;
        let address = group.layers[index].locate(page.page)?;
        Some(group.place(index, address))
    }

    /// Starts to load what [`AddressSpace::locate`] of a page reads of its table first.
    #[inline]
    pub fn prefetch(&self, page: LogicalPage) {
        let group = &self.groups[usize::from(page.layer.group)];
        group.layers[page.layer.index as usize].prefetch(page.page);
    }

    /// The place of an address of a layer.
    pub fn place(&self, layer: LayerId, address: Address) -> PhysicalPage {
        self.groups[usize::from(layer.group)].place(layer.index as usize, address)
    }

    /// The planes on which a block of a layer lies.
    pub fn planes_of(&self, layer: LayerId) -> &[PlaneId] {
        let group = &self.groups[usize::from(layer.group)];
        if group.superblock {
            &group.planes
        } else {
            std::slice::from_ref(&group.planes[layer.index as usize])
        }
    }

    /// A layer.
    pub fn layer(&self, id: LayerId) -> &dyn Layer {
        self.groups[usize::from(id.group)].layers[id.index as usize].as_ref()
    }

    /// Every layer with its number.
    pub fn layers(&self) -> impl Iterator<Item = (LayerId, &dyn Layer)> {
        (0..).zip(&self.groups).flat_map(|(group, item)| {
            let layers = (0..).zip(&item.layers);
            layers.map(move |(index, layer)| (LayerId { group, index }, layer.as_ref()))
        })
    }

    /// Announces a write of consecutive pages to a layer that sees all of them; layers of one
    /// plane hear of each page.
    pub fn announce(&mut self, group: u16, tenant: u16, first_page: u32, pages: u32) {
        let group = &mut self.groups[usize::from(group)];
        if group.superblock {
            let (layer, first_page) = group.host_page(first_page);
            let request = HostRequest { first_page, pages, write: true };
            group.layers[layer].begin(tenant, &request);
        }
    }

    /// Writes a page; what else flash has to do is in [`AddressSpace::steps`]. Errors: a layer that
    /// cannot be freed.
    pub fn write(&mut self, page: LogicalPage, tenant: u16) -> Result<PhysicalPage, FtlError> {
        let group = &mut self.groups[usize::from(page.layer.group)];
        let index = page.layer.index as usize;
        let layer = group.layers[index].as_mut();
        if !group.superblock {
            layer.begin(tenant, &HostRequest { first_page: page.page, pages: 1, write: true });
        }
        layer.write(page.page, &mut self.steps)?;
        layer.end(&mut self.steps);
        Ok(group.place(index, self.steps.program))
    }

    /// Forgets a page. Errors: a page that the layer does not have.
    pub fn trim(&mut self, page: LogicalPage) -> Result<(), FtlError> {
        let group = &mut self.groups[usize::from(page.layer.group)];
        group.layers[page.layer.index as usize].trim(page.page)
    }

    /// Empties a block of the caller's choice; false if the layer cannot.
    pub fn clean(&mut self, layer: LayerId, block: u32) -> bool {
        let group = &mut self.groups[usize::from(layer.group)];
        group.layers[layer.index as usize].clean(block, &mut self.steps)
    }

    /// What flash has to do.
    #[inline]
    pub fn steps(&self) -> &LayerSteps {
        &self.steps
    }

    /// What flash has to do, to be taken.
    #[inline]
    pub fn steps_mut(&mut self) -> &mut LayerSteps {
        &mut self.steps
    }

    /// What all layers have done.
    fn total(&self) -> FtlCounts {
        let mut sum = FtlCounts::default();
        for (_, layer) in self.layers() {
            let counts = layer.counts();
            sum.user_pages += counts.user_pages;
            sum.collections += counts.collections;
            sum.moved_pages += counts.moved_pages;
        }
        sum
    }

    /// What all layers have done since the device was filled.
    pub fn counts(&self) -> FtlCounts {
        self.total() - self.filling
    }

    /// Every layer holds what it promises.
    pub fn audit(&self) -> Result<(), String> {
        for (LayerId { group, index }, layer) in self.layers() {
            layer.audit().map_err(|error| format!("group {group}, layer {index}: {error}"))?;
        }
        Ok(())
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
enum InitialContent {
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
struct LayerMaker<'a> {
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
