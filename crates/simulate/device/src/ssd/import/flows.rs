//! The flows of a scenario as tenants, and as the description of a synthetic trace.
//!
//! Units: MQSim counts sectors of 512 B, nanoseconds, percent.

use super::ImportError;
use super::drive::DriveSettings;
use super::drive::MqsimMachine;
use super::tags;
use super::xml::Element;
use super::xml::{Field, Notes, TagFields, quoted};
use super::{Locate, Located};
use crate::ssd::params::Scheme;
use cachewright_types::{Bytes, Nanos, Value};

const SECTOR: u64 = 512;
const ROOT: &str = "MQSim_IO_Scenarios";
const SCENARIO: &str = "IO_Scenario";
const TRACE: &str = "IO_Flow_Parameter_Set_Trace_Based";
const SYNTHETIC: &str = "IO_Flow_Parameter_Set_Synthetic";
/// Requests of a closed flow that ends at a time; they are sent again until then.
const CLOSED_COUNT: u64 = 1_000_000;

/// One flow.
#[derive(Clone, Debug)]
pub struct Flow {
    name: String,
    /// Keys of `[[tenant]]` beside its name and trace.
    keys: String,
    /// A trace file, or the description of a synthetic one.
    kind: FlowKind,
    /// Requests under way, when it waits for answers.
    closed: Option<u64>,
    seed: u64,
}

#[derive(Clone, Debug)]
enum FlowKind {
    Trace { path: String },
    Synthetic { text: String },
}

/// The scenarios of a workload file.
pub fn scenarios(root: &Element) -> Result<Vec<Element>, ImportError> {
    if root.name != ROOT {
        let message = format!("found `<{}>`, expected `<{ROOT}>`", root.name);
        return Err(ImportError::on_line(root.line, message));
    }
    let found = root.children.iter().filter(|child| child.name == SCENARIO);
    let found: Vec<Element> = found.cloned().collect();
    if found.is_empty() {
        let message = format!("found no `<{SCENARIO}>`, expected one or more");
        return Err(ImportError::on_line(root.line, message));
    }
    Ok(found)
}

/// The paths of the trace files of some scenarios, in order.
pub fn paths(scenarios: &[Element]) -> Vec<String> {
    let flows = scenarios.iter().flat_map(|scenario| &scenario.children);
    let values = flows.filter(|flow| flow.name == TRACE).flat_map(|flow| &flow.children);
    values.filter(|value| value.name == "File_Path").map(|value| value.text.clone()).collect()
}

/// Reads the flows of a scenario; what they say of the drive goes to `machine`.
pub fn read(
    scenario: &Element,
    machine: &mut MqsimMachine,
    locate: Locate<'_>,
    notes: &mut Notes,
) -> Result<Vec<Flow>, ImportError> {
    let known = TagFields::new(scenario, &[], &[TRACE, SYNTHETIC], notes);
    drop(known);
    let elements: Vec<&Element> =
        scenario.children.iter().filter(|c| c.name == TRACE || c.name == SYNTHETIC).collect();
    let (mut flows, mut drives) = (Vec::new(), Vec::new());
    for (index, element) in elements.iter().enumerate() {
        let name = format!("flow-{index}");
        let (fields, flow) = if element.name == TRACE {
            let fields = TagFields::new(element, &[tags::FLOW, tags::TRACE_FLOW], &[], notes);
            let flow = trace(&fields, name, locate, notes)?;
            (fields, flow)
        } else {
            let fields = TagFields::new(element, &[tags::FLOW, tags::SYNTHETIC_FLOW], &[], notes);
            let share = machine.capacity().0 / elements.len() as u64;
            let flow = synthetic(&fields, name, share, notes)?;
            let others =
                flows.iter().any(|flow: &Flow| matches!(flow.kind, FlowKind::Synthetic { .. }));
            if others {
                let why = "that of the first synthetic flow makes all, each by its name";
                without_meaning(&fields, "Seed", why, notes);
            }
            (fields, flow)
        };
        drives.push(DriveSettings::read(&fields, machine, element.line, notes)?);
        flows.push(flow);
    }
    if flows.is_empty() {
        return Err(ImportError::on_line(
            scenario.line,
            "found no flow, expected one or more".to_owned(),
        ));
    }
    DriveSettings::agree(&drives, machine, notes);
    if flows.len() > 1 {
        let pairs = vec![("tenants".to_owned(), Value::Int(flows.len() as i64))];
        machine.params.separation = Scheme { name: "by-tenant".to_owned(), pairs };
        machine.mark("separation");
    }
    loops(&flows, scenario.line, notes);
    Ok(flows)
}

