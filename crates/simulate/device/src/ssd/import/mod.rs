//! MQSim's configuration as a stack file.
//!
//! For: users of MQSim. Must never know: files; texts come in and go out. Each tag is mapped, or
//! listed with its line and the reason why not; nothing is dropped in silence, unknown tags
//! neither. A value that MQSim would not accept is an error. Source: MQSim's README and parameter
//! sets; `tags` holds the table.

mod device;
mod drive_settings;
mod error;
mod fields;
mod flows;
mod source;
mod tags;
mod xml;

pub use error::ImportError;
pub use source::{Locate, Located, MqsimFile};

use device::MqsimMachine;
use fields::Notes;

/// One scenario of a workload file, or the machine alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// A name for its files, from the workload file and the scenario's number.
    pub name: String,
    /// The stack file.
    pub stack: String,
    /// The description of its synthetic flows (format `synth`), to be written as `synth_name`.
    pub synth: Option<String>,
    /// The name under which the stack file expects that description.
    pub synth_name: String,
    /// What was not mapped or is different, with lines.
    pub notes: Vec<String>,
}

/// The paths of trace files that a workload names, in order. Errors: as of [`mqsim`].
pub fn traces(workload: MqsimFile<'_>) -> Result<Vec<String>, ImportError> {
    let refuse = |error: ImportError| error.in_file(workload.name);
    let root = xml::parse(workload.text).map_err(refuse)?;
    Ok(flows::paths(&flows::scenarios(&root).map_err(refuse)?))
}

/// Makes a stack file of each scenario. Without a workload there is one, without tenants. Errors:
/// a file that is no XML of MQSim, or a value that is none.
pub fn mqsim(
    config: MqsimFile<'_>,
    workload: Option<MqsimFile<'_>>,
    locate: Locate<'_>,
) -> Result<Vec<Scenario>, ImportError> {
    let refuse = |error: ImportError| error.in_file(config.name);
    let root = xml::parse(config.text).map_err(refuse)?;
    let mut notes = Notes::new(config.name);
    let machine = MqsimMachine::read(&root, &mut notes).map_err(refuse)?;
    let Some(workload) = workload else {
        let name = stem(config.name);
        return Ok(vec![scenario(name, &machine, &[], notes, config.name)]);
    };
    let refuse = |error: ImportError| error.in_file(workload.name);
    let root = xml::parse(workload.text).map_err(refuse)?;
    let scenarios = flows::scenarios(&root).map_err(refuse)?;
    let single = scenarios.len() == 1;
    let made = scenarios.iter().enumerate().map(|(index, element)| {
        let mut name = stem(workload.name);
        if !single {
            name = format!("{name}-{}", index + 1);
        }
        let mut notes = notes.clone();
        notes.file(workload.name);
        let mut machine = machine.clone();
        let flows = flows::read(element, &mut machine, locate, &mut notes).map_err(refuse)?;
        let origin = format!("{}, {}", config.name, workload.name);
        Ok(scenario(name, &machine, &flows, notes, &origin))
    });
    made.collect()
}

/// The name of a file without folders and endings.
fn stem(file: &str) -> String {
    let last = file.rsplit(['/', '\\']).next().unwrap_or(file);
    last.split('.').next().unwrap_or(last).to_owned()
}

fn scenario(
    name: String,
    machine: &MqsimMachine,
    flows: &[flows::Flow],
    notes: Notes,
    origin: &str,
) -> Scenario {
    let synth_name = format!("{name}.synth.toml");
    let synth = flows::synth(flows, origin);
    let notes = notes.done();
    let mut stack = format!("# Made from {origin} by `cachewright import mqsim`.\n");
    if !notes.is_empty() {
        stack.push_str("# Not mapped, or different:\n");
        for note in &notes {
            stack.push_str(&format!("#   {}\n", note.replace('\n', " ")));
        }
    }
    stack.push_str(&format!("name = {}\nseed = {}\n", fields::quoted(&name), machine.seed));
    stack.push_str(&machine.text());
    stack.push_str(&flows::text(flows, machine, &synth_name));
    Scenario { name, stack, synth, synth_name, notes }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_every_tag;
