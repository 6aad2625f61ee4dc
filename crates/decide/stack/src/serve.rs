//! The `[serve]` table: what a live server keeps the cache on, and where clients connect.
//!
//! For: paths taken from the stack file's folder, and addresses told apart. Must never know: files,
//! sockets, what is behind an address. Units: bytes.

use crate::reader::Reader;
use crate::tables::ServeTable;
use std::ops::Deref;
use std::path::{Path, PathBuf};

/// Where clients connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// A socket in the file system.
    Unix(PathBuf),
    /// A port, or an IP address and a port.
    Tcp(String),
}

/// The `[serve]` table with every default filled in, and what follows from it.
#[derive(Clone, Debug, PartialEq)]
pub struct ServeSpec {
    table: ServeTable,
    /// The files or block devices of the cache, in the order of the file.
    pub devices: Vec<PathBuf>,
    /// Where clients connect.
    pub listen: Vec<ListenAddress>,
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
                let expected = "`unix:PATH`, `tcp:PORT` or `tcp:ADDRESS:PORT`";
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
        Ok(Some(ServeSpec { table, devices, listen }))
    }
}

fn address(text: &str, folder: &Path) -> Option<ListenAddress> {
    let (kind, rest) = text.split_once(':')?;
    match kind {
        "unix" if !rest.is_empty() => Some(ListenAddress::Unix(folder.join(rest))),
        "tcp" if !rest.is_empty() => Some(ListenAddress::Tcp(rest.to_owned())),
        _ => None,
    }
}
