//! Answers over HTTP.
//!
//! For: `/` (a page), `/status` and `/history` (JSON), `/metrics` (OpenMetrics text). Must never
//! know: how a status is found. Units: seconds. A status that does not come in time is an error of
//! the server's: it is busy with one decision, or has stopped. Clients of exports need descriptors,
//! too: connections here are few, and each ends with its answer or after a time.

use crate::monitor::address::is_local_host;
use crate::monitor::metrics;
use crate::monitor::monitor::{ConnectionBounds, MonitorState, OnRequest};
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use serde::Serialize;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

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
pub(crate) async fn serve(
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
