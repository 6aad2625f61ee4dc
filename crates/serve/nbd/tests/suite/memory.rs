//! An export in memory behind a session: what the other tests talk to.
//!
//! For: tests. Each request is answered at once; chunks alternate between data and holes of 4 KiB
//! where the format has them.

use cachewright_nbd::{
    BlockSizes, Export, NbdCommand, NbdRequest, Range, Replies, Session, SessionEvent, Settings,
    StatusExtent, Violation,
};

/// Bytes of the unit in which holes are found.
const UNIT: usize = 4096;

pub fn export(name: &str, size: u64) -> Export {
    Export {
        name: name.to_owned(),
        description: String::new(),
        size,
        blocks: BlockSizes { min: 1, preferred: 4096, max_payload: 32 << 20 },
        read_only: false,
        multi_conn: true,
        fast_zero: true,
        contexts: vec!["base:allocation".to_owned(), "x-cachewright:dirty".to_owned()],
    }
}

/// One connection to exports in memory that all have the same bytes.
pub struct Memory {
    pub session: Session,
    pub exports: Vec<Export>,
    pub disk: Vec<u8>,
    /// What became of the connection.
    pub ended: Option<Result<(), Violation>>,
    pub flushes: u32,
    write: Option<(NbdRequest, usize)>,
}

impl Memory {
    /// A new connection and its greeting.
    pub fn new(settings: Settings, exports: Vec<Export>) -> (Memory, Vec<u8>) {
        let mut greeting = Vec::new();
        let session = Session::new(settings, &mut greeting);
        let disk = vec![0; exports[0].size as usize];
        let (ended, write) = (None, None);
        (Memory { session, exports, disk, ended, flushes: 0, write }, greeting)
    }

    /// Takes bytes, answers what can be answered.
    pub fn receive(&mut self, mut input: &[u8], out: &mut Vec<u8>) {
        while self.ended.is_none() {
            let exports = self.exports.as_slice();
            let Some(event) = self.session.next(&mut input, exports, out) else { return };
            match event {
                SessionEvent::Opened(_) | SessionEvent::Answered => {}
                SessionEvent::StartTls => self.session.secured(),
                SessionEvent::Request(request) => self.request(request, out),
                SessionEvent::Payload { bytes, last } => {
                    let (request, at) = self.write.unwrap();
                    self.disk[at..at + bytes.len()].copy_from_slice(bytes);
                    self.write = Some((request, at + bytes.len()));
                    if last {
                        self.session.replies().done(&request, out);
                    }
                }
                SessionEvent::Disconnect => self.ended = Some(Ok(())),
                SessionEvent::Violation(violation) => self.ended = Some(Err(violation)),
            }
        }
    }

    fn request(&mut self, request: NbdRequest, out: &mut Vec<u8>) {
        let replies = self.session.replies();
        match request.command {
            NbdCommand::Write(range) => self.write = Some((request, range.offset as usize)),
            NbdCommand::Read { range, whole } => self.read(&request, range, whole, replies, out),
            NbdCommand::Zero { range, .. } | NbdCommand::Trim(range) => {
                self.disk[bytes(range)].fill(0);
                replies.done(&request, out);
            }
            NbdCommand::Flush => {
                self.flushes += 1;
                replies.done(&request, out);
            }
            NbdCommand::Cache(_) => replies.done(&request, out),
            NbdCommand::BlockStatus { range, single_extent } => {
                let contexts: Vec<u32> = self.session.contexts().collect();
                for context in &contexts {
                    let mut extents = self.extents(range);
                    extents.truncate(if single_extent { 1 } else { usize::MAX });
                    let last = Some(context) == contexts.last();
                    replies.extents(&request, *context, &extents, last, out);
                }
            }
        }
    }

    fn read(
        &self,
        request: &NbdRequest,
        range: Range,
        whole: bool,
        replies: Replies,
        out: &mut Vec<u8>,
    ) {
        if whole || !replies.in_chunks() {
            replies.data(request, range.offset, range.length as u32, true, out);
            out.extend_from_slice(&self.disk[bytes(range)]);
            return;
        }
        let mut at = range.offset;
        for extent in self.extents(range) {
            let part = Range { offset: at, length: extent.length };
            if extent.status == 0 {
                replies.data(request, at, extent.length as u32, false, out);
                out.extend_from_slice(&self.disk[bytes(part)]);
            } else {
                replies.hole(request, at, extent.length as u32, false, out);
            }
            at += extent.length;
        }
        replies.done(request, out);
    }

    /// Runs of data and of zeroes, by units.
    fn extents(&self, range: Range) -> Vec<StatusExtent> {
        let mut extents: Vec<StatusExtent> = Vec::new();
        let range = bytes(range);
        let mut at = range.start;
        while at < range.end {
            let end = ((at / UNIT + 1) * UNIT).min(range.end);
            let zero = self.disk[at..end].iter().all(|byte| *byte == 0);
            let (length, status) = ((end - at) as u64, if zero { 3 } else { 0 });
            match extents.last_mut() {
                Some(last) if last.status == status => last.length += length,
                _ => extents.push(StatusExtent { length, status }),
            }
            at = end;
        }
        extents
    }
}

fn bytes(range: Range) -> std::ops::Range<usize> {
    range.offset as usize..(range.offset + range.length) as usize
}
