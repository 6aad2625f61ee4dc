//! The files that an import reads and names.
//!
//! For: texts that come in, and where traces lie. Must never know: tags, file systems.

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
