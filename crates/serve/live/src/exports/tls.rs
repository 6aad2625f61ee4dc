//! TLS of a server's connections, without I/O: encrypted bytes in, plain bytes out, and back.
//!
//! Certificates, keys and authorities are PEM text, checked once at the start. A stream holds at
//! most one record that came in, and nothing that goes out; clients that the authorities did not
//! sign never get through the handshake. TLS 1.2 and 1.3, with the cipher suites that rustls offers
//! by default. Source: proto.md, "TLS support"; RFC 8446.

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection};
use std::io;
use std::io::{Read, Write};
use std::sync::Arc;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

/// Why a stream ended: the client broke TLS, or it is none that is let in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("TLS failed: {0}")]
pub struct TlsFailure(String);

impl From<rustls::Error> for TlsFailure {
    fn from(error: rustls::Error) -> TlsFailure {
        TlsFailure(error.to_string())
    }
}

impl From<io::Error> for TlsFailure {
    fn from(error: io::Error) -> TlsFailure {
        TlsFailure(error.to_string())
    }
}

/// Bytes of the header of a record, whose last two are the length of what follows.
const RECORD_HEADER: usize = 5;

/// Where records of a stream begin and end.
#[derive(Clone, Copy, Debug, Default)]
struct RecordFraming {
    /// Bytes of the header that have come; all of them while the rest of the record comes.
    header_bytes: usize,
    length: usize,
    /// Bytes behind the header that are still to come.
    left: usize,
}

impl RecordFraming {
    /// These bytes come next.
    fn take(&mut self, mut wire: &[u8]) {
        while let Some((byte, rest)) = wire.split_first() {
            if self.header_bytes < RECORD_HEADER {
                self.length = (self.length << 8 | usize::from(*byte)) & 0xffff;
                self.header_bytes += 1;
                self.left = self.length;
                wire = rest;
            } else {
                let count = self.left.min(wire.len());
                self.left -= count;
                wire = &wire[count..];
            }
            if self.header_bytes == RECORD_HEADER && self.left == 0 {
                *self = RecordFraming::default();
            }
        }
    }

    fn is_within_record(self) -> bool {
        self.header_bytes > 0
    }
}

/// TLS of one connection.
#[derive(Debug)]
pub struct TlsStream {
    tls: ServerConnection,
    framing: RecordFraming,
    /// The client will send no more.
    is_ended: bool,
}

impl TlsStream {
    /// The handshake begins: the client speaks first. Errors: see [`TlsFailure`].
    pub fn new(config: &TlsConfig) -> Result<TlsStream, TlsFailure> {
        let tls = ServerConnection::new(Arc::clone(&config.0))?;
        Ok(TlsStream { tls, framing: RecordFraming::default(), is_ended: false })
    }

    /// Takes what came in; plain bytes are appended to `plain`, which are at most as many. After an
    /// error only [`TlsStream::encrypt`] may be called: it yields the alert for the client. Errors:
    /// see [`TlsFailure`].
    pub fn decrypt(&mut self, mut wire: &[u8], plain: &mut Vec<u8>) -> Result<(), TlsFailure> {
        self.framing.take(wire);
        while !wire.is_empty() && !self.is_ended {
            self.tls.read_tls(&mut wire)?;
            let state = self.tls.process_new_packets()?;
            self.is_ended = state.peer_has_closed();
            let from = plain.len();
            plain.resize(from + state.plaintext_bytes_to_read(), 0);
            self.tls.reader().read_exact(&mut plain[from..])?;
        }
        Ok(())
    }

    /// Encrypts `plain`, behind what TLS itself has to say, and appends it to `wire`. Nothing plain
    /// may be sent before the handshake is over. Errors: see [`TlsFailure`].
    pub fn encrypt(&mut self, mut plain: &[u8], wire: &mut Vec<u8>) -> Result<(), TlsFailure> {
        loop {
            while self.tls.wants_write() {
                self.tls.write_tls(wire)?;
            }
            if plain.is_empty() {
                return Ok(());
            }
            let count = self.tls.writer().write(plain)?;
            plain = &plain[count..];
        }
    }

