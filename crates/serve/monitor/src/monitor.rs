//! The monitor as its server sees it.
//!
//! For: a thread that answers over HTTP, and a status that goes there when it is asked for. Must
//! never know: what is in a status. A status is asked for by a flag; the server looks at it between
//! requests and never waits.

use crate::http;
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

/// What the server and the thread share.
#[derive(Clone, Debug)]
pub(crate) struct MonitorState {
    /// A status is asked for.
    pub wanted: Arc<AtomicBool>,
    /// The latest one.
    pub latest: watch::Receiver<Option<Arc<LiveStatus>>>,
}

/// A thread that answers over HTTP. It ends with this value.
#[derive(Debug)]
pub struct Monitor {
    address: SocketAddr,
    wanted: Arc<AtomicBool>,
    latest: watch::Sender<Option<Arc<LiveStatus>>>,
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
        let wanted = Arc::new(AtomicBool::new(false));
        let (latest, receiver) = watch::channel(None);
        let (stop, stopped) = oneshot::channel();
        let shared = MonitorState { wanted: Arc::clone(&wanted), latest: receiver };
        let answer = move || {
            // What is left to say of an error here is that pages are gone; the server goes on.
            let _ended = runtime.block_on(http::serve(listener, bounds, shared, stopped));
        };
        let thread = std::thread::Builder::new().name("monitor".to_owned());
        let thread = thread.spawn(answer).map_err(MonitorError::Start)?;
        Ok(Monitor { address, wanted, latest, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens: the port is known, also if any was taken.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether a status is asked for since the last one.
    pub fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Acquire)
    }

    /// Hands a status over to all that wait for one.
    pub fn publish(&self, status: LiveStatus) {
        self.wanted.store(false, Ordering::Release);
        self.latest.send_replace(Some(Arc::new(status)));
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
