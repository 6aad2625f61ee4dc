//! The sockets that clients of a server connect to.
//!
//! For: addresses of a stack, opened or taken from the service manager. Must never know: clients.

use crate::error::LiveError;
use crate::manager;
use crate::plan::LivePlan;
use cachewright_live::io::open::{Listener, passed_listener, tcp_listener, unix_listener};
use cachewright_stack::ListenAddress;
use std::net::SocketAddr;

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

/// Sentences about addresses that other machines reach without having to use TLS.
pub fn exposed(plan: &LivePlan, listeners: &[Listener]) -> Vec<String> {
    if plan.serve.secure.as_ref().is_some_and(|files| files.is_required) {
        return Vec::new();
    }
    let reachable = |listener: &&Listener| {
        let address = listener.address().parse::<SocketAddr>();
        address.is_ok_and(|address| !address.ip().to_canonical().is_loopback())
    };
    let sentence = |listener: &Listener| {
        format!(
            "`serve.listen`: other machines reach {}, where clients need no TLS: they read and \
             write volumes, and nothing is encrypted; expected `serve.tls = \"required\"`, or a \
             loopback address",
            listener.address()
        )
    };
    listeners.iter().filter(reachable).map(sentence).collect()
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
