//! Logical pages to physical ones, over all groups of channels.
//!
//! For: which layer holds a page, which plane an address of a layer is on, which sectors of a page
//! hold data, and filling the device. Must never know: time, queues. Units: pages, sectors. A
//! group has one layer per plane, whose first pages are the group's share of the mapping table, or
//! one layer over all planes (superblocks); its pages follow the order of planes either way.

use super::error::FlashError;
use super::layer::{Content, Maker, Schemes};
use super::params::{Fill, FlashParams, MapCache};
use super::transaction::Place;
use crate::layer::{Layer, Steps};
use cachewright_ftl::{Address, FtlError, Geometry, HostRequest, Space as Room};
use cachewright_types::Seed;
use hashbrown::HashMap;

/// Pages under one numbering: some channels of the device.
struct Group {
    layers: Vec<Box<dyn Layer>>,
    /// Planes in the order in which pages visit them.
    planes: Vec<u32>,
    /// Pages of the host.
    pages: u32,
    /// Pages at the start of each layer that hold the mapping table.
    map_local: u32,
    /// Number of its first page, counted over all groups.
    first: u32,
    superblock: bool,
}

impl Group {
    /// The layer of a page (of the host) and its number there.
    #[inline]
    fn of_page(&self, page: u32) -> (usize, u32) {
        if self.superblock {
            return (0, page + self.map_local);
        }
        let planes = self.planes.len() as u32;
        ((page % planes) as usize, page / planes + self.map_local)
    }

    /// The layer of a page of the mapping table and its number there.
    fn of_map(&self, page: u32) -> (usize, u32) {
        if self.superblock {
            return (0, page);
        }
        let planes = self.planes.len() as u32;
        ((page % planes) as usize, page / planes)
    }

    #[inline]
    fn place(&self, layer: usize, at: Address) -> Place {
        if self.superblock {
            let planes = self.planes.len() as u32;
            let plane = self.planes[(at.offset % planes) as usize];
            return Place { plane, block: at.block, page: at.offset / planes };
        }
        Place { plane: self.planes[layer], block: at.block, page: at.offset }
    }
}

/// A page by its layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Local {
    /// Group of channels.
    pub group: u16,
    /// Layer of the group.
    pub layer: u32,
    /// Page of the layer.
    pub page: u32,
}

/// All logical pages of a device.
pub struct Space {
    groups: Vec<Group>,
    /// Sectors that hold data, of mapped pages where not all do, by number over all groups.
    partial: HashMap<u32, u64, foldhash::fast::FixedState>,
    whole: u64,
    /// Entries of a page of the mapping table; 0 if the table is in memory.
    map_entries: u32,
}

impl Space {
    /// The pages of a device, filled as asked for. Errors: schemes and geometries that the
    /// translation layer refuses.
    pub fn new(params: &FlashParams, seed: Seed) -> Result<Space, FlashError> {
        let shape = &params.shape;
        let every: Vec<u32> = (0..shape.channels).collect();
        let listed = &params.layout.groups;
        let groups = if listed.is_empty() { std::slice::from_ref(&every) } else { listed };
        let map_entries = match params.map {
            MapCache::Ideal => 0,
            MapCache::Cached { stored_bytes, .. } => shape.page_bytes / stored_bytes,
        };
        let mut space = Space {
            groups: Vec::new(),
            partial: HashMap::default(),
            whole: u64::MAX >> (64 - shape.page_bytes / shape.sector_bytes),
            map_entries,
        };
        let mut first = 0;
        for (index, channels) in groups.iter().enumerate() {
            let seed = seed.derive(&format!("flash/group/{index}"));
            let group = space.group(params, channels, first, seed)?;
            first += group.pages;
            space.groups.push(group);
        }
        if let Fill::Replay { occupancy, overwrites } = params.fill {
            space.replay(occupancy, overwrites, seed)?;
        }
        Ok(space)
    }

