//! Host, device and flash parameters of MQSim as the `[cache]`, `[device.ssd]` and `[machine]`
//! tables.
//!
//! MQSim sets data cache, occupancy, classes and groups of channels per flow, a stack file once.
//! Each value goes through the same checks as one of a stack file; a drive that cannot be is
//! refused.

use super::ImportError;
use super::tags::{self, Tag, To};
use super::xml::{Element, Field, Notes, TagFields};
use crate::ssd::flash::Priority;
use crate::ssd::params::{
    ChannelGroups, FillMethod, MapLocation, MapSharing, Priorities, SsdParams, Suspend,
    UnwrittenReads,
};
use cachewright_types::declare::Declared;
use cachewright_types::{Bytes, SettingError, Value};

const OUTER: &str = "Execution_Parameter_Set";
const HOST: &str = "Host_Parameter_Set";
const DEVICE: &str = "Device_Parameter_Set";
const FLASH: &str = "Flash_Parameter_Set";
/// MQSim's period of logging where none is given.
const LOGGING_DEFAULT_NS: u64 = 400_000;
/// The narrowest `replay.throughput_window`.
const WINDOW_LEAST_NS: u64 = 1_000_000;

/// The machine that a configuration describes.
#[derive(Clone, Debug)]
pub struct MqsimMachine {
    /// The drive.
    pub params: SsdParams,
    /// Keys of the drive that were set, in the order of its table when written.
    set: Vec<&'static str>,
    /// The seed.
    pub seed: u64,
    /// Bytes of the data cache.
    pub cache: Bytes,
    /// Whether flows share it.
    pub cache_shared: bool,
    /// Writes go to the cache first.
    pub writes_back: bool,
    /// Reads enter it.
    pub read_fill: bool,
    /// Whether dies serve flows by their classes.
    pub by_class: bool,
    /// Width of the windows of its time series, where it writes one.
    pub logging_ns: Option<u64>,
}

