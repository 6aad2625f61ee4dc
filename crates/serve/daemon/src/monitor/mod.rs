//! What a live server tells over HTTP: a page at `/`, `/status` and `/history` in JSON, `/metrics`.
//!
//! The server makes a document when one is asked for, between two requests, and hands it over; a
//! thread of its own answers, and nothing waits for that thread. A status that does not come in
//! time is an error of the server's: it is busy with one decision, or has stopped. Connections are
//! few, and each ends with its answer or after a time, because clients of exports need descriptors,
//! too.
//!
//! Only this machine is answered. A page from elsewhere could point a name of its own at this
//! machine and read answers through a browser; requests under such a name are refused.

pub mod metrics;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use cachewright_result::status::LiveHistory;
use cachewright_result::status::LiveStatus;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use serde::Serialize;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};

/// What clients of a monitor may take. Descriptors belong to the exports' clients first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionBounds {
    /// Connections at one time.
    pub connections: usize,
    /// How long the head of a request may take to come.
    pub header: Duration,
    /// How long a connection may last, its answer included.
    pub whole: Duration,
}

impl Default for ConnectionBounds {
    /// Enough for some pages and scrapers, which ask for one answer after another.
    fn default() -> ConnectionBounds {
        let (header, whole) = (Duration::from_secs(5), Duration::from_secs(20));
        ConnectionBounds { connections: 32, header, whole }
    }
}

/// Why there is no monitor.
#[derive(Debug, thiserror::Error)]
pub enum MonitorError {
    /// The address cannot be listened at.
    #[error("cannot listen at {address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why not.
        error: std::io::Error,
    },
    /// No thread, or no event loop for it.
    #[error("cannot start the monitor: {0}")]
    Start(std::io::Error),
}

/// A document that is made when it is asked for, as those see it who ask.
#[derive(Clone, Debug)]
struct OnRequest<T> {
    /// One is asked for.
    pub wanted: Arc<AtomicBool>,
    /// The latest one.
    pub latest: watch::Receiver<Option<Arc<T>>>,
}

/// The same as the server sees it.
#[derive(Debug)]
struct Supplied<T> {
    wanted: Arc<AtomicBool>,
    latest: watch::Sender<Option<Arc<T>>>,
}

impl<T> Supplied<T> {
    /// A document that is not asked for yet, as both sides see it.
    fn new() -> (Supplied<T>, OnRequest<T>) {
        let wanted = Arc::new(AtomicBool::new(false));
        let (latest, receiver) = watch::channel(None);
        let requests = OnRequest { wanted: Arc::clone(&wanted), latest: receiver };
        (Supplied { wanted, latest }, requests)
    }

    fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Acquire)
    }

    fn publish(&self, document: T) {
        self.wanted.store(false, Ordering::Release);
        self.latest.send_replace(Some(Arc::new(document)));
    }
}

/// What the server and the thread share.
#[derive(Clone, Debug)]
struct MonitorState {
    pub status: OnRequest<LiveStatus>,
    pub history: OnRequest<LiveHistory>,
}

