//! What a server and its service manager tell each other.
//!
//! For: systemd, by the variables and the socket of `sd_notify(3)`; without them nothing is said.
//! Must never know: what is served. Units: nanoseconds.

use sd_notify::NotifyState;

/// A service manager that may wait for words of the server.
#[derive(Clone, Copy, Debug, Default)]
pub struct Manager {
    /// How often it wants to hear from the server, if it does, and when it has last.
    every_ns: Option<u64>,
    last_ns: u64,
}

impl Manager {
    /// The manager of this process.
    pub fn found() -> Manager {
        // Half of the time after which it takes the server for hung, as its manual asks for.
        let limit = sd_notify::watchdog_enabled().map(|limit| limit.as_nanos() as u64 / 2);
        Manager { every_ns: limit, last_ns: 0 }
    }

    /// Clients can connect. `status` is what the manager shows.
    pub fn ready(&self, status: &str) {
        tell(&[NotifyState::Ready, NotifyState::Status(status)]);
    }

    /// The server goes on. To be called some times a second.
    pub fn tick(&mut self, now_ns: u64) {
        if self.every_ns.is_some_and(|every_ns| now_ns.saturating_sub(self.last_ns) >= every_ns) {
            self.last_ns = now_ns;
            tell(&[NotifyState::Watchdog]);
        }
    }

    /// Another stack is taken over; [`Manager::ready`] says when that is done.
    pub fn reloading(&self) {
        let mut words = vec![NotifyState::Reloading];
        words.extend(NotifyState::monotonic_usec_now());
        tell(&words);
    }

    /// Something changed that operators are told.
    pub fn status(&self, status: &str) {
        tell(&[NotifyState::Status(status)]);
    }

    /// The server ends.
    pub fn stopping(&self) {
        tell(&[NotifyState::Stopping]);
    }
}

/// The numbers of sockets that the manager has passed. Errors: what it says of them is no number.
pub fn passed_sockets() -> std::io::Result<Vec<i32>> {
    sd_notify::listen_fds().map(Iterator::collect)
}

/// A manager that does not listen is no reason to stop.
fn tell(words: &[NotifyState<'_>]) {
    let _sent = sd_notify::notify(words);
}