    /// Tells the client that nothing more comes; [`TlsStream::encrypt`] yields it.
    pub fn end(&mut self) {
        self.tls.send_close_notify();
    }

    /// Whether the handshake is over.
    pub fn is_up(&self) -> bool {
        !self.tls.is_handshaking()
    }

    /// Whether a part of a record has come, and not the rest of it.
    pub fn is_within_record(&self) -> bool {
        self.framing.is_within_record()
    }

    /// Whether the client said that it sends no more.
    pub fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Whether TLS itself has something to say.
    pub fn has_output(&self) -> bool {
        self.tls.wants_write()
    }

    /// Names that the client's certificate vouches for, once the handshake is over: its DNS names
    /// and its common name. None where no certificate was asked for.
    pub fn client_names(&self) -> Vec<String> {
        let chain = self.tls.peer_certificates().unwrap_or_default();
        chain.first().map(|certificate| of_certificate(certificate)).unwrap_or_default()
    }
}

/// What a server shows of itself, and which clients it lets in. Cheap to clone.
#[derive(Clone, Debug)]
pub struct TlsConfig(Arc<ServerConfig>);

/// Which of the texts is not as expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsConfigError {
    /// The certificate.
    #[error("found {0}, expected certificates in PEM form, the server's first")]
    Certificate(String),
    /// The key.
    #[error("found {0}, expected the private key of the certificate in PEM form")]
    Key(String),
    /// The authorities.
    #[error("found {0}, expected certificates of authorities in PEM form")]
    Authorities(String),
}

impl TlsConfig {
    /// A server with this certificate (and those between it and its authority) and its key. With
    /// `authorities`, clients must show a certificate that one of them signed. Errors: see
    /// [`TlsConfigError`].
    pub fn new(
        certificate: &[u8],
        key: &[u8],
        authorities: Option<&[u8]>,
    ) -> Result<TlsConfig, TlsConfigError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let chain = certificates(certificate).map_err(TlsConfigError::Certificate)?;
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|error| TlsConfigError::Key(error.to_string()))?;
        let verifier = match authorities {
            Some(authorities) => {
                verifier(authorities, &provider).map_err(TlsConfigError::Authorities)?
            }
            None => WebPkiClientVerifier::no_client_auth(),
        };
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsConfigError::Key(error.to_string()))?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key)
            .map_err(|error| TlsConfigError::Key(error.to_string()))?;
        Ok(TlsConfig(Arc::new(config)))
    }
}

type Verifier = Arc<dyn rustls::server::danger::ClientCertVerifier>;

fn verifier(pem: &[u8], provider: &Arc<CryptoProvider>) -> Result<Verifier, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem)? {
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    let builder =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
    let verifier = builder.build().map_err(|error| error.to_string())?;
    Ok(verifier)
}

/// The certificates of a text, of which it has at least one.
fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if found.is_empty() => Err("no certificate".to_owned()),
        Ok(found) => Ok(found),
        Err(error) => Err(error.to_string()),
    }
}

/// DNS names of the subject, then its common names; none of a certificate that cannot be read.
fn of_certificate(der: &[u8]) -> Vec<String> {
    let Ok((_, certificate)) = X509Certificate::from_der(der) else { return Vec::new() };
    let mut names = Vec::new();
    if let Ok(Some(alternatives)) = certificate.subject_alternative_name() {
        for name in &alternatives.value.general_names {
            if let GeneralName::DNSName(name) = name {
                names.push((*name).to_owned());
            }
        }
    }
    for name in certificate.subject().iter_common_name() {
        names.extend(name.as_str().ok().map(str::to_owned));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_told_apart_however_they_are_cut() {
        let long = [&[23, 3, 3, 1, 2][..], &[9; 258]].concat();
        let wire = [&[22, 3, 1, 0, 3, 1, 2, 3][..], &[21, 3, 3, 0, 0], &long].concat();
        let ends = [8, 13, wire.len()];
        for piece in [1, 2, 7, wire.len()] {
            let mut framing = RecordFraming::default();
            let mut place = 0;
            for bytes in wire.chunks(piece) {
                framing.take(bytes);
                place += bytes.len();
                assert_eq!(framing.is_within_record(), !ends.contains(&place), "{piece}, {place}");
            }
        }
    }
}
