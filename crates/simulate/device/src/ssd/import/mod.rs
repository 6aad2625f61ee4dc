//! MQSim's configuration as a stack file: texts come in and go out.
//!
//! Each tag is mapped, or listed with its line and the reason why not; nothing is dropped in
//! silence, unknown tags neither. A value that MQSim would not accept is an error. Source: MQSim's
//! README and parameter sets; `tags` holds the table.

mod drive;
mod flows;
mod tags;
mod xml;

#[cfg(test)]
mod tests_every_tag;

use drive::MqsimMachine;
use std::fmt;
use xml::Notes;

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
    stack.push_str(&format!("name = {}\nseed = {}\n", xml::quoted(&name), machine.seed));
    stack.push_str(&machine.text());
    stack.push_str(&flows::text(flows, machine, &synth_name));
    Scenario { name, stack, synth, synth_name, notes }
}
/// A file by its name in messages, and its text.
#[derive(Clone, Copy, Debug)]
pub struct MqsimFile<'a> {
    /// The name.
    pub name: &'a str,
    /// The text.
    pub text: &'a str,
}

/// Where a trace file lies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Located {
    /// Its path as the stack file has it.
    pub path: String,
    /// What is to be said of it, or nothing.
    pub note: String,
}

/// The place of each trace by its path in the workload.
pub type Locate<'a> = &'a dyn Fn(&str) -> Located;

/// Why a configuration was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportError {
    /// The file; empty until it is known.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// What was found, and what was expected.
    pub message: String,
}

impl ImportError {
    /// A refusal of a line.
    pub fn on_line(line: u32, message: String) -> ImportError {
        ImportError { file: String::new(), line, message }
    }

    /// The refusal with its file.
    pub fn in_file(self, file: &str) -> ImportError {
        ImportError { file: file.to_owned(), ..self }
    }
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.file.is_empty() {
            write!(f, "{}, ", self.file)?;
        }
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for ImportError {}

#[cfg(test)]
mod tests;