impl MqsimMachine {
    /// Reads a configuration.
    pub fn read(root: &Element, notes: &mut Notes) -> Result<MqsimMachine, ImportError> {
        if root.name != OUTER {
            let message = format!("found `<{}>`, expected `<{OUTER}>`", root.name);
            return Err(ImportError::on_line(root.line, message));
        }
        let fields = TagFields::new(root, &[], &[HOST, DEVICE], notes);
        drop(fields);
        let empty = Element { line: root.line, ..Element::default() };
        let child = |parent: &'_ Element, name: &str| {
            parent.children.iter().find(|child| child.name == name).cloned()
        };
        let device = child(root, DEVICE).ok_or_else(|| {
            ImportError::on_line(root.line, format!("found no `<{DEVICE}>`, expected one"))
        })?;
        let host = child(root, HOST).unwrap_or_else(|| empty.clone());
        let flash = child(&device, FLASH).unwrap_or_else(|| empty.clone());
        let mut machine = MqsimMachine {
            params: SsdParams::default(),
            set: Vec::new(),
            seed: 123,
            cache: Bytes(0),
            cache_shared: true,
            writes_back: true,
            read_fill: false,
            by_class: true,
            logging_ns: None,
        };
        let host = TagFields::new(&host, &[tags::HOST], &[], notes);
        let device = TagFields::new(&device, &[tags::DEVICE], &[FLASH], notes);
        let flash = TagFields::new(&flash, &[tags::FLASH], &[], notes);
        for fields in [&host, &device, &flash] {
            for tag in fields.tags() {
                machine.single(fields, tag, notes)?;
            }
        }
        machine.joint(&host, &device, &flash, notes)?;
        machine.check_cleaning(&device, notes)?;
        let refuse = |error: SettingError| ImportError::on_line(root.line, error.to_string());
        machine.params.check().map_err(refuse)?;
        Ok(machine)
    }

    /// Refuses a share of free blocks that the drive can never have beside its data. MQSim runs
    /// such a drive: it cleans with each write, whatever that wins.
    fn check_cleaning(&self, device: &TagFields<'_>, notes: &mut Notes) -> Result<(), ImportError> {
        let Some(largest) = self.params.largest_clean_below() else { return Ok(()) };
        // A difference in the last digit shown is left to the check of the drive.
        if self.params.clean_below <= largest + 1e-4 {
            return Ok(());
        }
        let field = device.named("GC_Exec_Threshold", notes);
        let (below, blocks) = (self.params.clean_below, self.params.blocks);
        Err(field.refuse(&format!(
            "at most {largest} with `Overprovisioning_Ratio` = {}: MQSim cleans while fewer than \
             {} of the {blocks} blocks of a plane are free, which they never are beside the data, \
             so that it would clean without end",
            self.params.over_provisioning,
            (below * f64::from(blocks)) as u64,
        )))
    }

    /// Sets a key of the drive from the value of a field.
    fn set(
        &mut self,
        key: &'static str,
        value: &Value,
        field: &Field<'_>,
    ) -> Result<(), ImportError> {
        let refuse = |error: SettingError| {
            let (found, expected) = (error.found, error.expected);
            let message = format!("`{}`: found {found}, expected {expected}", field.tag);
            ImportError::on_line(field.line, message)
        };
        self.params.set(key, value).map_err(refuse)?;
        let head = key.split('.').next().unwrap_or(key);
        if !self.set.contains(&head) {
            self.set.push(head);
        }
        Ok(())
    }

    /// Notes that a key was set, for one that is set from several tags.
    pub fn mark(&mut self, key: &'static str) {
        if !self.set.contains(&key) {
            self.set.push(key);
        }
    }

    /// A tag that goes to one key by itself.
    fn single(
        &mut self,
        fields: &TagFields<'_>,
        tag: &'static Tag,
        notes: &mut Notes,
    ) -> Result<(), ImportError> {
        if matches!(tag.to, To::Joint | To::Nothing(_)) {
            return Ok(());
        }
        let field = fields.get(tag, notes);
        match tag.to {
            To::Count(key) => self.set(key, &Value::Int(field.whole()? as i64), &field),
            To::Number(key) => self.set(key, &Value::Float(field.number()?), &field),
            To::Size(key) => self.set(key, &Value::Text(format!("{}B", field.whole()?)), &field),
            To::Time(key) => self.set(key, &Value::Text(format!("{}ns", field.whole()?)), &field),
            To::Word(key, pairs) => {
                let theirs: Vec<&str> = pairs.iter().map(|(theirs, _)| *theirs).collect();
                let ours = pairs[field.choice(&theirs)?].1;
                let value = match ours {
                    "true" => Value::Bool(true),
                    "false" => Value::Bool(false),
                    word => Value::Text(word.to_owned()),
                };
                self.set(key, &value, &field)
            }
            To::Only(words) => {
                let known = words.iter().any(|word| word.eq_ignore_ascii_case(field.text));
                if !known {
                    let words = words.join(" or ");
                    let (tag, text) = (field.tag, field.text);
                    let message = format!("`{tag}` = {text} is not mapped; taken as {words}");
                    notes.add(field.line, &message);
                }
                Ok(())
            }
            To::Joint | To::Nothing(_) => Ok(()),
        }
    }

    /// Tags that go to a key together, or that need a word.
    fn joint(
        &mut self,
        host: &TagFields<'_>,
        device: &TagFields<'_>,
        flash: &TagFields<'_>,
        notes: &mut Notes,
    ) -> Result<(), ImportError> {
        self.seed = device.named("Seed", notes).seed()?;
        self.cache = Bytes(device.named("Data_Cache_Capacity", notes).whole()?);
        let sharing = device.named("Data_Cache_Sharing_Mode", notes);
        self.cache_shared = sharing.choice(&["SHARED", "EQUAL_PARTITIONING"])? == 0;
        let delay = host.named("SATA_Processing_Delay", notes);
        if delay.given {
            notes.add(
                delay.line,
                "`SATA_Processing_Delay` is not mapped: it delays each message, \
                 `command_time` would be the time of the controller per command",
            );
        }
        self.logging(host, notes)?;
        self.scheduling(&device.named("Transaction_Scheduling_Policy", notes), notes);
        let order = device.named("Plane_Allocation_Scheme", notes);
        self.set("plane_order", &Value::Text(order.text.to_lowercase()), &order)?;
        let pages = flash.named("Page_No_Per_Block", notes);
        let block = pages.whole()?.saturating_mul(self.params.page.0);
        self.set("block", &Value::Text(format!("{block}B")), &pages)?;
        self.reclaim(&device.named("GC_Block_Selection_Policy", notes), notes)?;
        let levels = device.named("Static_Wearleveling_Enabled", notes).flag();
        let spread = device.named("Static_Wearleveling_Threshold", notes);
        let value = if levels { spread.whole()? as i64 } else { 0 };
        self.set("wear_spread", &Value::Int(value), &spread)?;
        if self.params.suspend != Suspend::None {
            let line = flash.named("CMD_Suspension_Support", notes).line;
            let words = "`CMD_Suspension_Support` is mapped, but MQSim misreads its own times and \
                         suspends nothing; `suspend = \"none\"` is what it does";
            notes.add(line, words);
        }
        self.params.unwritten = UnwrittenReads::Allocate;
        self.mark("unwritten");
        self.map_entries();
        Ok(())
    }

    /// MQSim's log has response times per period; the nearest is the count of answers.
    fn logging(&mut self, host: &TagFields<'_>, notes: &mut Notes) -> Result<(), ImportError> {
        let enabled = host.named("Enable_ResponseTime_Logging", notes);
        let period = host.named("ResponseTime_Logging_Period_Length", notes);
        if !enabled.given && !period.given {
            return Ok(());
        }
        let on = enabled.given && enabled.flag();
        let period_ns = if period.given { period.whole()? } else { LOGGING_DEFAULT_NS };
        if !on {
            let words = "`Enable_ResponseTime_Logging` is off, so that \
                         `ResponseTime_Logging_Period_Length` means nothing; \
                         `replay.throughput_window` would count answers per period";
            notes.add(if enabled.given { enabled.line } else { period.line }, words);
            return Ok(());
        }
        let window_ns = period_ns.max(WINDOW_LEAST_NS);
        self.logging_ns = Some(window_ns);
        let less = match window_ns > period_ns {
            true => {
                format!(" (at least 1 ms; `ResponseTime_Logging_Period_Length` is {period_ns} ns)")
            }
            false => String::new(),
        };
        notes.add(
            enabled.line,
            &format!(
                "`Enable_ResponseTime_Logging` became `replay.throughput_window`{less}: it counts \
                 answers per period; response times are of the whole run"
            ),
        );
        Ok(())
    }

    fn scheduling(&mut self, field: &Field<'_>, notes: &mut Notes) {
        let known = ["PRIORITY_OUT_OF_ORDER", "OUT_OF_ORDER"];
        let found = known.iter().position(|word| word.eq_ignore_ascii_case(field.text));
        self.by_class = found == Some(0);
        if found.is_none() {
            let (tag, text) = (field.tag, field.text);
            let words = "is not mapped; taken as OUT_OF_ORDER, without classes";
            notes.add(field.line, &format!("`{tag}` = {text} {words}"));
        }
    }

    /// An entry of the table is two addresses in memory, one in flash, and a bit for each sector
    /// of a page; MQSim computes both sizes from the geometry.
    fn map_entries(&mut self) {
        if self.params.mapping == MapLocation::Ideal {
            return;
        }
        let address = (self.params.raw_pages().max(1) as f64).log2();
        let sectors = (self.params.page.0 / 512) as f64;
        let bytes = |addresses: f64| Bytes(((addresses * address + sectors) / 8.0).ceil() as u64);
        (self.params.map_entry, self.params.map_stored_entry) = (bytes(2.0), bytes(1.0));
        self.mark("map_entry");
        self.mark("map_stored_entry");
    }

    fn reclaim(&mut self, field: &Field<'_>, notes: &mut Notes) -> Result<(), ImportError> {
        let words = ["GREEDY", "RGA", "RANDOM", "RANDOM_P", "RANDOM_PP", "FIFO"];
        let d_choices = |machine: &mut MqsimMachine, d: i64| {
            machine.set("reclaim", &Value::Text("d-choices".to_owned()), field)?;
            machine.set("reclaim.d", &Value::Int(d), field)
        };
        match field.choice(&words)? {
            0 => self.set("reclaim", &Value::Text("greedy".to_owned()), field),
            1 => d_choices(self, i64::from(self.params.blocks.max(2).ilog2())),
            2 => d_choices(self, 1),
            5 => self.set("reclaim", &Value::Text("fifo".to_owned()), field),
            _ => {
                let message = format!(
                    "`{}` = {} is not mapped; taken as RANDOM, without its least invalid pages",
                    field.tag, field.text
                );
                notes.add(field.line, &message);
                d_choices(self, 1)
            }
        }
    }

    /// Bytes that all flows together can address.
    pub fn capacity(&self) -> Bytes {
        let pages = self.params.raw_pages() as f64 * (1.0 - self.params.spare_share());
        Bytes(pages as u64 * self.params.page.0)
    }

    /// The tables of a stack file.
    pub fn text(&self) -> String {
        let values = self.params.values();
        let value = |wanted: &str| {
            let found = values.iter().find(|(key, _)| *key == wanted);
            found.and_then(|(_, value)| value.as_ref()).map(Value::to_string).unwrap_or_default()
        };
        let partition = if self.cache_shared { "shared" } else { "equal" };
        let write = if self.writes_back { "write-back" } else { "write-around" };
        let mut text = format!(
            "\n[cache]\ncapacity = \"{}\"\nblock = {}\npolicy = \"lru\"\npartition = \
             \"{partition}\"\nwrite = \"{write}\"\n\n[device.ssd]\nmodel = \"mqsim-default\"\n",
            self.cache.exact(),
            value("page")
        );
        for (key, value) in &values {
            let given = value.as_ref().filter(|_| self.set.contains(key));
            if let Some(value) = given {
                text.push_str(&format!("{key} = {value}\n"));
            }
        }
        text.push_str(&format!(
            "\n[machine]\nsystem = \"ssd\"\nread_fill = {}\nwrite_back = \"eager\"\n\
             keep_destaged = false\n",
            self.read_fill
        ));
        text
    }
}

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
