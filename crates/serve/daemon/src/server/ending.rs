//! The end of a server, in order.
//!
//! For: what was answered is durable, and the log's segments are ended. Must never know: clients.

use super::LAST_SYNC;
use crate::error::LiveError;
use cachewright_live::blocks::{BlockAnswer, BlockOp, BlockRequest, BlockServer};
use cachewright_live::io::delayed::Delayed;
use cachewright_live::io::system::SystemIo;
use cachewright_live::io::{Buffer, Done, FileId, Io, IoError, IoOp};
use cachewright_types::TenantId;

/// A server without clients.
pub(super) struct EndingServer {
    pub(super) io: Delayed<SystemIo>,
    pub(super) blocks: BlockServer,
    pub(super) done: Vec<Done>,
    /// Last syncs of the cache's devices that are under way, and the error of one.
    pub(super) syncs: usize,
    pub(super) failed: Option<IoError>,
}

impl EndingServer {
    /// Makes all that was answered durable, of each tenant as far as that goes, whose exports have
    /// these names. Errors: a device fails.
    pub(super) fn flush(&mut self, tenants: &[usize], exports: &[String]) -> Result<(), LiveError> {
        for tenant in tenants.iter().copied() {
            let flush = BlockRequest {
                tag: tenant as u64,
                tenant: TenantId(tenant as u16),
                op: BlockOp::Flush,
                offset: 0,
                length: 0,
                durable: true,
                data: Buffer::default(),
            };
            self.blocks.request(&mut self.io, flush);
        }
        let mut answers = Vec::new();
        while answers.len() < tenants.len() {
            self.blocks.advance(&mut self.io);
            answers.extend(self.blocks.take_answers());
            if answers.len() < tenants.len() {
                self.wait();
            }
        }
        answers.sort_unstable_by_key(|answer| answer.tag);
        let failed = |answer: BlockAnswer| {
            let (export, error) = (&exports[answer.tag as usize], answer.result.err()?);
            Some(format!("export `{export}`: {error}"))
        };
        let failed: Vec<String> = answers.into_iter().filter_map(failed).collect();
        if failed.is_empty() { Ok(()) } else { Err(not_durable(failed.join("; "))) }
    }

    /// Ends the segments of the log. One that is bypassed is not ended: volumes do without it, or
    /// a flush has failed. Errors: a device fails.
    pub(super) fn close(&mut self, cache: &[FileId]) -> Result<(), LiveError> {
        if self.blocks.log_failure().is_some() {
            return Ok(());
        }
        self.blocks.close(&mut self.io);
        self.blocks.advance(&mut self.io);
        while self.blocks.is_closing() {
            self.wait();
            self.blocks.advance(&mut self.io);
        }
        cache.iter().for_each(|file| self.io.submit(LAST_SYNC, IoOp::Sync { file: *file }));
        self.syncs = cache.len();
        while self.syncs > 0 {
            self.wait();
        }
        self.failed.map_or(Ok(()), |error| Err(not_durable(error)))
    }

    /// Takes what is done. The timer may be over, too.
    fn wait(&mut self) {
        self.io.wait(&mut self.done);
        for done in self.done.drain(..) {
            if done.token == LAST_SYNC {
                self.syncs -= 1;
                self.failed = self.failed.or(done.error);
            } else if self.blocks.owns(done.token) {
                self.blocks.on_done(&mut self.io, done);
            }
        }
    }
}

fn not_durable(error: impl std::fmt::Display) -> LiveError {
    LiveError::Failed(format!("stopped, and not all that was written is durable: {error}"))
}
