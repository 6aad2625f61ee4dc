//! A volume whose cache has failed: how far it is, and requests that wait for that.
//!
//! For: the stages from a failed cache to requests that pass. Must never know: other volumes, how
//! content is rescued, marks. Units: requests.

use super::super::request::BlockRequest;
use crate::log::format::VolumeId;
use std::collections::VecDeque;

/// What becomes of the requests of a volume whose cache has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// Reads pass; changes wait until what only the log has is rescued.
    Waits,
    /// All pass.
    Passes,
    /// Reads pass, all others get errors: no device takes the mark.
    ReadsOnly,
    /// All get errors: the backing device has failed. What only the log has stays there.
    Fails,
}

/// How far a volume is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BypassStage {
    Rescuing,
    /// All is rescued; a mark is to say so.
    Rescued,
    Marking,
    /// It is known what becomes of its requests.
    Final(Passage),
}

/// A volume, and the requests of it that wait.
#[derive(Debug)]
pub struct BypassedVolume {
    id: VolumeId,
    stage: BypassStage,
    waiting: VecDeque<BlockRequest>,
    lost: u64,
}

impl BypassedVolume {
    /// A volume of which nothing is rescued yet.
    pub fn new(id: VolumeId) -> BypassedVolume {
        BypassedVolume { id, stage: BypassStage::Rescuing, waiting: VecDeque::new(), lost: 0 }
    }

    /// What becomes of its requests.
    pub fn passage(&self) -> Passage {
        match self.stage {
            BypassStage::Final(passage) => passage,
            _ => Passage::Waits,
        }
    }

    /// Whether that changes no more.
    pub fn is_settled(&self) -> bool {
        self.passage() != Passage::Waits
    }

    /// Content of a block could not be read, and is lost.
    pub fn note_lost(&mut self) {
        self.lost += 1;
    }

    /// Blocks whose content was lost, overwritten since or not.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// All of its content is rescued.
    pub fn end_rescue(&mut self) {
        self.stage = BypassStage::Rescued;
    }

    /// Whether a mark is to say that all of its content is rescued.
    pub fn is_rescued(&self) -> bool {
        self.stage == BypassStage::Rescued
    }

    /// Such a mark is written; returns the volume that it names.
    pub fn begin_mark(&mut self) -> VolumeId {
        self.stage = BypassStage::Marking;
        self.id
    }

    /// Whether such a mark is under way.
    pub fn is_marking(&self) -> bool {
        self.stage == BypassStage::Marking
    }

    /// It is known what becomes of its requests; returns those that have waited.
    pub fn settle(&mut self, passage: Passage) -> VecDeque<BlockRequest> {
        self.stage = BypassStage::Final(passage);
        std::mem::take(&mut self.waiting)
    }

    /// A request waits until that is known.
    pub fn wait(&mut self, request: BlockRequest) {
        self.waiting.push_back(request);
    }

    /// The requests that need not wait any more.
    pub fn release(&mut self, is_free: impl Fn(&BlockRequest) -> bool) -> VecDeque<BlockRequest> {
        if !self.waiting.iter().any(&is_free) {
            return VecDeque::new();
        }
        let (free, others) = std::mem::take(&mut self.waiting).into_iter().partition(is_free);
        self.waiting = others;
        free
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::request::BlockOp;
    use super::*;
    use crate::io::Buffer;
    use cachewright_types::TenantId;

    #[test]
    fn requests_wait_until_it_is_known_what_becomes_of_them() {
        let mut volume = BypassedVolume::new(VolumeId(4));
        for tag in 0..3 {
            let (tenant, op, data) = (TenantId(0), BlockOp::Read, Buffer::default());
            let (offset, length, durable) = (0, 4096, false);
            volume.wait(BlockRequest { tag, tenant, op, offset, length, durable, data });
        }
        let tags = |requests: VecDeque<BlockRequest>| {
            requests.into_iter().map(|request| request.tag).collect::<Vec<u64>>()
        };
        assert_eq!(tags(volume.release(|request| request.tag == 1)), [1]);
        assert_eq!(tags(volume.release(|request| request.tag == 1)), [0; 0]);
        volume.end_rescue();
        assert!(volume.is_rescued() && !volume.is_settled());
        assert_eq!((volume.begin_mark(), volume.passage()), (VolumeId(4), Passage::Waits));
        assert!(volume.is_marking());
        assert_eq!(tags(volume.settle(Passage::Passes)), [0, 2]);
        assert_eq!((volume.is_settled(), volume.passage()), (true, Passage::Passes));
    }
}
