//! The monitor as its server sees it.
//!
//! For: a thread that answers over HTTP, and documents that go there when they are asked for: a
//! status, the last hour. Must never know: what is in them. A document is asked for by a flag; the
//! server looks at it between requests and never waits.

use crate::monitor::http;
use cachewright_result::history::LiveHistory;
use cachewright_result::status::LiveStatus;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{oneshot, watch};

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
pub(crate) struct OnRequest<T> {
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
pub(crate) struct MonitorState {
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
            let _ended = runtime.block_on(http::serve(listener, bounds, shared, stopped));
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
