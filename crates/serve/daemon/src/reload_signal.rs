//! The signal that says that a stack file has changed.
//!
//! For: programs that serve a stack. Must never know: what a server does with it.

use crate::error::LiveError;
use signal_hook::consts::SIGHUP;
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// SIGHUP, which ends a process no more once one of these was made.
#[derive(Clone, Debug)]
pub struct ReloadSignal(Arc<AtomicBool>);

impl ReloadSignal {
    /// Listens from now on. Errors: the system's.
    pub fn listen() -> Result<ReloadSignal, LiveError> {
        let came = Arc::new(AtomicBool::new(false));
        match flag::register(SIGHUP, Arc::clone(&came)) {
            Ok(_) => Ok(ReloadSignal(came)),
            Err(error) => Err(LiveError::Failed(format!("signals: {error}"))),
        }
    }

    /// Whether it came since the last call.
    pub fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}
