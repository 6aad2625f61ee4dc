//! The `[serve]` table: what a live server keeps the cache on, and where clients connect.
//!
//! For: paths taken from the stack file's folder, and addresses told apart. Must never know: files,
//! sockets, what is behind an address. Units: bytes.

use crate::document::Reader;
use crate::tables::{ServeTable, ServeTls};
use std::ops::Deref;
use std::path::{Path, PathBuf};

/// Where clients connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// A socket in the file system.
    Unix(PathBuf),
    /// A port, or an IP address and a port.
    Tcp(String),
    /// A socket in the file system for the guest of one volume; see [`ListenAddress::of_volume`].
    Vhost(PathBuf),
    /// All sockets that the service manager passes.
    Passed,
}

/// What stands for the name of a volume in the path of a socket for guests.
const VOLUME: &str = "{volume}";

impl ListenAddress {
    /// The socket for the guest of a volume of this name, if it is one for guests.
    pub fn of_volume(&self, name: &str) -> Option<PathBuf> {
        match self {
            ListenAddress::Vhost(path) => {
                Some(PathBuf::from(path.to_string_lossy().replace(VOLUME, name)))
            }
            _ => None,
        }
    }

    /// Whether each volume has a socket of its own, which its name is a part of.
    pub fn names_volumes(&self) -> bool {
        matches!(self, ListenAddress::Vhost(path) if path.to_string_lossy().contains(VOLUME))
    }
}

/// How a live server does TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// PEM file of the server's certificate.
    pub certificate: PathBuf,
    /// PEM file of its private key.
    pub key: PathBuf,
    /// PEM file of the authorities that sign the certificates of clients.
    pub authorities: Option<PathBuf>,
    /// Whether clients must use TLS.
    pub is_required: bool,
}

/// The `[serve]` table with every default filled in, and what follows from it.
#[derive(Clone, Debug, PartialEq)]
pub struct ServeSpec {
    table: ServeTable,
    /// The files or block devices of the cache, in the order of the file.
    pub devices: Vec<PathBuf>,
    /// Where clients connect.
    pub listen: Vec<ListenAddress>,
    /// How it does TLS, if it does.
    pub secure: Option<TlsFiles>,
    /// The folder of recordings, if there are to be some.
    pub recordings: Option<PathBuf>,
    /// The file in which the server remembers what it has served, if it is named.
    pub state: Option<PathBuf>,
}

impl Deref for ServeSpec {
    type Target = ServeTable;

    fn deref(&self) -> &ServeTable {
        &self.table
    }
}

impl ServeSpec {
    /// The table of a file in `folder`, if it has one. Errors: a key is refused, an address of
    /// another form.
    pub fn read(file: &Reader<'_>, folder: &Path) -> Result<Option<ServeSpec>, String> {
        let reader = file.table("serve")?;
        if !reader.is_there() {
            return Ok(None);
        }
        let table: ServeTable = reader.read()?;
        let address = |(index, text): (usize, &String)| {
            address(text, folder).ok_or_else(|| {
                let expected =
                    "`unix:PATH`, `tcp:PORT`, `tcp:ADDRESS:PORT`, `vhost:PATH` or `systemd`";
                format!("`serve.listen[{}]`: found `{text}`, expected {expected}", index + 1)
            })
        };
        let listen = table.listen.iter().enumerate().map(address).collect::<Result<_, _>>()?;
        let empty = table.devices.iter().position(String::is_empty);
        if let Some(index) = empty {
            let expected = "the path of a file or block device";
            return Err(format!("`serve.devices[{}]`: found ``, expected {expected}", index + 1));
        }
        let devices = table.devices.iter().map(|path| folder.join(path)).collect();
        let low = table.dirty_low();
        if low > table.dirty_high {
            let expected = format!("at most `serve.dirty_high`, {}", table.dirty_high);
            return Err(format!("`serve.dirty_low`: found `{low}`, expected {expected}"));
        }
        let secure = tls_files(&table, folder)?;
        let recordings = table.record.as_ref().map(|path| folder.join(path));
        let state = table.state.as_ref().map(|path| folder.join(path));
        if state.as_deref().is_some_and(|path| path.file_name().is_none()) {
            let found = table.state.as_deref().unwrap_or_default();
            return Err(format!("`serve.state`: found `{found}`, expected the path of a file"));
        }
        Ok(Some(ServeSpec { table, devices, listen, secure, recordings, state }))
    }
}

impl ServeTable {
    /// The share of dirty blocks at which writing back ahead of need ends.
    pub fn dirty_low(&self) -> f64 {
        self.dirty_low.unwrap_or(self.dirty_high * 0.9)
    }
}

/// The files of TLS. Errors: one is missing, or given without `tls`.
fn tls_files(table: &ServeTable, folder: &Path) -> Result<Option<TlsFiles>, String> {
    let [certificate, key, authorities] = [
        ("tls_certificate", &table.tls_certificate),
        ("tls_key", &table.tls_key),
        ("tls_authorities", &table.tls_authorities),
    ]
    .map(|(name, path)| (name, path.as_ref().map(|path| folder.join(path))));
    if table.tls == ServeTls::Off {
        let given = [certificate, key, authorities];
        return match given.into_iter().find_map(|(name, path)| Some((name, path?))) {
            Some((name, path)) => Err(format!(
                "`serve.{name}`: found `{}`, expected `serve.tls` to be `available` or `required` \
                 beside it",
                path.display()
            )),
            None => Ok(None),
        };
    }
    let needed = |(name, path): (&str, Option<PathBuf>)| {
        path.ok_or_else(|| {
            format!("found no `serve.{name}`, expected a PEM file, which `serve.tls` needs")
        })
    };
    Ok(Some(TlsFiles {
        certificate: needed(certificate)?,
        key: needed(key)?,
        authorities: authorities.1,
        is_required: table.tls == ServeTls::Required,
    }))
}

fn address(text: &str, folder: &Path) -> Option<ListenAddress> {
    if text == "systemd" {
        return Some(ListenAddress::Passed);
    }
    let (kind, rest) = text.split_once(':')?;
    match kind {
        "unix" if !rest.is_empty() => Some(ListenAddress::Unix(folder.join(rest))),
        "vhost" if !rest.is_empty() => Some(ListenAddress::Vhost(folder.join(rest))),
        "tcp" if !rest.is_empty() => Some(ListenAddress::Tcp(rest.to_owned())),
        _ => None,
    }
}
