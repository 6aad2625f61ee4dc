//! When training stops: after some epochs without a better loss.
//!
//! For: keeping the best of what was trained. Must never know: networks, what a loss measures.

/// The best so far and the epochs since.
#[derive(Clone, Debug)]
pub struct EarlyStopping<T> {
    patience: u32,
    worse: u32,
    best_loss: f64,
    best: T,
}

impl<T> EarlyStopping<T> {
    /// Stops after `patience` epochs without a better loss. `start` is the best until then.
    pub fn new(patience: u32, start: T) -> EarlyStopping<T> {
        EarlyStopping { patience, worse: 0, best_loss: f64::INFINITY, best: start }
    }

    /// An epoch ended with this loss; `current` is called if that is the best. Returns whether
    /// training goes on.
    pub fn continues(&mut self, loss: f64, current: impl FnOnce() -> T) -> bool {
        if loss < self.best_loss {
            (self.best_loss, self.best) = (loss, current());
            self.worse = 0;
        } else {
            self.worse += 1;
        }
        self.worse != self.patience
    }

    /// The best.
    pub fn into_best(self) -> T {
        self.best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stops_after_as_many_epochs_without_a_better_loss_and_keeps_the_best() {
        let mut stopping = EarlyStopping::new(2, "start");
        let losses = [(3.0, "a"), (3.0, "b"), (2.0, "c"), (f64::NAN, "d"), (2.5, "e")];
        let goes_on = losses.map(|(loss, name)| stopping.continues(loss, || name));
        assert_eq!(goes_on, [true, true, true, true, false]);
        assert_eq!(stopping.into_best(), "c");
        let mut stopping = EarlyStopping::new(1, "start");
        assert!(!stopping.continues(f64::NAN, || "nan"));
        assert_eq!(stopping.into_best(), "start");
    }
}
