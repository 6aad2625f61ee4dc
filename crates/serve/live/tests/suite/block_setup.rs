//! What a server of the tests is made of: its settings, its formatted devices, and itself.
//!
//! For: worlds that lose power. Must never know: requests. Units: bytes, blocks.

use crate::block_world::{BLOCK, SECTOR, TENANTS};
use crate::division_world::wandering;
use cachewright_cache::{Cache, Engine, Quotas, Shrink, WriteMode};
use cachewright_live::blocks::{
    BackgroundSettings, BlockServer, CleaningSettings, DeviceLayout, RestoreError, Restored,
    ServedVolume, ServerParts,
};
use cachewright_live::io::FileId;
use cachewright_live::io::sim::{Sim, SimFile};
use cachewright_live::log::format::{SetId, Volume, VolumeId};
use cachewright_live::log::{FormatSettings, RecoveredLog, format, open, read_log};
use cachewright_types::Seed;

/// What a world is made of.
#[derive(Clone, Debug)]
pub struct Setting {
    pub policy: &'static str,
    pub mode: WriteMode,
    pub quotas: Quotas,
    /// Quotas of tenants wander in this time; 0: they stay.
    pub divided_ns: u64,
    /// When tenants give up blocks beyond smaller quotas.
    pub shrink: Shrink,
    /// Blocks of each volume.
    pub blocks: u64,
    /// Sectors that each volume lacks of its last block, whatever its size.
    pub short: u64,
    /// Volumes that there are, and blocks by which each can grow.
    pub backings: (u16, u64),
    /// The volumes that are served, by tenant, and the blocks by which each has grown.
    pub served: Vec<(u16, u64)>,
    /// Volumes that were served before.
    pub away: Vec<(u16, u64)>,
    pub devices: usize,
    /// Segments of each device.
    pub segments: u64,
    /// Bytes of a segment.
    pub segment: u32,
    /// Most blocks of a group of the log.
    pub group_blocks: u32,
    /// How the log is cleaned.
    pub cleaning: CleaningSettings,
    /// The devices of each volume.
    pub layout: Laid,
    /// Work that no request waits for.
    pub background: BackgroundSettings,
    /// Blocks whose content is kept in memory, too.
    pub memory_blocks: u64,
}

/// Which devices hold which volumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Laid {
    /// All devices hold all volumes.
    Striped,
    /// Volume v has device (v + this) modulo their number.
    Apart(u16),
}

impl Setting {
    pub fn of(policy: &'static str, mode: WriteMode) -> Setting {
        let quotas = Quotas::Shared(6);
        let (blocks, devices, segments, segment) = (10, 1, 11, 64 << 10);
        let (divided_ns, group_blocks, cleaning) = (0, 4, CleaningSettings::default());
        let served = (0..TENANTS).map(|volume| (volume, 0)).collect();
        Setting {
            policy,
            mode,
            quotas,
            divided_ns,
            shrink: Shrink::AtOnce,
            blocks,
            short: 0,
            backings: (TENANTS, 0),
            served,
            away: Vec::new(),
            devices,
            segments,
            segment,
            group_blocks,
            cleaning,
            layout: Laid::Striped,
            background: BackgroundSettings::default(),
            memory_blocks: 0,
        }
    }

    pub fn cache(&self) -> Cache<Box<dyn cachewright_policy::Policy>> {
        let make = |pool: usize, capacity: u32| {
            let seed = Seed(0).derive(&format!("pool/{pool}"));
            cachewright_policy::registry::boxed(self.policy, &[], capacity, seed).unwrap()
        };
        let engine = Engine::new(self.served.len(), &self.quotas, self.mode, make);
        Cache::new(engine.shrinking(self.shrink), 12)
    }

    /// A volume is served from the next start on, behind the others, as large as before.
    pub fn serve(&mut self, volume: u16) {
        let before = self.away.extract_if(.., |(away, _)| *away == volume).next();
        self.served.push(before.unwrap_or((volume, 0)));
    }

    /// A volume is served no more from the next start on.
    pub fn leave(&mut self, volume: u16) {
        let left = self.served.extract_if(.., |(served, _)| *served == volume);
        self.away.extend(left);
    }

    /// The tenant of a volume; nothing if it is not served.
    pub fn tenant(&self, volume: u16) -> Option<u16> {
        let found = self.served.iter().position(|(served, _)| *served == volume);
        found.map(|tenant| tenant as u16)
    }

    /// A volume that is served, for the server of blocks.
    pub fn volume(&self, volume: u16, files: &(Vec<FileId>, Vec<FileId>)) -> ServedVolume {
        let bytes = self.sectors_of(volume) * SECTOR;
        ServedVolume { id: id_of(volume), bytes, backing: files.1[usize::from(volume)] }
    }

