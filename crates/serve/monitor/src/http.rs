//! Answers over HTTP.
//!
//! For: `/` (a page), `/status` and `/history` (JSON), `/metrics` (OpenMetrics text). Must never
//! know: how a status is found. Units: seconds. A status that does not come in time is an error of
//! the server's: it is busy with one decision, or has stopped.

use crate::address::is_local_host;
use crate::metrics;
use crate::monitor::{MonitorState, OnRequest};
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Serialize;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::oneshot;

/// The page: one file that refers to nothing else.
const PAGE: &str = include_str!("page.html");
/// What the page may do: its own script and style, and questions to where it comes from.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                      connect-src 'self'; img-src data:; frame-ancestors 'none'";
/// How long a status may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// The type of what Prometheus reads.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Answers until `stopped` is over. Errors: the socket fails.
pub(crate) async fn serve(
    listener: TcpListener,
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
    let serving = async { axum::serve(listener, router).await };
    // Clients that hold a connection open do not keep the server from its end.
    tokio::select! {
        ended = serving => ended,
        _ = stopped => Ok(()),
    }
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
