//! Marks in superblocks, written while other operations are under way.
//!
//! For: a server that goes on without its cache. Must never know: why. Units: bytes. A mark stands
//! when both copies on one device are durable: a copy that cannot be read later does not hide it.
//! The copies are written one after the other, so that one is valid at any time.

use super::format::{Bypassed, Superblock, Volume};
use super::open::{OpenSet, OpenSetError, rewrite};
use super::set::DeviceSet;
use crate::io::{Buffer, Io, IoError, IoOp, Token};
use std::sync::Arc;

/// How far a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MarkStage {
    /// Copies that are to be written yet, the one at hand among them.
    Write { left: u32 },
    /// The copy at hand is made durable.
    Sync { left: u32 },
    /// Both copies have the mark, or one could not be written.
    Ended { marked: bool },
}

/// Writes marks to all devices of a set.
#[derive(Clone, Debug)]
pub struct Marker {
    set: DeviceSet,
    superblock: Superblock,
    newest_copies: Vec<u64>,
    /// The mark under way, device by device.
    stages: Vec<MarkStage>,
}

impl Marker {
    /// Marks of a set that is open.
    pub fn new(open: OpenSet) -> Marker {
        let OpenSet { set, superblock, newest_copies, .. } = open;
        Marker { set, superblock, newest_copies, stages: Vec::new() }
    }

    /// The table of volumes in the superblocks.
    pub fn volumes(&self) -> &[Volume] {
        &self.superblock.volumes
    }

    /// What the owner of the set keeps with it.
    pub fn notes(&self) -> &[u8] {
        &self.superblock.notes
    }

    /// Writes another table of volumes and other notes of the owner, and waits until both are
    /// durable. Errors: a device fails; they are too large; a mark stands or is on its way.
    pub fn set_volumes(
        &mut self,
        io: &mut impl Io,
        volumes: Vec<Volume>,
        notes: Vec<u8>,
    ) -> Result<(), OpenSetError> {
        if self.is_busy() || self.superblock.bypassed.is_some() {
            return Err(OpenSetError::Io { device: 0, error: IoError::IO });
        }
        let mut open = OpenSet {
            set: self.set.clone(),
            superblock: Superblock { volumes, notes, ..self.superblock.clone() },
            newest_copies: self.newest_copies.clone(),
            unreadable: Vec::new(),
        };
        let written = rewrite(io, &mut open);
        // Some devices may have the new table: the next edition must be newer than all.
        self.superblock.edition = open.superblock.edition;
        self.newest_copies = open.newest_copies;
        if written.is_ok() {
            self.superblock.volumes = open.superblock.volumes;
            self.superblock.notes = open.superblock.notes;
        }
        written
    }

    /// Whether a mark is on its way.
    pub fn is_busy(&self) -> bool {
        self.stages.iter().any(|stage| !matches!(stage, MarkStage::Ended { .. }))
    }

    /// Begins to write a mark. Operations have the token of their device; one is under way on each.
    pub fn begin(&mut self, io: &mut impl Io, mark: Bypassed, token: impl Fn(usize) -> Token) {
        self.superblock.bypassed = Some(mark);
        self.superblock.edition += 1;
        self.stages = vec![MarkStage::Write { left: 2 }; self.set.files().len()];
        (0..self.stages.len()).for_each(|device| self.write(io, device, token(device)));
    }

    fn write(&mut self, io: &mut impl Io, device: usize, token: Token) {
        let copy = Superblock { device: device as u32, ..self.superblock.clone() }.encode();
        let Ok(copy) = copy else {
            self.stages[device] = MarkStage::Ended { marked: false };
            return;
        };
        let offset = Superblock::offset(1 - self.newest_copies[device]);
        let (file, buffer) = (self.set.files()[device], Arc::new(Buffer::padded(&copy)));
        io.submit(token, IoOp::Write { file, offset, buffer });
    }

