//! Signals by which operators tell a server to do something while it runs.
//!
//! For: programs that serve a stack. Must never know: what a server does with them. SIGHUP says
//! that the stack file has changed. SIGUSR1 asks for the end of the recording under way.

use crate::error::LiveError;
use signal_hook::consts::{SIGHUP, SIGUSR1};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Signals, which end a process no more once one of these was made.
#[derive(Clone, Debug)]
pub struct ControlSignals {
    reload: Arc<AtomicBool>,
    roll: Arc<AtomicBool>,
}

impl ControlSignals {
    /// Listens from now on. Errors: the system's.
    pub fn listen() -> Result<ControlSignals, LiveError> {
        let listen = |signal| {
            let came = Arc::new(AtomicBool::new(false));
            let known = flag::register(signal, Arc::clone(&came));
            known.map(|_| came).map_err(|error| LiveError::Failed(format!("signals: {error}")))
        };
        Ok(ControlSignals { reload: listen(SIGHUP)?, roll: listen(SIGUSR1)? })
    }

    /// Whether SIGHUP came since the last call.
    pub fn take_reload(&self) -> bool {
        self.reload.swap(false, Ordering::Relaxed)
    }

    /// Whether SIGUSR1 came since the last call.
    pub fn take_roll(&self) -> bool {
        self.roll.swap(false, Ordering::Relaxed)
    }
}
