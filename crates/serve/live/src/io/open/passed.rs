//! Sockets that a service manager has opened and passed on.
//!
//! For: clients that wait while a server is started again, and ports below 1,024 without rights.
//! Must never know: which manager it was, or how it says which sockets there are.

use super::{Listener, OpenError};
use rustix::net::sockopt::{socket_acceptconn, socket_domain, socket_type};
use rustix::net::{AddressFamily, SocketType, getsockname};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use std::os::fd::OwnedFd;

/// The socket with this number in the process. It is taken as a copy, so that the number itself
/// stays open until the process ends.
///
/// Errors: there is no such descriptor, or it is no stream socket that listens.
pub fn passed_listener(number: i32) -> Result<Listener, OpenError> {
    let what = || format!("descriptor {number}");
    let expected = "a stream socket that listens, passed by a service manager";
    let failed = |error: rustix::io::Errno| OpenError::new(what(), error, expected);
    let own = pidfd_open(getpid(), PidfdFlags::empty()).map_err(failed)?;
    let socket = pidfd_getfd(&own, number, PidfdGetfdFlags::empty()).map_err(failed)?;
    let is_stream = socket_type(&socket).map_err(failed)? == SocketType::STREAM;
    if !is_stream || !socket_acceptconn(&socket).map_err(failed)? {
        return Err(OpenError::new(what(), "a socket that does not", expected));
    }
    let is_tcp = match socket_domain(&socket).map_err(failed)? {
        AddressFamily::UNIX => false,
        AddressFamily::INET | AddressFamily::INET6 => true,
        other => return Err(OpenError::new(what(), format!("{other:?}"), expected)),
    };
    let address = address_of(&socket).map_err(failed)?;
    Ok(Listener { socket, is_tcp, address, _file: None })
}

/// Where clients connect: a path, or an address with a port.
fn address_of(socket: &OwnedFd) -> rustix::io::Result<String> {
    let found = getsockname(socket)?;
    if let Ok(unix) = rustix::net::SocketAddrUnix::try_from(found.clone()) {
        let path = unix.path().map(|path| path.to_string_lossy().into_owned());
        return Ok(path.unwrap_or_else(|| "a socket without a path".to_owned()));
    }
    Ok(std::net::SocketAddr::try_from(found)?.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixListener;

    #[test]
    fn sockets_that_listen_are_taken_with_their_address() {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let taken = passed_listener(tcp.as_raw_fd()).unwrap();
        assert!(taken.is_tcp());
        assert_eq!(taken.address(), tcp.local_addr().unwrap().to_string());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        let unix = UnixListener::bind(&path).unwrap();
        let taken = passed_listener(unix.as_raw_fd()).unwrap();
        assert!(!taken.is_tcp());
        assert_eq!(taken.address(), path.display().to_string());
        drop((unix, taken));
        assert!(path.exists(), "the file is the manager's");
    }

    #[test]
    fn other_descriptors_are_refused() {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(tcp.local_addr().unwrap()).unwrap();
        let file = tempfile::tempfile().unwrap();
        for number in [client.as_raw_fd(), file.as_raw_fd(), 1 << 20] {
            let error = passed_listener(number).unwrap_err();
            assert_eq!(error.what, format!("descriptor {number}"));
        }
    }
}