    fn group(
        &self,
        params: &FlashParams,
        channels: &[u32],
        first: u32,
        seed: Seed,
    ) -> Result<Group, FlashError> {
        let (shape, collect) = (&params.shape, &params.collect);
        let planes = params.layout.order.planes(shape, channels);
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
            space: Room::Fixed { blocks, reserve_blocks, idle_blocks: reserve_blocks },
        };
        let content = match params.fill {
            Fill::Analytic { occupancy } => {
                let pages = map_local + (occupancy * f64::from(pages)).round() as u32;
                Content::Steady { pages }
            }
            Fill::Empty | Fill::Replay { .. } => Content::Written { pages: map_local },
        };
        let schemes = Schemes {
            separation: &collect.separation,
            separation_settings: &collect.separation_settings,
            reclaim: &collect.reclaim,
            reclaim_settings: &collect.reclaim_settings,
        };
        let mut maker = Maker::new(geometry, schemes, content, seed);
        let layers: Result<Vec<Box<dyn Layer>>, FlashError> =
            (0..layers).map(|_| maker.make()).collect();
        let layers = layers?;
        let pages = pages * layers.len() as u32;
        Ok(Group { layers, planes, pages, map_local, first, superblock })
    }

    /// Writes the first share of each group in order and then pages of it at random.
    fn replay(&mut self, occupancy: f64, overwrites: f64, seed: Seed) -> Result<(), FlashError> {
        for (index, group) in self.groups.iter_mut().enumerate() {
            let pages = (occupancy * f64::from(group.pages)) as u32;
            let mut rng = seed.derive(&format!("flash/replay/{index}")).rng();
            let again = (f64::from(pages) * overwrites) as u64;
            let random = (0..again).map(|_| rng.below(u64::from(pages)) as u32);
            for page in (0..pages).chain(random) {
                let (layer, local) = group.of_page(page);
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

    /// The mask of all sectors of a page.
    pub fn whole(&self) -> u64 {
        self.whole
    }

    /// The number of a page over all groups.
    #[inline]
    pub fn global(&self, group: u16, page: u32) -> u32 {
        self.groups[usize::from(group)].first + page
    }

    /// A page of the host by its layer.
    #[inline]
    pub fn of_page(&self, group: u16, page: u32) -> Local {
        let (layer, page) = self.groups[usize::from(group)].of_page(page);
        Local { group, layer: layer as u32, page }
    }

    /// A page of the mapping table by its layer.
    pub fn of_map(&self, group: u16, page: u32) -> Local {
        let (layer, page) = self.groups[usize::from(group)].of_map(page);
        Local { group, layer: layer as u32, page }
    }

    /// The page of the mapping table that holds the entry of a page.
    #[inline]
    pub fn map_page(&self, page: u32) -> u32 {
        page / self.map_entries.max(1)
    }

    /// Where a page lies.
    #[inline]
    pub fn locate(&self, local: Local) -> Option<Place> {
        let group = &self.groups[usize::from(local.group)];
        let layer = local.layer as usize;
        let at = group.layers[layer].locate(local.page)?;
        Some(group.place(layer, at))
    }

    /// The place of an address of a layer.
    pub fn place(&self, group: u16, layer: u32, at: Address) -> Place {
        self.groups[usize::from(group)].place(layer as usize, at)
    }

    /// The planes on which a block of a layer lies.
    pub fn planes_of(&self, group: u16, layer: u32) -> &[u32] {
        let group = &self.groups[usize::from(group)];
        if group.superblock {
            &group.planes
        } else {
            std::slice::from_ref(&group.planes[layer as usize])
        }
    }

    /// A layer.
    pub fn layer(&self, group: u16, layer: u32) -> &dyn Layer {
        self.groups[usize::from(group)].layers[layer as usize].as_ref()
    }

    /// A layer, to be changed.
    pub fn layer_mut(&mut self, group: u16, layer: u32) -> &mut dyn Layer {
        self.groups[usize::from(group)].layers[layer as usize].as_mut()
    }

    /// Every layer with its group and number.
    pub fn layers(&self) -> impl Iterator<Item = (u16, u32, &dyn Layer)> {
        self.groups.iter().enumerate().flat_map(|(group, item)| {
            let layers = item.layers.iter().enumerate();
            layers.map(move |(index, layer)| (group as u16, index as u32, layer.as_ref()))
        })
    }

    /// Announces a write of consecutive pages to a layer that sees all of them; layers of one
    /// plane are told page by page.
    pub fn begin(&mut self, group: u16, tenant: u16, first_page: u32, pages: u32) {
        let group = &mut self.groups[usize::from(group)];
        if group.superblock {
            let (layer, first_page) = group.of_page(first_page);
            let request = HostRequest { first_page, pages, write: true };
            group.layers[layer].begin(tenant, &request);
        }
    }

    /// Writes a page; what flash has to do is in `steps`. Errors: a layer that cannot be freed.
    pub fn write(
        &mut self,
        local: Local,
        tenant: u16,
        steps: &mut Steps,
    ) -> Result<Place, FtlError> {
        let group = &mut self.groups[usize::from(local.group)];
        let index = local.layer as usize;
        let layer = group.layers[index].as_mut();
        if !group.superblock {
            layer.begin(tenant, &HostRequest { first_page: local.page, pages: 1, write: true });
        }
        layer.write(local.page, steps)?;
        layer.end(steps);
        Ok(group.place(index, steps.program))
    }

    /// Sectors of a mapped page that hold data.
    #[inline]
    pub fn sectors(&self, global: u32) -> u64 {
        if self.partial.is_empty() {
            return self.whole;
        }
        self.partial.get(&global).copied().unwrap_or(self.whole)
    }

    /// Notes which sectors of a page hold data.
    #[inline]
    pub fn set_sectors(&mut self, global: u32, sectors: u64) {
        if sectors != self.whole {
            self.partial.insert(global, sectors);
        } else if !self.partial.is_empty() {
            self.partial.remove(&global);
        }
    }
}
