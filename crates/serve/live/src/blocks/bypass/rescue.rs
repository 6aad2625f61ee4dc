//! Dirty content that is rescued from a log that takes nothing any more.
//!
//! For: backing devices that get all that only the cache has. Must never know: requests, the log's
//! format. Units: bytes, blocks. Content is read from where it may stand, and checked; its backing
//! device takes it, and is synced. What cannot be read is lost. A volume whose backing device fails
//! ends: its content stays in the log.

use super::super::volumes::ServedVolume;
use super::tokens::BypassToken;
use crate::io::{Buffer, IoError, IoOp, Output, Submit};
use crate::log::DevicePage;
use crate::log::format::data_checksum;
use cachewright_types::TenantId;
use slab::Slab;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// Blocks of one volume that are rescued side by side.
const UNDER_WAY: usize = 16;

/// Dirty content of a block, and where it may be read.
#[derive(Clone, Debug, Default)]
pub struct DirtyContent {
    /// Its checksum.
    pub checksum: u32,
    /// A flush, or a sync of the log, has made it durable.
    pub durable: bool,
    /// It is on its way to the log.
    pub memory: Option<Buffer>,
    /// Where it stands, if it may be read there.
    pub place: Option<DevicePage>,
    /// Where it stood before the cleaner copied it, if it stands there still.
    pub copied_from: Option<DevicePage>,
    /// Reads of its place that are left before it counts as damaged there.
    pub tries: u8,
}

impl DirtyContent {
    /// Where it is read next.
    fn next_place(&mut self) -> Option<DevicePage> {
        match self.tries.checked_sub(1).zip(self.place) {
            Some((left, place)) => {
                self.tries = left;
                Some(place)
            }
            None => self.copied_from.take(),
        }
    }
}

/// A block under way.
struct Rescued {
    tenant: TenantId,
    number: u64,
    content: DirtyContent,
}

/// How far a volume is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RescueStage {
    Writing,
    Syncing,
    Ended,
}

struct RescuedVolume {
    volume: ServedVolume,
    stage: RescueStage,
    waiting: BTreeMap<u64, DirtyContent>,
    under_way: BTreeSet<u64>,
    written: u64,
}

/// What has happened to a volume, or to a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RescueEvent {
    /// A block is under way no more.
    BlockEnded { tenant: TenantId, number: u64 },
    /// The content of a block is lost; `durable` if a flush may have made it durable.
    Lost { tenant: TenantId, number: u64, durable: bool },
    /// All that could be read is durable on the backing device.
    Ended(TenantId),
    /// The backing device has failed.
    Failed(TenantId),
}

impl RescuedVolume {
    fn new(volume: ServedVolume) -> RescuedVolume {
        RescuedVolume {
            volume,
            stage: RescueStage::Writing,
            waiting: BTreeMap::new(),
            under_way: BTreeSet::new(),
            written: 0,
        }
    }
}

/// Rescues content of all volumes side by side.
pub struct Rescue {
    volumes: Vec<RescuedVolume>,
    blocks: Slab<Rescued>,
    block_bytes: u64,
    namespace: u64,
    events: Vec<RescueEvent>,
}

impl Rescue {
    /// Nothing to rescue yet, for volumes of tenants 0, 1 and so on.
    pub fn new(volumes: &[ServedVolume], block_bytes: u64, namespace: u64) -> Rescue {
        let volumes = volumes.iter().copied().map(RescuedVolume::new).collect();
        Rescue { volumes, blocks: Slab::default(), block_bytes, namespace, events: Vec::new() }
    }

    /// One more tenant's volume.
    pub fn add_volume(&mut self, volume: ServedVolume) {
        self.volumes.push(RescuedVolume::new(volume));
    }

    /// A tenant's volume has this size from now on.
    pub fn resize_volume(&mut self, tenant: TenantId, bytes: u64) {
        self.volumes[tenant.index()].volume.bytes = bytes;
    }

    /// Content of a block is to be rescued.
    pub fn add(&mut self, tenant: TenantId, number: u64, content: DirtyContent) {
        self.volumes[tenant.index()].waiting.insert(number, content);
    }

    /// Nothing of a volume is to be rescued: its backing device has failed before.
    pub fn leave(&mut self, tenant: TenantId) {
        self.volumes[tenant.index()].stage = RescueStage::Ended;
    }

    /// Only content that the log has durably may be written to backing devices: a recovery of the
    /// log finds the same.
    pub fn keep_durable_only(&mut self) {
        for volume in &mut self.volumes {
            for content in volume.waiting.values_mut().filter(|content| !content.durable) {
                (content.memory, content.place, content.copied_from) = (None, None, None);
            }
        }
    }

    /// Whether content of a block of a range is not rescued yet.
    pub fn holds(&self, tenant: TenantId, blocks: &Range<u64>) -> bool {
        let volume = &self.volumes[tenant.index()];
        !blocks.is_empty()
            && (volume.waiting.range(blocks.clone()).next().is_some()
                || volume.under_way.range(blocks.clone()).next().is_some())
    }

