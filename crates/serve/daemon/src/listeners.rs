//! The sockets that clients of a server connect to.
//!
//! For: addresses of a stack, opened or taken from the service manager. Must never know: clients.

use crate::error::LiveError;
use crate::manager;
use cachewright_live::io::open::{Listener, passed_listener, tcp_listener, unix_listener};
use cachewright_stack::ListenAddress;

/// A listener for each address, and for each socket that is passed. Errors: one cannot be opened;
/// none is passed where the stack says so.
pub fn listeners(addresses: &[ListenAddress]) -> Result<Vec<Listener>, LiveError> {
    let mut found = Vec::new();
    for address in addresses {
        match address {
            ListenAddress::Unix(path) => found.push(unix_listener(path)?),
            ListenAddress::Tcp(text) => found.push(tcp_listener(text)?),
            ListenAddress::Passed => {
                for number in passed()? {
                    found.push(passed_listener(number)?);
                }
            }
        }
    }
    Ok(found)
}

fn passed() -> Result<Vec<i32>, LiveError> {
    let refuse = |found: String| {
        let expected = "expected a socket unit that starts this service";
        LiveError::Refused(format!("`serve.listen`: found `systemd`, and {found}; {expected}"))
    };
    let numbers = manager::passed_sockets().map_err(|error| refuse(error.to_string()))?;
    if numbers.is_empty() {
        return Err(refuse("no socket that it has passed".to_owned()));
    }
    Ok(numbers)
}
