//! What is answered, and to which requests.

use crate::monitor_sample::{Watched, history, status};
use cachewright_daemon::monitor::{ConnectionBounds, Monitor, MonitorError};
use cachewright_result::status::LiveHistory;
use cachewright_result::status::LiveStatus;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

#[test]
fn each_answer_is_of_a_status_that_was_made_for_it() {
    let watched = Watched::start();
    for number in 1..4 {
        let (head, body) = watched.get("/status", &watched.address);
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert!(head.contains("application/json") && head.contains("no-store"), "{head}");
        let found: LiveStatus = serde_json::from_str(&body).unwrap();
        assert_eq!(found, status(f64::from(number)));
    }
    assert_eq!(watched.stop(), 3);
}

#[test]
fn the_last_hour_is_given_to_who_asks_for_it() {
    let watched = Watched::start();
    let (head, body) = watched.get("/history", &watched.address);
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("application/json"), "{head}");
    let found: LiveHistory = serde_json::from_str(&body).unwrap();
    assert_eq!(found, history(10.0));
    assert_eq!(watched.stop(), 0, "no status was asked for");
}

#[test]
fn the_page_refers_to_nothing_outside_and_asks_for_no_status() {
    let watched = Watched::start();
    let (head, body) = watched.get("/", "localhost");
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("text/html"), "{head}");
    assert!(head.contains("default-src 'none'"), "{head}");
    assert!(body.contains("\"/status\"") && body.contains("\"/history\""));
    assert!(body.contains("</html>"));
    for outside in ["http://", "https://", "src=", "@import", "url("] {
        let found = body.replace("http://www.w3.org/2000/svg", "");
        assert!(!found.contains(outside), "{outside}");
    }
    assert_eq!(watched.stop(), 0);
}

#[test]
fn requests_under_other_names_and_to_other_paths_are_refused() {
    let watched = Watched::start();
    let (head, body) = watched.get("/status", "example.org");
    assert!(head.starts_with("HTTP/1.1 403"), "{head}");
    assert!(body.contains("expected a request to localhost"), "{body}");
    assert!(watched.get("/nothing", "localhost").0.starts_with("HTTP/1.1 404"));
    assert_eq!(watched.stop(), 0);
}

#[test]
fn a_monitor_ends_while_clients_hold_connections_open() {
    let watched = Watched::start();
    let mut silent = TcpStream::connect(&watched.address).unwrap();
    silent.write_all(b"GET / HT").unwrap();
    let _other = TcpStream::connect(&watched.address).unwrap();
    watched.get("/", "localhost");
    let address = watched.address.parse().unwrap();
    watched.stop();
    Monitor::start(address).unwrap();
}

/// Whether the monitor ends a connection without an answer. It blocks until it does.
fn is_ended(mut client: TcpStream) -> bool {
    let mut found = Vec::new();
    let ended = client.read_to_end(&mut found);
    (ended.is_ok() && found.is_empty()) || ended.is_err()
}

#[test]
fn half_requests_are_ended_and_leave_their_places_to_others() {
    let header = Duration::from_millis(20);
    let bounds = ConnectionBounds { connections: 3, header, ..ConnectionBounds::default() };
    let watched = Watched::start_within(bounds);
    let texts = ["", "G", "GET /status HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: localhost\r\n"];
    let half = |index: usize| {
        let mut client = TcpStream::connect(&watched.address).unwrap();
        client.write_all(texts[index % texts.len()].as_bytes()).unwrap();
        client
    };
    let clients: Vec<TcpStream> = (0..40).map(half).collect();
    assert!(watched.get("/status", &watched.address).0.starts_with("HTTP/1.1 200"));
    assert!(clients.into_iter().all(is_ended));
    assert_eq!(watched.stop(), 1);
}

#[test]
fn clients_beyond_the_bound_wait_until_another_one_is_done() {
    let never = Duration::from_secs(1 << 20);
    let watched =
        Watched::start_within(ConnectionBounds { connections: 1, header: never, whole: never });
    let first = TcpStream::connect(&watched.address).unwrap();
    let mut second = TcpStream::connect(&watched.address).unwrap();
    second.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    second.set_nonblocking(true).unwrap();
    let early = second.read(&mut [0]).unwrap_err();
    assert_eq!(early.kind(), std::io::ErrorKind::WouldBlock, "its place is taken");
    drop(first);
    second.set_nonblocking(false).unwrap();
    let mut answer = String::new();
    second.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    watched.stop();
}

#[test]
fn a_connection_ends_at_its_time_without_an_answer_too() {
    let whole = Duration::from_millis(20);
    let bounds = ConnectionBounds { whole, ..ConnectionBounds::default() };
    // Nothing makes a status, so that no answer comes.
    let monitor = Monitor::start_within("127.0.0.1:0".parse().unwrap(), bounds).unwrap();
    let mut client = TcpStream::connect(monitor.address()).unwrap();
    client.write_all(b"GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    assert!(is_ended(client));
}

#[test]
fn an_address_that_is_taken_is_named() {
    let first = Monitor::start("127.0.0.1:0".parse().unwrap()).unwrap();
    let error = Monitor::start(first.address()).unwrap_err();
    assert!(matches!(error, MonitorError::Listen { .. }));
    assert!(error.to_string().contains(&first.address().to_string()), "{error}");
}
