//! What a server shows of itself, and which clients it lets in.
//!
//! For: certificates, keys and authorities as PEM text, checked once at the start. Must never know:
//! where the text lies. Protocol versions: TLS 1.2 and 1.3, with the cipher suites that rustls
//! offers by default.

use rustls::RootCertStore;
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use std::sync::Arc;

/// What a server shows of itself, and which clients it lets in. Cheap to clone.
#[derive(Clone, Debug)]
pub struct TlsConfig(pub(super) Arc<ServerConfig>);

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