/// A thread that answers over HTTP. It ends with this value.
#[derive(Debug)]
pub struct Monitor {
    address: SocketAddr,
    status: Supplied<LiveStatus>,
    history: Supplied<LiveHistory>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Monitor {
    /// Listens at an address. Errors: it is taken, or there is no thread.
    pub fn start(address: SocketAddr) -> Result<Monitor, MonitorError> {
        Monitor::start_within(address, ConnectionBounds::default())
    }

    /// The same with other bounds on connections.
    pub fn start_within(
        address: SocketAddr,
        bounds: ConnectionBounds,
    ) -> Result<Monitor, MonitorError> {
        let failed = |error| MonitorError::Listen { address, error };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().map_err(MonitorError::Start)?;
        let (status, status_requests) = Supplied::new();
        let (history, history_requests) = Supplied::new();
        let (stop, stopped) = oneshot::channel();
        let shared = MonitorState { status: status_requests, history: history_requests };
        let answer = move || {
            // What is left to say of an error here is that pages are gone; the server goes on.
            let _ended = runtime.block_on(serve(listener, bounds, shared, stopped));
        };
        let thread = std::thread::Builder::new().name("monitor".to_owned());
        let thread = thread.spawn(answer).map_err(MonitorError::Start)?;
        Ok(Monitor { address, status, history, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens: the port is known, also if any was taken.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether a status is asked for since the last one.
    pub fn is_wanted(&self) -> bool {
        self.status.is_wanted()
    }

    /// Hands a status over to all that wait for one.
    pub fn publish(&self, status: LiveStatus) {
        self.status.publish(status);
    }

    /// Whether the last hour is asked for since it was given the last time.
    pub fn wants_history(&self) -> bool {
        self.history.is_wanted()
    }

    /// Hands the last hour over to all that wait for it.
    pub fn publish_history(&self, history: LiveHistory) {
        self.history.publish(history);
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ended = thread.join();
        }
    }
}

/// The page: one file that refers to nothing else.
const PAGE: &str = include_str!("page.html");
/// What the page may do: its own script and style, and questions to where it comes from.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                      connect-src 'self'; img-src data:; frame-ancestors 'none'";
/// How long a status may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// The type of what Prometheus reads.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// How long to wait after a connection could not be accepted: descriptors may be used up.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Answers until `stopped` is over. Errors: the socket fails.
async fn serve(
    listener: TcpListener,
    bounds: ConnectionBounds,
    shared: MonitorState,
    stopped: oneshot::Receiver<()>,
) -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let router = Router::new()
        .route("/", get(page))
        .route("/status", get(status))
        .route("/history", get(history))
        .route("/metrics", get(all_metrics))
        .layer(from_fn(local_only))
        .with_state(shared);
    // Clients that hold a connection open do not keep the server from its end.
    tokio::select! {
        () = accept(listener, bounds, router) => Ok(()),
        _ = stopped => Ok(()),
    }
}

/// Accepts connections, so many at one time. Others wait until one of them ends.
async fn accept(listener: tokio::net::TcpListener, bounds: ConnectionBounds, router: Router) {
    let places = Arc::new(Semaphore::new(bounds.connections));
    // The semaphore is never closed.
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(answer(stream, bounds, router.clone(), place));
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// Answers one request. A client that does not send all of it in time, or does not take the
/// answer, loses its connection.
async fn answer(
    stream: TcpStream,
    bounds: ConnectionBounds,
    router: Router,
    _place: OwnedSemaphorePermit,
) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(bounds.header)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    // A client that is gone, or too slow, has nothing to be told.
    let _ended = tokio::time::timeout(bounds.whole, connection).await;
}

/// Refuses requests under a name that is not this machine's own.
async fn local_only(request: Request, next: Next) -> Response {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    if !host.is_some_and(is_local_host) {
        let text = "expected a request to localhost or to a loopback address\n";
        return (StatusCode::FORBIDDEN, text).into_response();
    }
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

async fn page() -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
    ];
    (headers, PAGE).into_response()
}

async fn status(State(shared): State<MonitorState>) -> Response {
    json(fresh(shared.status).await)
}

async fn history(State(shared): State<MonitorState>) -> Response {
    json(fresh(shared.history).await)
}

fn json<T: Serialize>(document: Option<Arc<T>>) -> Response {
    let Some(document) = document else { return late() };
    match serde_json::to_string(&*document) {
        Ok(text) => ([(header::CONTENT_TYPE, "application/json")], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

async fn all_metrics(State(shared): State<MonitorState>) -> Response {
    let Some(status) = fresh(shared.status).await else { return late() };
    match metrics::text(status) {
        Ok(text) => ([(header::CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

fn late() -> Response {
    let text = format!("the server gave no status within {} s\n", PATIENCE.as_secs());
    (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
}

/// A document that is made from now on; nothing if it does not come in time.
async fn fresh<T>(mut requests: OnRequest<T>) -> Option<Arc<T>> {
    requests.latest.mark_unchanged();
    requests.wanted.store(true, Ordering::Release);
    tokio::time::timeout(PATIENCE, requests.latest.changed()).await.ok()?.ok()?;
    requests.latest.borrow().clone()
}

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
