//! The commands whose options are declared here, once for Rust, Python and the command line.
//!
//! `segments` and `labels` are functions of Python, which commands of `train` call.

use crate::oracle::OracleOptions;
use crate::segments::StepOptions;
use crate::wa::ClassifierOptions;
use crate::{CurveOptions, DriveOptions, SizeOptions};
use cachewright_types::Key;
use cachewright_types::declare::Declared;

/// A command and its declared options.
#[derive(Clone, Copy, Debug)]
pub struct DeclaredCommand {
    /// Its name.
    pub name: &'static str,
    /// What its options are called as a type.
    pub options: &'static str,
    /// The option that Python also takes by its place, after the stack; empty where none is.
    pub placed: &'static str,
    /// Its options.
    pub keys: fn() -> Vec<Key>,
}

/// Every command whose options are declared.
pub const COMMANDS: [DeclaredCommand; 6] = [
    DeclaredCommand {
        name: "mrc",
        options: "CurveOptions",
        placed: "policies",
        keys: CurveOptions::keys,
    },
    DeclaredCommand {
        name: "plan",
        options: "SizeOptions",
        placed: "partitions",
        keys: SizeOptions::keys,
    },
    DeclaredCommand {
        name: "wa",
        options: "DriveOptions",
        placed: "separations",
        keys: DriveOptions::keys,
    },
    DeclaredCommand {
        name: "train",
        options: "ClassifierOptions",
        placed: "",
        keys: ClassifierOptions::keys,
    },
    DeclaredCommand {
        name: "segments",
        options: "StepOptions",
        placed: "",
        keys: StepOptions::keys,
    },
    DeclaredCommand {
        name: "labels",
        options: "OracleOptions",
        placed: "",
        keys: OracleOptions::keys,
    },
];
