//! Holding a set: which start of a server may write to it.
//!
//! For: servers that no lock of the system keeps apart. Must never know: hosts, what a server does
//! that has lost its devices. Units: bytes. The last start that wrote its page holds the set.

use super::format::{HOLDER_OFFSET, Holder, PAGE};
use super::open::{OpenSet, OpenSetError};
use crate::io::{Buffer, FileId, Io, IoError, IoOp, Output, batch};

/// The holders of a set as its devices tell, those of other sets left out. A device that cannot be
/// read tells none.
pub fn holders(io: &mut impl Io, open: &OpenSet) -> Vec<Holder> {
    let pages = open.set.files().iter().map(|file| (*file, HOLDER_OFFSET, PAGE));
    let found = batch::read(io, pages).into_iter().flatten();
    let found = found.filter_map(|page| Holder::decode(&page));
    found.filter(|holder| holder.set == open.set.id()).collect()
}

/// Makes `holder` the one that holds a set, and waits until that is durable. Errors: a device
/// fails.
pub fn hold(io: &mut impl Io, open: &OpenSet, holder: &Holder) -> Result<(), OpenSetError> {
    for (device, file) in open.set.files().iter().enumerate() {
        let piece = (*file, HOLDER_OFFSET, Buffer::padded(&holder.encode()));
        batch::write(io, [piece]).map_err(|error| OpenSetError::Io { device, error })?;
    }
    Ok(())
}

/// The operation that looks who holds a device.
pub fn look(file: FileId) -> IoOp {
    IoOp::Read { file, offset: HOLDER_OFFSET, buffer: Buffer::zeroed(PAGE) }
}

/// Whether such a look found that another start than `own` holds the device. A page that cannot be
/// read says nothing.
pub fn is_taken(own: &Holder, found: &Output, error: Option<IoError>) -> bool {
    let (None, Output::Buffer(page, _)) = (error, found) else { return false };
    Holder::decode(page).is_some_and(|holder| holder.set == own.set && holder.start != own.start)
}