fn loops(flows: &[Flow], line: u32, notes: &mut Notes) {
    let closed = flows.iter().filter(|flow| flow.closed.is_some()).count();
    if closed != 0 && closed != flows.len() {
        notes.add(
            line,
            "some flows wait for answers and some arrive by their own times; `replay.loop` holds \
             for all and is taken from the first",
        );
    }
}

fn trace(
    fields: &TagFields<'_>,
    name: String,
    locate: Locate<'_>,
    notes: &mut Notes,
) -> Result<Flow, ImportError> {
    let path = fields.named("File_Path", notes);
    if path.text.is_empty() {
        return Err(path.refuse("the path of a trace"));
    }
    let units = ["PICOSECOND", "NANOSECOND", "MICROSECOND"];
    let unit = fields.named("Time_Unit", notes).choice(&units)?;
    let unit = ["ps", "ns", "us"][unit];
    let Located { path: place, note } = locate(path.text);
    if !note.is_empty() {
        notes.add(path.line, &format!("`File_Path` = {}: {note}", path.text));
    }
    let part = fields.named("Percentage_To_Be_Executed", notes);
    let share = part.percent()?;
    if share == 0.0 {
        return Err(part.refuse("more than 0"));
    }
    let stop = match share < 1.0 {
        true => format!("stop = \"{}%\"\n", part.text),
        false => String::new(),
    };
    let again = fields.named("Relay_Count", notes);
    if again.whole()? > 1 {
        let message = format!("`{}` = {} is not mapped: replayed once", again.tag, again.text);
        notes.add(again.line, &message);
    }
    notes.add(
        path.line,
        "the device number of each request has no meaning, as in MQSim, which sends all to one \
         drive; `devices = \"volumes\"` in `options` makes each a volume",
    );
    let options = format!("{{ time_unit = \"{unit}\", devices = \"ignore\" }}");
    let keys = format!("format = \"mqsim\"\noptions = {options}\n{stop}");
    let kind = FlowKind::Trace { path: place };
    Ok(Flow { name, keys, kind, closed: None, seed: 0 })
}

fn synthetic(
    fields: &TagFields<'_>,
    name: String,
    space: u64,
    notes: &mut Notes,
) -> Result<Flow, ImportError> {
    let kinds = ["QUEUE_DEPTH", "BANDWIDTH", "ARRIVAL_RATE"];
    let closed = fields.named("Synthetic_Generator_Type", notes).choice(&kinds)? == 0;
    let size = fields.named("Average_Request_Size", notes).sectors()?.max(1) * SECTOR;
    let sizes = fields.named("Request_Size_Distribution", notes);
    if sizes.choice(&["FIXED", "NORMAL"])? == 1 {
        let message =
            "`Request_Size_Distribution` = NORMAL is not mapped: all have the average size";
        notes.add(sizes.line, message);
    }
    without_meaning(fields, "Variance_Request_Size", "all requests have the average size", notes);
    let seed = fields.named("Seed", notes).seed()?;
    let depth = fields.named("Average_No_of_Reqs_in_Queue", notes).whole()?.max(1);
    let rate = (fields.named("Bandwidth", notes).whole()? / size).max(1);
    match closed {
        true => without_meaning(fields, "Bandwidth", "the flow waits for answers", notes),
        false => without_meaning(
            fields,
            "Average_No_of_Reqs_in_Queue",
            "the flow does not wait for answers",
            notes,
        ),
    }
    let arrival = if closed {
        "arrival = { kind = \"constant\", rate = \"1000000/s\" } # ignored: it waits for answers\n"
            .to_owned()
    } else {
        format!("arrival = {{ kind = \"poisson\", rate = \"{rate}/s\" }}\n")
    };
    let share = fields.named("Read_Percentage", notes).percent()?;
    let (ends, stop) = ends(fields, closed, notes)?;
    let text = format!(
        "\n[[tenant]]\nname = {}\n{ends}{arrival}read_share = {share}\nsize = \"{}\"\n\
         pattern = {}\n",
        quoted(&name),
        Bytes(size).exact(),
        pattern(fields, space, notes)?
    );
    let keys = format!("format = \"synth\"\nvolume = {}\n{stop}", quoted(&name));
    let kind = FlowKind::Synthetic { text };
    Ok(Flow { name, keys, kind, closed: closed.then_some(depth), seed })
}

/// Notes a tag that is given and means nothing for the flow, in MQSim either.
fn without_meaning(fields: &TagFields<'_>, tag: &'static str, why: &str, notes: &mut Notes) {
    let field = fields.named(tag, notes);
    if field.given {
        notes.add(field.line, &format!("`{tag}` has no meaning here: {why}"));
    }
}

