//! Sockets of TCP that clients connect to.
//!
//! For: exports over a network. Must never know: the protocol. A port alone means the loopback
//! address: what is served to other machines is asked for by naming an address.

use super::{Listener, OpenError, tried_again};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

/// Listens at `address`: `PORT`, `ADDRESS:PORT` or `[ADDRESS]:PORT`. Port 0 takes a free one.
///
/// Errors: it is no such address, or it is in use or not of this machine.
pub fn tcp_listener(address: &str) -> Result<Listener, OpenError> {
    let expected = "`PORT`, or `ADDRESS:PORT` with an IP address";
    let parsed = match address.parse::<u16>() {
        Ok(port) => SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
        Err(_) => address.parse::<SocketAddr>().map_err(|error| {
            OpenError::new("TCP address", format!("`{address}` ({error})"), expected)
        })?,
    };
    let free = "a free address of this machine";
    let is_held = |outcome: &io::Result<TcpListener>| {
        outcome.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse)
    };
    let listener = tried_again(|| TcpListener::bind(parsed), is_held)
        .map_err(|error| OpenError::new(parsed, error, free))?;
    let bound = listener.local_addr().map_err(|error| OpenError::new(parsed, error, free))?;
    Ok(Listener { socket: listener.into(), is_tcp: true, address: bound.to_string(), _file: None })
}
