//! TLS between the bytes of a socket and a session.
//!
//! For: connections whose clients asked for TLS. Must never know: sessions, requests. Units: bytes.
//! What was said before TLS began is sent first and as it is.

use super::tls::{TlsConfig, TlsFailure, TlsStream};
use crate::io::Buffer;

/// TLS of one connection.
#[derive(Debug)]
pub(super) struct SecureChannel {
    stream: TlsStream,
    /// What is to be sent before TLS begins.
    clear: Vec<Buffer>,
    /// Where encrypted bytes come in.
    memory: Buffer,
    /// Names of the client's certificate.
    names: Vec<String>,
    /// The client was told that nothing more comes.
    has_ended: bool,
}

impl SecureChannel {
    /// The handshake begins when `clear` is sent; `memory` is where encrypted bytes will come in.
    /// Errors: see [`TlsFailure`].
    pub(super) fn new(
        config: &TlsConfig,
        clear: Vec<Buffer>,
        memory: Buffer,
    ) -> Result<SecureChannel, TlsFailure> {
        let stream = TlsStream::new(config)?;
        Ok(SecureChannel { stream, clear, memory, names: Vec::new(), has_ended: false })
    }

    /// The memory for a receive.
    pub(super) fn take_memory(&mut self) -> Buffer {
        std::mem::take(&mut self.memory)
    }

    /// The plain bytes of the first `count` that came in. Errors: see [`TlsFailure`].
    pub(super) fn decrypt(&mut self, memory: Buffer, count: usize) -> Result<Buffer, TlsFailure> {
        let was_up = self.stream.is_up();
        let mut plain = Vec::with_capacity(count);
        let decrypted = self.stream.decrypt(&memory[..count], &mut plain);
        self.memory = memory;
        if self.stream.is_up() && !was_up {
            self.names = self.stream.client_names();
        }
        decrypted.map(|()| plain.into())
    }

    /// What is to be sent for these plain bytes; `is_last` if none will follow. Errors: see
    /// [`TlsFailure`].
    pub(super) fn encrypt(
        &mut self,
        plain: &[Buffer],
        is_last: bool,
    ) -> Result<Vec<Buffer>, TlsFailure> {
        let mut wire = Vec::with_capacity(plain.iter().map(|buffer| buffer.len() + 64).sum());
        for buffer in plain {
            self.stream.encrypt(buffer, &mut wire)?;
        }
        if is_last && !self.has_ended {
            self.has_ended = true;
            self.stream.end();
        }
        self.stream.encrypt(&[], &mut wire)?;
        let mut buffers = std::mem::take(&mut self.clear);
        if !wire.is_empty() {
            buffers.push(wire.into());
        }
        Ok(buffers)
    }

    /// Whether the handshake is over.
    pub(super) fn is_up(&self) -> bool {
        self.stream.is_up()
    }

    /// Whether a part of a record has come, and not the rest of it.
    pub(super) fn is_within_record(&self) -> bool {
        self.stream.is_within_record()
    }

    /// Whether the client sends no more.
    pub(super) fn is_ended(&self) -> bool {
        self.stream.is_ended()
    }

    /// Whether the client was sent all, the end included.
    pub(super) fn is_sent(&self) -> bool {
        self.has_ended && self.clear.is_empty() && !self.stream.has_output()
    }

    /// Names of the client's certificate.
    pub(super) fn client_names(&self) -> &[String] {
        &self.names
    }
}
