//! Addresses that only this machine reaches.
//!
//! For: where to listen, and which names browsers may use for it. Must never know: sockets. A page
//! from elsewhere could point a name of its own at this machine and read answers through a
//! browser; requests under such a name are refused.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The address in `text`: `PORT`, `ADDRESS:PORT` or `localhost:PORT`. Errors: it is another
/// machine's, or all of this one's.
pub fn local_address(text: &str) -> Result<SocketAddr, String> {
    let expected = "expected a port, or a loopback address and a port, such as `127.0.0.1:9464`";
    let text = text.strip_prefix("tcp:").unwrap_or(text);
    let port = text.strip_prefix("localhost:").unwrap_or(text);
    if let Ok(port) = port.parse::<u16>() {
        return Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    }
    match text.parse::<SocketAddr>() {
        Ok(address) if address.ip().is_loopback() => Ok(address),
        _ => Err(format!("found `{text}`, {expected}")),
    }
}

/// Whether the `Host` of a request names this machine as such.
pub fn is_local_host(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    bare.eq_ignore_ascii_case("localhost")
        || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_this_machine_alone_are_taken() {
        for (text, expected) in [
            ("9464", "127.0.0.1:9464"),
            ("tcp:9464", "127.0.0.1:9464"),
            ("localhost:1", "127.0.0.1:1"),
            ("127.0.0.2:80", "127.0.0.2:80"),
            ("[::1]:80", "[::1]:80"),
        ] {
            assert_eq!(local_address(text).map(|found| found.to_string()), Ok(expected.to_owned()));
        }
        for text in ["", "0.0.0.0:80", "[::]:80", "10.0.0.1:80", "example.org:80", "127.0.0.1"] {
            let error = local_address(text).unwrap_err();
            assert!(error.contains("expected a port"), "{error}");
        }
    }

    #[test]
    fn hosts_of_other_names_are_not_local() {
        let local =
            ["localhost", "LOCALHOST:1", "127.0.0.1:9464", "[::1]:80", "[::1]", "127.9.9.9"];
        assert!(local.into_iter().all(is_local_host));
        let others = ["", "example.org", "127.0.0.1.example.org:80", "10.0.0.1:80", "localhost.x"];
        assert!(!others.into_iter().any(is_local_host));
    }
}
