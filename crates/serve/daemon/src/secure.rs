//! The certificates and keys of a stack.
//!
//! For: a server that offers TLS. Must never know: clients. A file that is missing or wrong is
//! refused before anything is written.

use crate::error::LiveError;
use crate::plan::LivePlan;
use cachewright_live::exports::{TlsConfig, TlsConfigError};
use std::path::Path;

/// How the stack does TLS, and whether clients must use it; nothing where it does not. Errors: a
/// file cannot be read, or is not what it is given for.
pub fn tls_config(plan: &LivePlan) -> Result<Option<(TlsConfig, bool)>, LiveError> {
    let Some(files) = &plan.serve.secure else { return Ok(None) };
    let read = |key: &str, path: &Path| {
        std::fs::read(path).map_err(|error| {
            let path = path.display();
            plan.refuse(format!("`serve.{key}`: found that `{path}` cannot be read: {error}"))
        })
    };
    let certificate = read("tls_certificate", &files.certificate)?;
    let private = read("tls_key", &files.key)?;
    let authorities = files.authorities.as_ref();
    let authorities = authorities.map(|path| read("tls_authorities", path)).transpose()?;
    let config = TlsConfig::new(&certificate, &private, authorities.as_deref());
    let config = config.map_err(|error| {
        let (key, path) = match &error {
            TlsConfigError::Certificate(_) => ("tls_certificate", Some(&files.certificate)),
            TlsConfigError::Key(_) => ("tls_key", Some(&files.key)),
            TlsConfigError::Authorities(_) => ("tls_authorities", files.authorities.as_ref()),
        };
        let path = path.map(|path| path.display().to_string()).unwrap_or_default();
        plan.refuse(format!("`serve.{key}`: in `{path}` {error}"))
    })?;
    Ok(Some((config, files.is_required)))
}