    /// The pools of devices and tenants.
    fn device_layout(&self) -> DeviceLayout {
        match self.layout {
            Laid::Striped => DeviceLayout::default(),
            Laid::Apart(shift) => {
                let pool = |(volume, _): &(u16, u64)| usize::from(volume + shift) % self.devices;
                let tenants = self.served.iter().map(pool).collect();
                DeviceLayout { devices: (0..self.devices).collect(), tenants }
            }
        }
    }

    /// Blocks of a volume that is served.
    pub fn blocks_of(&self, volume: u16) -> u64 {
        let found = self.served.iter().find(|(served, _)| *served == volume);
        self.blocks + found.unwrap().1
    }

    /// Sectors of a volume that is served.
    pub fn sectors_of(&self, volume: u16) -> u64 {
        self.blocks_of(volume) * (BLOCK / SECTOR) - self.short
    }

    /// The volumes that devices with this table know from the next start on.
    pub fn table(&self, known: &[Volume]) -> Vec<Volume> {
        let mut table = known.to_vec();
        for (volume, more) in &self.served {
            let (id, bytes) = (id_of(*volume), (self.blocks + more) * BLOCK - self.short * SECTOR);
            match table.iter_mut().find(|known| known.id == id) {
                Some(known) => known.bytes = bytes,
                None => table.push(Volume { id, name: format!("volume-{volume}"), bytes }),
            }
        }
        table
    }
}

/// The number of a volume in the log.
pub fn id_of(volume: u16) -> VolumeId {
    VolumeId(u32::from(volume) + 1)
}

/// A new simulation with formatted devices.
pub fn formatted(setting: &Setting, seed: Seed) -> (Sim, (Vec<FileId>, Vec<FileId>)) {
    let mut sim = Sim::new(seed);
    let bytes = (2 << 20) + setting.segments * u64::from(setting.segment);
    let devices: Vec<FileId> =
        (0..setting.devices).map(|_| sim.add_file(SimFile::new(bytes))).collect();
    let (backings, more) = setting.backings;
    let backing = || SimFile::new((setting.blocks + more) * BLOCK - setting.short * SECTOR);
    let volumes: Vec<FileId> = (0..backings).map(|_| sim.add_file(backing())).collect();
    let format_settings = FormatSettings {
        set: SetId(9),
        block_bytes: BLOCK as u32,
        segment_bytes: setting.segment,
        volumes: setting.table(&[]),
    };
    format(&mut sim, &devices, &format_settings).unwrap();
    (sim, (devices, volumes))
}

/// A server on what a simulation holds; nothing if a device fails on the way.
pub fn served(
    sim: &mut Sim,
    setting: &Setting,
    files: &(Vec<FileId>, Vec<FileId>),
) -> Option<Result<(BlockServer, Restored), RestoreError>> {
    let (parts, found) = parts(sim, setting, files)?;
    let known = parts.open.superblock.volumes.clone();
    let opened = BlockServer::open(sim, parts, found).map(|(mut server, restored)| {
        if setting.divided_ns > 0 {
            let total_blocks = setting.quotas.blocks().iter().sum();
            let tenants = setting.served.len();
            server.divide_by(wandering(tenants, total_blocks, setting.divided_ns));
        }
        server.set_background(setting.background);
        server.set_memory(setting.memory_blocks * BLOCK);
        (server, restored)
    });
    let (mut server, restored) = match opened {
        Ok(opened) => opened,
        Err(error) => return Some(Err(error)),
    };
    let table = setting.table(&known);
    if table != known {
        let (written, others) = server.set_table(sim, table, Vec::new());
        written.ok()?;
        others.into_iter().for_each(|done| server.on_done(sim, done));
    }
    Some(Ok((server, restored)))
}

/// What such a server is made of, and what is found; nothing if a device fails on the way.
pub fn parts(
    sim: &mut Sim,
    setting: &Setting,
    files: &(Vec<FileId>, Vec<FileId>),
) -> Option<(ServerParts, RecoveredLog)> {
    let set = open(sim, &files.0).ok()?;
    let found = read_log(sim, &set).ok()?;
    let found = found.settle(sim).ok()?;
    let volume = |(volume, _): &(u16, u64)| setting.volume(*volume, files);
    let parts = ServerParts {
        cache: setting.cache(),
        open: set,
        group_blocks: setting.group_blocks,
        spare_segments: 3,
        cleaning: setting.cleaning.clone(),
        layout: setting.device_layout(),
        volumes: setting.served.iter().map(volume).collect(),
    };
    Some((parts, found))
}
