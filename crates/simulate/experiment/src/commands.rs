//! The commands whose options are declared here, once for Rust, Python and the command line.
//!
//! For: the extension, the generated types of Python and tests. Must never know: any option.

use crate::{CurveOptions, DriveOptions, SizeOptions};
use cachewright_types::Key;
use cachewright_types::declare::Declared;

/// A command and its declared options.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    /// Its name.
    pub name: &'static str,
    /// What its options are called as a type.
    pub options: &'static str,
    /// The option that Python also takes by its place, after the stack.
    pub placed: &'static str,
    /// Its options.
    pub keys: fn() -> Vec<Key>,
}

/// Every command whose options are declared.
pub const COMMANDS: [Command; 3] = [
    Command { name: "mrc", options: "CurveOptions", placed: "policies", keys: CurveOptions::keys },
    Command { name: "plan", options: "SizeOptions", placed: "partitions", keys: SizeOptions::keys },
    Command {
        name: "wa",
        options: "DriveOptions",
        placed: "separations",
        keys: DriveOptions::keys,
    },
];
