//! Operations on the backing devices of volumes. Whole pages, cut off at the end of the volume.
//! Errors: the device's; what becomes of its volume is the caller's to say.

use super::server::Engine;
use crate::io::{Buffer, FileId, IoError, IoOp, Output};
use cachewright_types::TenantId;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of zeroes that are written at once to a device that cannot zero.
const ZERO_BYTES: u64 = 1 << 20;

impl Engine {
    async fn device_op(
        &self,
        tenant: TenantId,
        op: impl FnOnce(FileId) -> IoOp,
    ) -> Result<Output, IoError> {
        let op = self.with(|state| {
            let file = state.volumes.backing(tenant).file();
            state.submit(op(file))
        });
        op.await
    }

    /// A range of bytes, up to the end of the volume.
    fn on_volume(&self, tenant: TenantId, bytes: Range<u64>) -> Range<u64> {
        let end = self.with(|state| state.volumes.bytes(tenant));
        bytes.start..bytes.end.min(end).max(bytes.start)
    }

    /// Reads a range of bytes.
    pub(super) async fn read_device(
        &self,
        tenant: TenantId,
        bytes: Range<u64>,
    ) -> Result<Buffer, IoError> {
        let Range { start: offset, end } = self.on_volume(tenant, bytes);
        let buffer = Buffer::zeroed((end - offset) as usize);
        match self.device_op(tenant, |file| IoOp::Read { file, offset, buffer }).await? {
            Output::Buffer(data, _) => Ok(data),
            _ => Err(IoError::IO),
        }
    }

    /// Writes these bytes.
    pub(super) async fn write_device(
        &self,
        tenant: TenantId,
        offset: u64,
        mut data: Buffer,
    ) -> Result<(), IoError> {
        let bytes = self.on_volume(tenant, offset..offset + data.len() as u64);
        data.truncate((bytes.end - offset) as usize);
        let buffer = Arc::new(data);
        self.device_op(tenant, |file| IoOp::Write { file, offset, buffer }).await.map(drop)
    }

    /// Makes a range read as zeroes, by a hole if it may be one. A device that cannot is written
    /// to, piece by piece.
    pub(super) async fn zero_device(
        &self,
        tenant: TenantId,
        bytes: Range<u64>,
        as_hole: bool,
    ) -> Result<(), IoError> {
        let bytes = self.on_volume(tenant, bytes);
        let (offset, length) = (bytes.start, bytes.end - bytes.start);
        let zeroed = self.device_op(tenant, |file| match as_hole {
            true => IoOp::Zero { file, offset, length },
            false => IoOp::Provision { file, offset, length },
        });
        match zeroed.await {
            Err(IoError::NOT_SUPPORTED) => self.write_zeroes(tenant, bytes).await,
            zeroed => zeroed.map(drop),
        }
    }

    async fn write_zeroes(&self, tenant: TenantId, bytes: Range<u64>) -> Result<(), IoError> {
        let mut offset = bytes.start;
        while offset < bytes.end {
            let length = (bytes.end - offset).min(ZERO_BYTES);
            let buffer = match length {
                ZERO_BYTES => self.with(|state| {
                    let zeroes = || Arc::new(Buffer::zeroed(ZERO_BYTES as usize));
                    state.zeroes.get_or_insert_with(zeroes).clone()
                }),
                _ => Arc::new(Buffer::zeroed(length as usize)),
            };
            self.device_op(tenant, |file| IoOp::Write { file, offset, buffer }).await?;
            offset += length;
        }
        Ok(())
    }

    /// Tells the device that a range is not needed. That a device cannot trim is no error.
    pub(super) async fn discard_device(
        &self,
        tenant: TenantId,
        bytes: Range<u64>,
    ) -> Result<(), IoError> {
        let Range { start: offset, end } = self.on_volume(tenant, bytes);
        let length = end - offset;
        match self.device_op(tenant, |file| IoOp::Discard { file, offset, length }).await {
            Err(IoError::NOT_SUPPORTED) => Ok(()),
            discarded => discarded.map(drop),
        }
    }

    /// Makes all that was written durable.
    pub(super) async fn sync_device(&self, tenant: TenantId) -> Result<(), IoError> {
        self.device_op(tenant, |file| IoOp::Sync { file }).await.map(drop)
    }
}
