//! One suite for all siblings of the trait for input and output: the same operations, the same
//! answers.
//!
//! For: code that is tested on `sim` and served by `uring` or `threads`. Units: bytes, nanoseconds.

mod awaits;
mod files;
mod hosts;
mod opening;
mod random;
mod rigs;
mod scarce;
mod sockets;
mod timers;

/// Makes a test of each function for each sibling. A sibling that the system refuses says so.
macro_rules! conformance {
    ($($name:ident),+ $(,)?) => {
        mod sim {
            $(#[test]
            fn $name() {
                super::$name(&mut crate::io_conformance::rigs::SimRig::new());
            })+
        }
        mod uring {
            $(#[test]
            fn $name() {
                crate::io_conformance::rigs::with_uring(|rig| super::$name(rig));
            })+
        }
        mod threads {
            $(#[test]
            fn $name() {
                crate::io_conformance::rigs::with_threads(|rig| super::$name(rig));
            })+
        }
    };
}

/// Makes a test of each function for each sibling that works on files and sockets of the system.
macro_rules! host_conformance {
    ($($name:ident),+ $(,)?) => {
        mod uring {
            $(#[test]
            fn $name() {
                crate::io_conformance::rigs::with_uring(super::$name);
            })+
        }
        mod threads {
            $(#[test]
            fn $name() {
                crate::io_conformance::rigs::with_threads(super::$name);
            })+
        }
    };
}

use {conformance, host_conformance};
