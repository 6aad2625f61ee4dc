//! What a server of the tests is made of: its settings, its formatted devices, and itself.
//!
//! For: worlds that lose power. Must never know: requests. Units: bytes, blocks.

use crate::block_world::{BLOCK, TENANTS};
use crate::division_world::wandering;
use cachewright_cache::{Cache, Engine, Quotas, WriteMode};
use cachewright_live::blocks::{
    BlockServer, CleaningSettings, Parts, RestoreError, Restored, ServedVolume,
};
use cachewright_live::io::FileId;
use cachewright_live::io::sim::{Sim, SimFile};
use cachewright_live::log::format::{SetId, Volume, VolumeId};
use cachewright_live::log::{FormatSettings, Recovered, format, open, recover};
use cachewright_types::Seed;

/// What a world is made of.
#[derive(Clone, Debug)]
pub struct Setting {
    pub policy: &'static str,
    pub mode: WriteMode,
    pub quotas: Quotas,
    /// Quotas of tenants wander in this time; 0: they stay.
    pub divided_ns: u64,
    /// Blocks of each volume.
    pub blocks: u64,
    pub devices: usize,
    /// Segments of each device.
    pub segments: u64,
    /// Bytes of a segment.
    pub segment: u32,
    /// Most blocks of a group of the log.
    pub group_blocks: u32,
    /// How the log is cleaned.
    pub cleaning: CleaningSettings,
}

impl Setting {
    pub fn of(policy: &'static str, mode: WriteMode) -> Setting {
        let quotas = Quotas::Shared(6);
        let (blocks, devices, segments, segment) = (10, 1, 11, 64 << 10);
        let (divided_ns, group_blocks, cleaning) = (0, 4, CleaningSettings::default());
        Setting {
            policy,
            mode,
            quotas,
            divided_ns,
            blocks,
            devices,
            segments,
            segment,
            group_blocks,
            cleaning,
        }
    }

    pub fn cache(&self) -> Cache<Box<dyn cachewright_policy::Policy>> {
        let make = |pool: usize, capacity: u32| {
            let seed = Seed(0).derive(&format!("pool/{pool}"));
            cachewright_policy::registry::boxed(self.policy, &[], capacity, seed).unwrap()
        };
        Cache::new(Engine::new(TENANTS.into(), &self.quotas, self.mode, make), 12)
    }
}

/// A new simulation with formatted devices.
pub fn formatted(setting: &Setting, seed: Seed) -> (Sim, (Vec<FileId>, Vec<FileId>)) {
    let mut sim = Sim::new(seed);
    let bytes = (2 << 20) + setting.segments * u64::from(setting.segment);
    let devices: Vec<FileId> =
        (0..setting.devices).map(|_| sim.add_file(SimFile::new(bytes))).collect();
    let volumes: Vec<FileId> =
        (0..TENANTS).map(|_| sim.add_file(SimFile::new(setting.blocks * BLOCK))).collect();
    let volume = |id: u32| Volume {
        id: VolumeId(id + 1),
        name: format!("volume-{id}"),
        bytes: setting.blocks * BLOCK,
    };
    let format_settings = FormatSettings {
        set: SetId(9),
        block_bytes: BLOCK as u32,
        segment_bytes: setting.segment,
        volumes: (0..u32::from(TENANTS)).map(volume).collect(),
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
    let opened = BlockServer::open(sim, parts, found).map(|(mut server, restored)| {
        if setting.divided_ns > 0 {
            let total_blocks = setting.quotas.blocks().iter().sum();
            server.divide_by(wandering(total_blocks, setting.divided_ns));
        }
        (server, restored)
    });
    Some(opened)
}

/// What such a server is made of, and what is found; nothing if a device fails on the way.
pub fn parts(
    sim: &mut Sim,
    setting: &Setting,
    files: &(Vec<FileId>, Vec<FileId>),
) -> Option<(Parts, Recovered)> {
    let set = open(sim, &files.0).ok()?;
    let found = recover(sim, &set).ok()?;
    let volume = |(index, file): (usize, &FileId)| ServedVolume {
        id: VolumeId(index as u32 + 1),
        bytes: setting.blocks * BLOCK,
        backing: *file,
    };
    let parts = Parts {
        cache: setting.cache(),
        open: set,
        group_blocks: setting.group_blocks,
        spare_segments: 3,
        cleaning: setting.cleaning.clone(),
        volumes: files.1.iter().enumerate().map(volume).collect(),
        namespaces: [1, 2],
    };
    Some((parts, found))
}
