//! What the flows of a scenario say of the drive: MQSim per flow, a stack file once.
//!
//! For: data cache, occupancy, classes and groups of channels of the imported drive. Must never
//! know: traces, what flows send. Units: percent.

use super::device::MqsimMachine;
use super::error::ImportError;
use super::fields::{Notes, TagFields};
use crate::ssd::flash::Priority;
use crate::ssd::params::{ChannelGroups, FillMethod, MapLocation, MapSharing, Priorities};

/// What one flow says of the drive.
pub struct DriveSettings {
    mode: usize,
    channels: Option<Vec<u32>>,
    occupancy: Option<f64>,
    class: Priority,
    class_given: bool,
    line: u32,
}

impl DriveSettings {
    /// Reads what one flow says.
    pub fn read(
        fields: &TagFields<'_>,
        machine: &MqsimMachine,
        line: u32,
        notes: &mut Notes,
    ) -> Result<DriveSettings, ImportError> {
        let mode = fields.named("Device_Level_Data_Caching_Mode", notes);
        let mode = mode.choice(&["TURNED_OFF", "READ_CACHE", "WRITE_CACHE", "WRITE_READ_CACHE"])?;
        let params = &machine.params;
        let whole =
            [("Chip_IDs", params.chips), ("Die_IDs", params.dies), ("Plane_IDs", params.planes)];
        for (tag, count) in whole {
            let field = fields.named(tag, notes);
            if field.given && field.list()?.len() as u32 != count {
                let message =
                    format!("`{tag}` = {} is not mapped: a flow uses all {count}", field.text);
                notes.add(field.line, &message);
            }
        }
        let channels = fields.named("Channel_IDs", notes);
        let channels = if channels.given { Some(channels.list()?) } else { None };
        let occupancy = fields.named("Initial_Occupancy_Percentage", notes);
        let occupancy = if occupancy.given { Some(occupancy.percent()?) } else { None };
        let class = fields.named("Priority_Class", notes);
        let class_given = class.given;
        let class = Priority::ALL[class.choice(&["URGENT", "HIGH", "MEDIUM", "LOW"])?];
        Ok(DriveSettings { mode, channels, occupancy, class, class_given, line })
    }

    /// Takes to the drive what the first flow says, and notes where others say something else.
    pub fn agree(flows: &[DriveSettings], machine: &mut MqsimMachine, notes: &mut Notes) {
        let Some(first) = flows.first() else { return };
        (machine.writes_back, machine.read_fill) = (first.mode >= 2, first.mode % 2 == 1);
        for other in flows.iter().skip(1) {
            if other.mode != first.mode {
                notes.add(
                    other.line,
                    "its `Device_Level_Data_Caching_Mode` is not mapped: the mode of \
                     the first flow holds for all",
                );
            }
            if other.occupancy != first.occupancy {
                notes.add(
                    other.line,
                    "its `Initial_Occupancy_Percentage` is not mapped: that of the \
                     first flow holds for the drive",
                );
            }
        }
        if let Some(occupancy) = first.occupancy {
            machine.params.occupancy = occupancy;
            machine.mark("occupancy");
            if occupancy == 0.0 {
                machine.params.fill = FillMethod::Empty;
            }
        }
        classes(flows, machine, notes);
        if flows.len() > 1
            && machine.params.mapping == MapLocation::Cached
            && machine.params.map_sharing == MapSharing::Shared
        {
            notes.add(
                first.line,
                "the flows share `map_cache`, as `CMT_Sharing_Mode` says; MQSim itself gives each \
                 flow all of it",
            );
        }
        groups(flows, machine, notes);
    }
}

/// Classes of flows, where they differ.
fn classes(flows: &[DriveSettings], machine: &mut MqsimMachine, notes: &mut Notes) {
    let Some(first) = flows.first() else { return };
    let differ = flows.iter().any(|flow| flow.class != first.class);
    let given = flows.iter().find(|flow| flow.class_given);
    match (differ && machine.by_class, given) {
        (true, _) => {
            let classes = flows.iter().map(|flow| flow.class);
            machine.params.priority_classes = Priorities(classes.collect());
            machine.mark("priority_classes");
            if first.mode >= 2 {
                notes.add(
                    first.line,
                    "`Priority_Class`: pages that the data cache writes back have the class of \
                     their tenant; in MQSim they are HIGH",
                );
            }
        }
        (false, Some(flow)) => {
            let reason = match machine.by_class {
                true => "all flows have the same",
                false => "`Transaction_Scheduling_Policy` knows no classes",
            };
            let words = format!("`Priority_Class` changes nothing: {reason}");
            notes.add(flow.line, &words);
        }
        (false, None) => {}
    }
}

/// Flows that keep to channels of their own become groups of channels.
fn groups(flows: &[DriveSettings], machine: &mut MqsimMachine, notes: &mut Notes) {
    let count = machine.params.channels;
    let lists: Vec<Vec<u32>> = flows.iter().filter_map(|flow| flow.channels.clone()).collect();
    let whole = |list: &Vec<u32>| list.len() as u32 == count;
    if lists.iter().all(whole) {
        return;
    }
    let mut all: Vec<u32> = lists.iter().flatten().copied().collect();
    let given = all.len();
    all.sort_unstable();
    all.dedup();
    let apart = all.len() == given && lists.len() == flows.len();
    if apart && all.last().is_some_and(|last| *last < count) {
        machine.params.channel_groups = ChannelGroups::Lists(lists);
        machine.mark("channel_groups");
        notes.add(
            flows[0].line,
            "`Channel_IDs` became `channel_groups`; each tenant must keep to the addresses of the \
             group of its number",
        );
    } else {
        notes.add(
            flows[0].line,
            "`Channel_IDs` is not mapped: flows share some channels but not all",
        );
    }
}
