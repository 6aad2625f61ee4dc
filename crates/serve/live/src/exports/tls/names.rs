//! The names in a certificate.
//!
//! For: rules on which client may see which export. Must never know: who signed it; that was
//! checked in the handshake.

use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

/// DNS names of the subject, then its common names; none of a certificate that cannot be read.
pub(super) fn of_certificate(der: &[u8]) -> Vec<String> {
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
