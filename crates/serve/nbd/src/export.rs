//! What a server offers: exports with size, block sizes, abilities and contexts.
//!
//! For: negotiation and the checks of requests. Must never know: where an export's data lies.
//! Units: bytes.

use crate::protocol::transmission;

/// Block sizes that a server tells its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSizes {
    /// Offsets and lengths are multiples of it; a power of two, at most 64 KiB.
    pub min: u32,
    /// Fastest unit; a power of two, at least 512.
    pub preferred: u32,
    /// Longest payload of one request.
    pub max_payload: u32,
}

/// One export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Its name.
    pub name: String,
    /// A description for people; may be empty.
    pub description: String,
    /// Its size.
    pub size: u64,
    /// Its block sizes.
    pub blocks: BlockSizes,
    /// Whether writes are refused.
    pub read_only: bool,
    /// Whether flushes and forced unit access of one connection hold for all.
    pub multi_conn: bool,
    /// Whether zeroes are faster than writes; where they are not, zeroes that are to be fast are
    /// refused.
    pub fast_zero: bool,
    /// Contexts of block status, by name; the place in the list is the context's id. At most 32.
    pub contexts: Vec<String>,
}

impl Export {
    /// Its transmission flags; `structured` where replies come in chunks.
    pub fn flags(&self, structured: bool) -> u16 {
        let mut flags = transmission::HAS_FLAGS
            | transmission::SEND_FLUSH
            | transmission::SEND_FUA
            | transmission::SEND_TRIM
            | transmission::SEND_WRITE_ZEROES
            | transmission::SEND_CACHE;
        if self.read_only {
            flags |= transmission::READ_ONLY;
        }
        if self.multi_conn {
            flags |= transmission::CAN_MULTI_CONN;
        }
        if self.fast_zero {
            flags |= transmission::SEND_FAST_ZERO;
        }
        if structured {
            flags |= transmission::SEND_DF;
        }
        flags
    }
}

/// The exports that one connection may see.
pub trait Exports {
    /// Each export in the order of the list; `secure` once TLS is up.
    fn each(&self, secure: bool, visit: &mut dyn FnMut(&Export));

    /// The export of that name, if this connection may see it. The empty name asks for the default.
    fn find(&self, name: &str, secure: bool) -> Option<&Export>;

    /// Whether one more connection may open an export that was found.
    fn has_place(&self, _export: &Export) -> bool {
        true
    }
}

impl Exports for [Export] {
    fn each(&self, _secure: bool, visit: &mut dyn FnMut(&Export)) {
        self.iter().for_each(visit);
    }

    fn find(&self, name: &str, _secure: bool) -> Option<&Export> {
        let default = || if name.is_empty() { self.first() } else { None };
        self.iter().find(|export| export.name == name).or_else(default)
    }
}