    /// Blocks that only the log has: those of volumes whose devices have failed.
    pub fn left_in_log(&self, tenant: TenantId) -> u64 {
        let volume = self.volumes.get(tenant.index());
        volume.map_or(0, |volume| (volume.waiting.len() + volume.under_way.len()) as u64)
    }

    /// Blocks that were written to the backing device.
    pub fn written(&self, tenant: TenantId) -> u64 {
        self.volumes.get(tenant.index()).map_or(0, |volume| volume.written)
    }

    /// Whether no operation is under way.
    pub fn is_idle(&self) -> bool {
        self.blocks.is_empty()
            && self.volumes.iter().all(|volume| volume.stage != RescueStage::Syncing)
    }

    /// What has happened since the last call.
    pub fn take_events(&mut self) -> Vec<RescueEvent> {
        std::mem::take(&mut self.events)
    }

    /// Begins what is due.
    pub fn advance(&mut self, io: &mut impl Submit) {
        for index in 0..self.volumes.len() {
            while self.volumes[index].stage == RescueStage::Writing {
                let volume = &mut self.volumes[index];
                if volume.under_way.len() >= UNDER_WAY {
                    break;
                }
                let Some((number, content)) = volume.waiting.pop_first() else {
                    if volume.under_way.is_empty() {
                        volume.stage = RescueStage::Syncing;
                        let token = BypassToken::RescueSync(index).token(self.namespace);
                        io.submit(token, IoOp::Sync { file: volume.volume.backing });
                    }
                    break;
                };
                volume.under_way.insert(number);
                let tenant = TenantId(index as u16);
                let block = self.blocks.insert(Rescued { tenant, number, content });
                self.go_on(io, block);
            }
        }
    }

    /// Writes content that is in memory, or reads it from the next place; else it is lost.
    fn go_on(&mut self, io: &mut impl Submit, block: usize) {
        let Some(Rescued { tenant, number, content }) = self.blocks.get_mut(block) else { return };
        let token = BypassToken::Rescue(block).token(self.namespace);
        if let Some(mut data) = content.memory.take() {
            let ServedVolume { backing: file, bytes, .. } = self.volumes[tenant.index()].volume;
            let offset = *number * self.block_bytes;
            data.truncate(bytes.saturating_sub(offset) as usize);
            io.submit(token, IoOp::Write { file, offset, buffer: Arc::new(data) });
        } else if let Some(DevicePage { file, offset }) = content.next_place() {
            let buffer = Buffer::zeroed(self.block_bytes as usize);
            io.submit(token, IoOp::Read { file, offset, buffer });
        } else {
            let (tenant, number, durable) = (*tenant, *number, content.durable);
            self.events.push(RescueEvent::Lost { tenant, number, durable });
            self.end_block(block);
        }
    }

    /// An operation on a block is done.
    pub fn on_done(
        &mut self,
        io: &mut impl Submit,
        block: usize,
        output: Output,
        error: Option<IoError>,
    ) {
        let Some(Rescued { tenant, number, content }) = self.blocks.get_mut(block) else { return };
        let volume = &mut self.volumes[tenant.index()];
        if let Output::Buffer(data, _) = output {
            let checksum = data_checksum(volume.volume.id, *number, &data);
            if error.is_none() && checksum == content.checksum {
                content.memory = Some(data);
            }
            match volume.stage {
                RescueStage::Writing => self.go_on(io, block),
                RescueStage::Syncing | RescueStage::Ended => self.end_block(block),
            }
        } else if error.is_some() {
            let tenant = *tenant;
            self.fail(tenant);
            self.end_block(block);
        } else {
            volume.written += 1;
            self.end_block(block);
        }
    }

    fn end_block(&mut self, block: usize) {
        let Some(Rescued { tenant, number, content }) = self.blocks.try_remove(block) else {
            return;
        };
        let volume = &mut self.volumes[tenant.index()];
        volume.under_way.remove(&number);
        if volume.stage == RescueStage::Ended {
            volume.waiting.insert(number, content); // It stays in the log.
        }
        self.events.push(RescueEvent::BlockEnded { tenant, number });
    }

    /// A sync of a volume's backing device is done.
    pub fn synced(&mut self, tenant: TenantId, error: Option<IoError>) {
        if error.is_some() {
            return self.fail(tenant);
        }
        if self.volumes[tenant.index()].stage == RescueStage::Syncing {
            self.volumes[tenant.index()].stage = RescueStage::Ended;
            self.events.push(RescueEvent::Ended(tenant));
        }
    }

    /// A volume's backing device has failed.
    pub fn fail(&mut self, tenant: TenantId) {
        let volume = &mut self.volumes[tenant.index()];
        if volume.stage != RescueStage::Ended {
            volume.stage = RescueStage::Ended;
            self.events.push(RescueEvent::Failed(tenant));
        }
    }
}