/// When a synthetic flow ends: keys of its description, and of its tenant. MQSim counts requests
/// only when no time is given.
fn ends(
    fields: &TagFields<'_>,
    closed: bool,
    notes: &mut Notes,
) -> Result<(String, String), ImportError> {
    let stop = fields.named("Stop_Time", notes);
    let count = fields.named("Total_Requests_To_Generate", notes);
    match (stop.whole()?, count.whole()?) {
        (0, 0) => Err(count.refuse("a number of requests, because `Stop_Time` is 0")),
        (0, requests) => Ok((format!("count = {requests}\n"), String::new())),
        (time, _) => {
            let why = "`Stop_Time` ends the flow";
            without_meaning(fields, "Total_Requests_To_Generate", why, notes);
            let time = Nanos(time).exact();
            let stop = format!("stop = \"{time}\"\n");
            if closed {
                let count = format!("count = {CLOSED_COUNT} # sent again until the tenant stops\n");
                return Ok((count, format!("{stop}repeat = true\n")));
            }
            Ok((format!("duration = \"{time}\"\n"), stop))
        }
    }
}

fn pattern(fields: &TagFields<'_>, space: u64, notes: &mut Notes) -> Result<String, ImportError> {
    let share = fields.named("Working_Set_Percentage", notes).percent()?;
    let unit = fields.named("Address_Alignment_Unit", notes).sectors()?.max(1) * SECTOR;
    let aligned = fields.named("Generated_Aligned_Addresses", notes).flag();
    let align = if aligned { unit } else { SECTOR };
    let span = ((space as f64 * share) as u64 / align).max(1) * align;
    let (span, align) = (Bytes(span).exact(), Bytes(align).exact());
    let region = format!("span = \"{span}\", align = \"{align}\"");
    let kind = fields.named("Address_Distribution", notes);
    let kinds = [
        "STREAMING",
        "RANDOM_UNIFORM",
        "UNIFORM_RANDOM",
        "RANDOM_HOTCOLD",
        "HOTCOLD_RANDOM",
        "MIXED_STREAMING_RANDOM",
    ];
    let kind_index = kind.choice(&kinds)?;
    if !(3..=4).contains(&kind_index) {
        let why = format!("`Address_Distribution` is {}", kind.text);
        without_meaning(fields, "Percentage_of_Hot_Region", &why, notes);
    }
    match kind_index {
        0 => Ok(format!("{{ kind = \"sequential\", {region} }}")),
        1 | 2 => Ok(format!("{{ kind = \"uniform\", {region} }}")),
        3 | 4 => {
            let hot: Field<'_> = fields.named("Percentage_of_Hot_Region", notes);
            let space = hot.percent()?;
            let access = 1.0 - space;
            Ok(format!(
                "{{ kind = \"hot-cold\", {region}, hot_space = {space}, hot_access = {access}, \
                 scattered = false }}"
            ))
        }
        _ => {
            notes.add(kind.line, "`MIXED_STREAMING_RANDOM` is not mapped: taken as RANDOM_UNIFORM");
            Ok(format!("{{ kind = \"uniform\", {region} }}"))
        }
    }
}

/// The description of the synthetic flows, if there are any.
pub fn synth(flows: &[Flow], origin: &str) -> Option<String> {
    let texts: Vec<(&Flow, &String)> = flows
        .iter()
        .filter_map(|flow| match &flow.kind {
            FlowKind::Synthetic { text } => Some((flow, text)),
            FlowKind::Trace { .. } => None,
        })
        .collect();
    let (first, _) = texts.first()?;
    let mut out = format!(
        "# Made from {origin} by `cachewright import mqsim`; the seed is that of the first flow.\n\
         [synth]\nseed = {}\n",
        first.seed
    );
    texts.iter().for_each(|(_, text)| out.push_str(text));
    Some(out)
}

/// The `[replay]` and `[[tenant]]` tables.
pub fn text(flows: &[Flow], machine: &MqsimMachine, synth_name: &str) -> String {
    let Some(first) = flows.first() else { return String::new() };
    let kind = if first.closed.is_some() { "closed" } else { "open" };
    let mut out = format!("\n[replay]\nloop = \"{kind}\"\n");
    if let Some(window_ns) = machine.logging_ns {
        out.push_str(&format!("throughput_window = \"{}\"\n", Nanos(window_ns).exact()));
    }
    for flow in flows {
        let trace = match &flow.kind {
            FlowKind::Trace { path } => path.as_str(),
            FlowKind::Synthetic { .. } => synth_name,
        };
        let (name, trace) = (quoted(&flow.name), quoted(trace));
        out.push_str(&format!("\n[[tenant]]\nname = {name}\ntrace = {trace}\n{}", flow.keys));
        if let Some(depth) = flow.closed {
            out.push_str(&format!("queue_depth = {depth}\n"));
        }
    }
    out
}
