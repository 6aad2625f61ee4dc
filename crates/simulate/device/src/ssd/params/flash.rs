//! The parameters of a drive as the flash back-end wants them.
//!
//! For: plain numbers out of words and units. Must never know: presets, stack files. Units: those
//! of [`FlashParams`].

use super::{
    CellKind, ChannelTiming, FillMethod, MapLocation, MapSharing, PlaneLetters, SsdParams, Suspend,
    UnwrittenReads,
};
use crate::ssd::drive::Power;
use crate::ssd::flash::{
    self, Bus, Cell, Collect, FlashParams, FlashSchedule, FlashShape, Joules, MapCache, PlaneLayout,
};

impl SsdParams {
    /// What the back-end is built from, for a drive of so many tenants.
    pub fn flash(&self, tenants: u32) -> FlashParams {
        FlashParams {
            shape: self.shape(),
            bus: match self.channel_timing {
                ChannelTiming::Truncated => Bus::mqsim(self.channel_rate, self.channel_width),
                ChannelTiming::Exact => Bus::exact(self.channel_rate, self.channel_width),
            },
            cell: self.cells(),
            schedule: FlashSchedule {
                die_interleave: self.die_interleave,
                multi_plane: self.multi_plane,
                suspend_program: matches!(self.suspend, Suspend::Program | Suspend::Both),
                suspend_erase: matches!(self.suspend, Suspend::Erase | Suspend::Both),
                max_suspends: self.suspends_most,
                copy_back: self.copy_back,
                gc_preemptible: self.preemptible_cleaning,
            },
            priorities: self.priority_classes.0.clone(),
            layout: PlaneLayout {
                order: order(self.plane_order),
                superblock: self.superblock,
                groups: self.channel_groups.lists(self.channels),
            },
            collect: self.collect(),
            map: match self.mapping {
                MapLocation::Ideal => MapCache::Ideal,
                MapLocation::Cached => MapCache::Cached {
                    bytes: self.map_cache.0,
                    entry_bytes: self.map_entry.0 as u32,
                    stored_bytes: self.map_stored_entry.0 as u32,
                    tenants: match self.map_sharing {
                        MapSharing::Shared => 1,
                        MapSharing::Split => tenants.max(1),
                    },
                    read_bytes: self.map_read.0 as u32,
                },
            },
            unwritten: match self.unwritten {
                UnwrittenReads::Zero => flash::Unwritten::Zero,
                UnwrittenReads::Allocate => flash::Unwritten::Allocate,
            },
            joules: Joules {
                read: self.read_energy * 1e-6,
                program: self.program_energy * 1e-6,
                erase: self.erase_energy * 1e-6,
                channel_byte: self.channel_energy * 8e-12,
            },
            fill: match self.fill {
                FillMethod::Empty => flash::InitialFill::Empty,
                FillMethod::Analytic => flash::InitialFill::Analytic { occupancy: self.occupancy },
                FillMethod::Replay => flash::InitialFill::Replay {
                    occupancy: self.occupancy,
                    overwrites: self.overwrites,
                },
            },
        }
    }

    /// What the drive draws beside the energy of its flash.
    pub fn power(&self) -> Power {
        Power { idle: self.idle_power, active: self.active_power }
    }

    fn shape(&self) -> FlashShape {
        FlashShape {
            channels: self.channels,
            chips_per_channel: self.chips,
            dies_per_chip: self.dies,
            planes_per_die: self.planes,
            blocks_per_plane: self.blocks,
            pages_per_block: self.pages_per_block(),
            page_bytes: self.page.0 as u32,
            sector_bytes: self.sector.0 as u32,
        }
    }

    /// The back-end numbers the kinds of pages from the first; with two kinds the second is last.
    fn cells(&self) -> Cell {
        let kinds = |first: u64, middle: u64, last: u64| match self.cell {
            CellKind::Slc => [first; 3],
            CellKind::Mlc => [first, last, last],
            CellKind::Tlc => [first, middle, last],
        };
        let read = [self.read_time, self.read_time_csb, self.read_time_msb].map(|time| time.0);
        let program = [self.program_time, self.program_time_csb, self.program_time_msb];
        let program = program.map(|time| time.0);
        Cell {
            kind: self.cell,
            read_ns: kinds(read[0], read[1], read[2]),
            program_ns: kinds(program[0], program[1], program[2]),
            erase_ns: self.erase_time.0,
            suspend_program_ns: self.suspend_program_time.0,
            suspend_erase_ns: self.suspend_erase_time.0,
        }
    }

    fn collect(&self) -> Collect {
        Collect {
            over_provisioning: self.spare_share(),
            soft_threshold: self.clean_below,
            hard_threshold: self.clean_hard_below,
            separation: self.separation.name.clone(),
            separation_settings: self.separation.pairs.clone(),
            reclaim: self.reclaim.name.clone(),
            reclaim_settings: self.reclaim.pairs.clone(),
            prediction_ns: self.prediction_time.0,
            static_wear_spread: (self.wear_spread > 0).then_some(self.wear_spread),
        }
    }
}

/// The back-end's own form of a checked permutation.
fn order(order: PlaneLetters) -> flash::PlaneOrder {
    flash::PlaneOrder::parse(&order.word()).unwrap_or(flash::PlaneOrder::CWDP)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The defaults are the reference base of the back-end, except for the map, the spare-block
    /// policies and the state before a run. Users rarely want those as the reference runs had them.
    #[test]
    fn the_defaults_are_the_reference_base() {
        let ours = SsdParams::default().flash(1);
        let theirs = FlashParams::mqsim();
        assert_eq!(ours.shape, theirs.shape);
        assert_eq!((ours.bus, ours.cell), (theirs.bus, theirs.cell));
        assert_eq!((ours.schedule, &ours.layout), (theirs.schedule, &theirs.layout));
        let base = &theirs.collect;
        assert_eq!(ours.collect.over_provisioning, base.over_provisioning);
        assert_eq!(ours.collect.separation, base.separation);
        let (entry_bytes, stored_bytes) = (8, 8);
        let (bytes, tenants, read_bytes) = (2 << 20, 1, 512);
        let map = MapCache::Cached { bytes, entry_bytes, stored_bytes, tenants, read_bytes };
        assert_eq!(ours.map, map);
    }
}