    /// An operation on a device is done. When none is left: whether the mark stands.
    pub fn on_done(
        &mut self,
        io: &mut impl Io,
        (device, token): (usize, Token),
        error: Option<IoError>,
    ) -> Option<bool> {
        let stage = self.stages.get(device).copied()?;
        self.stages[device] = match stage {
            MarkStage::Ended { .. } => return None,
            _ if error.is_some() => MarkStage::Ended { marked: false },
            MarkStage::Write { left } => {
                io.submit(token, IoOp::Sync { file: self.set.files()[device] });
                MarkStage::Sync { left }
            }
            MarkStage::Sync { left } => {
                self.newest_copies[device] = 1 - self.newest_copies[device];
                match left - 1 {
                    0 => MarkStage::Ended { marked: true },
                    left => MarkStage::Write { left },
                }
            }
        };
        if matches!((stage, self.stages[device]), (MarkStage::Sync { .. }, MarkStage::Write { .. }))
        {
            self.write(io, device, token);
        }
        let marked = |stage: &MarkStage| *stage == MarkStage::Ended { marked: true };
        (!self.is_busy()).then(|| self.stages.iter().any(marked))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::super::format::{SetId, Volume, VolumeId};
    use super::super::{FormatSettings, format, open};
    use super::*;
    use crate::io::FileId;
    use crate::io::sim::{Fate, Fault, Sim, SimFile};
    use cachewright_types::Seed;

    fn set(sim: &mut Sim) -> Vec<FileId> {
        let bytes = (2 << 20) + (8 << 16);
        let files: Vec<FileId> = (0..2).map(|_| sim.add_file(SimFile::new(bytes))).collect();
        let volume = |id| Volume { id: VolumeId(id), name: format!("v{id}"), bytes: 8192 };
        let (set, volumes) = (SetId(3), vec![volume(1), volume(2)]);
        let settings = FormatSettings { set, block_bytes: 4096, segment_bytes: 64 << 10, volumes };
        format(sim, &files, &settings).unwrap();
        files
    }

    fn mark() -> Bypassed {
        Bypassed { error: 5, passed: [VolumeId(2)].into() }
    }

    /// Writes a mark; returns whether it stands.
    fn write(sim: &mut Sim, marker: &mut Marker) -> bool {
        marker.begin(sim, mark(), |device| Token(device as u64));
        let mut done = Vec::new();
        loop {
            sim.wait(&mut done);
            for done in done.drain(..) {
                let device = (done.token.0 as usize, done.token);
                if let Some(stands) = marker.on_done(sim, device, done.error) {
                    return stands;
                }
            }
        }
    }

    #[test]
    fn a_mark_that_stands_is_found_without_any_one_copy() {
        let mut sim = Sim::new(Seed(1));
        let files = set(&mut sim);
        let mut marker = Marker::new(open(&mut sim, &files).unwrap());
        sim.set_faults(Box::new(|_, op| {
            let failing = op.file_range().is_some_and(|(file, ..)| file == FileId(0));
            failing.then_some(Fault::Error(IoError::IO))
        }));
        assert!(write(&mut sim, &mut marker), "the other device takes it");
        assert!(!marker.is_busy());
        let mut left = sim.crash(Seed(2), std::iter::repeat(Fate::Lost));
        assert_eq!(open(&mut left, &files).unwrap().superblock.bypassed, Some(mark()));
        for copy in [0, 1] {
            let mut left = sim.crash(Seed(3), std::iter::repeat(Fate::Lost));
            left.set_faults(Box::new(move |_, op| {
                let here = (FileId(1), Superblock::offset(copy));
                let failing = op.file_range().is_some_and(|(file, at, _)| (file, at) == here);
                failing.then_some(Fault::Error(IoError::IO))
            }));
            let found = open(&mut left, &files).unwrap();
            assert_eq!(found.superblock.bypassed, Some(mark()));
            let page = found.unreadable.iter().map(|page| (page.device, page.offset));
            assert_eq!(page.collect::<Vec<_>>(), [(1, Superblock::offset(copy))]);
        }
    }

    #[test]
    fn a_mark_that_no_device_takes_does_not_stand() {
        for failing in 0..8 {
            let mut sim = Sim::new(Seed(failing));
            let files = set(&mut sim);
            let mut marker = Marker::new(open(&mut sim, &files).unwrap());
            let mut begun = [0; 2];
            // Each device takes so many operations of the mark.
            sim.set_faults(Box::new(move |_, op| {
                let (file, ..) = op.file_range()?;
                begun[file.index()] += 1;
                (begun[file.index()] > failing).then_some(Fault::Error(IoError::IO))
            }));
            assert_eq!(write(&mut sim, &mut marker), failing >= 4, "{failing}");
            let mut left = sim.crash(Seed(2), std::iter::repeat(Fate::Lost));
            open(&mut left, &files).unwrap();
        }
    }
}
