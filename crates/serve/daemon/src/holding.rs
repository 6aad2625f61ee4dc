//! The hold of a server on the cache's devices, beyond the locks of its host.
//!
//! For: two hosts that see one disk, and any other way to one device past its lock. Must never
//! know: requests. Units: nanoseconds. A start says on the devices that it holds them. A server
//! looks once a second whether that still stands, and ends without another write if it does not:
//! what it would write could destroy what the other one has written since. Tools that write take
//! the hold as a start does.

use crate::devices::set_error;
use crate::error::LiveError;
use crate::ids::random_id;
use crate::plan::LivePlan;
use cachewright_live::io::{Done, FileId, Io, IoOp, Token, batch};
use cachewright_live::log::format::Holder;
use cachewright_live::log::{OpenSet, hold, holders, is_taken, look};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The eight highest bits of the tokens of looks.
const NAMESPACE: u64 = 6 << 56;
/// From one look to the next.
const LOOK_NS: u64 = 1_000_000_000;
/// Where hosts have their number, in hexadecimal digits and dashes. Services may see the last only.
const HOST_FILES: [&str; 2] = ["/proc/sys/kernel/random/boot_id", "/etc/machine-id"];

const TAKEN: &str = "cache: another server has taken the devices over, on another host or by \
                     another name; this one has ended without writing, as at a loss of power";

/// The hold of a server.
pub struct Holding {
    own: Holder,
    files: Vec<FileId>,
    /// It stands on the devices.
    is_taken: bool,
    next_look_ns: u64,
    looks_under_way: usize,
    /// Another server has it.
    is_lost: bool,
}

impl Holding {
    /// The hold of a start on a set. If a server that was not this host's may still have the set,
    /// it is taken from that one, which has two looks to notice it. Errors: a device fails, or the
    /// system has no randomness.
    pub fn begin(plan: &LivePlan, io: &mut impl Io, set: &OpenSet) -> Result<Holding, LiveError> {
        let own = holder(plan, set, random_id()?);
        let mut holding = Holding {
            own,
            files: set.set.files().to_vec(),
            is_taken: false,
            next_look_ns: 0,
            looks_under_way: 0,
            is_lost: false,
        };
        if is_held_beyond(io, set, &own) {
            holding.take(plan, io, set)?;
            let at_ns = io.now_ns() + 2 * LOOK_NS;
            batch::run(io, vec![IoOp::Timer { at_ns }]);
        }
        Ok(holding)
    }

    /// Says on the devices that this start holds them, unless that stands there. Errors: a device
    /// fails.
    pub fn take(
        &mut self,
        plan: &LivePlan,
        io: &mut impl Io,
        set: &OpenSet,
    ) -> Result<(), LiveError> {
        if !self.is_taken {
            hold(io, set, &self.own)
                .map_err(|error| set_error(plan, &plan.serve.devices, &error))?;
            self.is_taken = true;
        }
        Ok(())
    }

    /// Looks who holds the devices, if it is time. To be called some times a second. Errors:
    /// another server has taken them.
    pub fn tick(&mut self, io: &mut impl Io) -> Result<(), LiveError> {
        if io.now_ns() >= self.next_look_ns {
            self.begin_look(io);
        }
        self.check()
    }

    /// Looks who holds the devices, unless such a look is under way.
    pub fn begin_look(&mut self, io: &mut impl Io) {
        if self.looks_under_way == 0 {
            self.next_look_ns = io.now_ns() + LOOK_NS;
            self.looks_under_way = self.files.len();
            self.files.iter().for_each(|file| io.submit(Token(NAMESPACE), look(*file)));
        }
    }

    /// Whether a look is under way.
    pub fn is_looking(&self) -> bool {
        self.looks_under_way > 0
    }

    /// Errors: the last look found that another server has taken the devices.
    pub fn check(&self) -> Result<(), LiveError> {
        match self.is_lost {
            true => Err(LiveError::TakenOver(TAKEN.to_owned())),
            false => Ok(()),
        }
    }

    /// Whether an operation is a look.
    pub fn owns(&self, token: Token) -> bool {
        token == Token(NAMESPACE)
    }

    /// A look is done.
    pub fn on_done(&mut self, done: &Done) {
        self.looks_under_way = self.looks_under_way.saturating_sub(1);
        self.is_lost |= is_taken(&self.own, &done.output, done.error);
    }
}

/// Whether a server that was not this host's, or that knew the devices by another name, had the set
/// last: no lock tells whether it has ended.
pub fn is_held_elsewhere(plan: &LivePlan, io: &mut impl Io, set: &OpenSet) -> bool {
    is_held_beyond(io, set, &holder(plan, set, 0))
}

fn is_held_beyond(io: &mut impl Io, set: &OpenSet, own: &Holder) -> bool {
    !holders(io, set).iter().all(|before| own.has_lock_of(before))
}

/// A start on a set that has the locks of its devices.
fn holder(plan: &LivePlan, set: &OpenSet, start: u128) -> Holder {
    let first = plan.serve.devices.first().and_then(|path| std::fs::metadata(path).ok());
    Holder {
        set: set.set.id(),
        start,
        // Without a known place no lock is taken for the same.
        host: first.as_ref().map_or(0, |_| host()),
        file_system: first.as_ref().map_or(0, MetadataExt::dev),
        file: first.as_ref().map_or(0, MetadataExt::ino),
    }
}

/// A number of this host, or of its boot; 0 where none is told.
fn host() -> u128 {
    let number = |path: &str| {
        let text = std::fs::read_to_string(Path::new(path)).ok()?;
        u128::from_str_radix(&text.trim().replace('-', ""), 16).ok()
    };
    HOST_FILES.into_iter().find_map(number).unwrap_or_default()
}
