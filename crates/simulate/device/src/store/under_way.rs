//! What is under way in a store.
//!
//! For: pages, commands of requests and commands beneath, as records. Must never know: what is done
//! with them. Units: pages, nanoseconds.

use crate::Spent;
use cachewright_types::TenantId;

/// A command under way.
#[derive(Clone, Copy, Debug)]
pub struct OpenCommand {
    /// As submitted.
    pub tag: u64,
    /// When it was submitted.
    pub submitted_ns: u64,
    /// Parts not done, and one more until all are known.
    pub left: u32,
}

/// What a command beneath is for.
#[derive(Clone, Debug)]
pub enum SubCommand {
    /// Pages that a request reads.
    Read {
        /// The request's command.
        command: u32,
        /// Where they lie.
        life: u32,
    },
    /// A page that a write needs before it can go.
    Before {
        /// The write.
        write: u32,
        /// Where the page lies.
        life: u32,
    },
    /// Pages that are written.
    Append {
        /// Where they go.
        life: u32,
        /// The first of them.
        first: u32,
        /// How many.
        pages: u32,
        /// Requests wait for them.
        of_requests: bool,
    },
    /// Pages that are read to be moved.
    Gather {
        /// Where they lie.
        life: u32,
        /// Their writes.
        writes: Vec<u32>,
    },
    /// A segment is reset.
    Reset {
        /// Whose life ends.
        life: u32,
    },
    /// A flush.
    Flush {
        /// The request's command.
        command: u32,
    },
}

/// Where a page can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PagePlace {
    /// Nowhere: it holds nothing.
    Nowhere,
    /// In memory, on its way to the device.
    Memory,
    /// At a place of a life.
    At {
        /// The life.
        life: u32,
        /// The page within its segment.
        offset: u32,
    },
}

/// Whose a page on its way is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageOwner {
    /// A request's, by the number of its command.
    Request(u32),
    /// Cleaning's: it leaves this life.
    Move(u32),
    /// The separation's own.
    Meta,
}

impl PageOwner {
    /// Whether a request waits for the page.
    pub fn is_request(self) -> bool {
        matches!(self, PageOwner::Request(_))
    }
}

/// A page on its way to the device.
#[derive(Clone, Copy, Debug)]
pub struct OpenPageWrite {
    /// The logical page; the highest number for metadata.
    pub page: u32,
    /// Whose it is.
    pub owner: PageOwner,
    /// Whose command will write it.
    pub tenant: TenantId,
    /// Where it goes.
    pub life: u32,
    /// See [`OpenPageWrite::life`].
    pub offset: u32,
    /// Where it can be read until it is in memory.
    pub from: Option<(u32, u32)>,
    /// Reads it waits for.
    pub waits: u32,
    /// When it was asked for.
    pub arrived_ns: u64,
    /// Where the time of those reads went.
    pub spent: Spent,
}
