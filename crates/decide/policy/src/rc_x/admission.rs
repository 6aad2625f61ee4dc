//! Which missed blocks `rc-x` admits.
//!
//! For: the worth that a block must exceed, and one decision per request. Must never know: what is
//! in the cache. Units: worths.

/// Factor by which the threshold decays after a rejected miss.
const PRICE_DECAY: f32 = 0.98;

/// The admission threshold, and the decision on the request at hand.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Admission {
    /// The worth of the last block to leave, times its decay since.
    threshold: f32,
    /// Whether the threshold has decayed since the last draw.
    decayed: bool,
    /// Whether requests are observed, and the decision on the present one's missed blocks.
    observes_requests: bool,
    decided: Option<bool>,
}

/// A worth beside the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weighed {
    /// It does not exceed the threshold, which decays.
    Below,
    /// It exceeds a threshold that has decayed: another draw decides.
    AboveDecayed,
    /// It exceeds the threshold of the last draw.
    Above,
}

impl Admission {
    /// A request begins: its first missed block decides for all.
    #[inline(always)]
    pub fn on_request(&mut self) {
        (self.observes_requests, self.decided) = (true, None);
    }

    /// The decision on the request at hand, if there is one.
    #[inline(always)]
    pub fn decided(&self) -> Option<bool> {
        self.decided.filter(|_| self.observes_requests)
    }

    /// Decides for the request at hand.
    #[inline(always)]
    pub fn decide(&mut self, admitted: bool) {
        self.decided = Some(admitted);
    }

    /// Weighs a block that is to come into a full cache.
    pub fn weigh(&mut self, worth: f32) -> Weighed {
        if worth <= self.threshold {
            self.threshold *= PRICE_DECAY;
            self.decayed = true;
            Weighed::Below
        } else if self.decayed {
            Weighed::AboveDecayed
        } else {
            Weighed::Above
        }
    }

    /// A draw has found the worth of the block that leaves next.
    pub fn set(&mut self, worth: f32) {
        (self.threshold, self.decayed) = (worth, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_that_has_decayed_asks_for_another_draw() {
        let mut admission = Admission::default();
        admission.set(1.0);
        assert_eq!(admission.weigh(1.1), Weighed::Above);
        assert_eq!(admission.weigh(1.0), Weighed::Below);
        assert_eq!(admission.weigh(0.99), Weighed::AboveDecayed, "0.98 after one rejected miss");
        admission.set(2.0);
        assert_eq!(admission.weigh(1.5), Weighed::Below);
    }

    #[test]
    fn the_first_missed_block_decides_where_requests_are_observed() {
        let mut admission = Admission::default();
        admission.decide(true);
        assert_eq!(admission.decided(), None, "each block decides for itself");
        admission.on_request();
        admission.decide(false);
        assert_eq!(admission.decided(), Some(false));
        admission.on_request();
        assert_eq!(admission.decided(), None);
    }
}
