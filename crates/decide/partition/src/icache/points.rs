//! The two points of a tenant's response times by cache size.
//!
//! For: what models of `icache` are taught to say. Must never know: how responses were measured,
//! models. Source: Li, Sun, Qin, iCache (TCAD 2025), section IV-D: K is what a granule more takes
//! off the mean response. Units: granules; responses in any unit. What the paper leaves open: a K
//! that is not positive (noise) or not a number counts as 0, and where all do, both points are one
//! granule; of equal K the smallest size is taken. The paper's threshold L has no unit: here it is
//! a share of the response before the step, and a K of 0 is below any.

use super::allocate::Demand;

/// The paper's least gain of a step that is worth its granule: 5 % of the response before it.
pub const LEAST_GAIN: f64 = 0.05;

/// The points of `responses` with 0, 1, ... granules of the cache: MBP is the size whose last
/// granule took off most, OAP the first above it whose last granule took off less than
/// `least_gain` of the response before it, or the whole cache.
pub fn points(responses: &[f64], least_gain: f64) -> Demand {
    let gain = |size: usize| (responses[size - 1] - responses[size]).max(0.0);
    let all = responses.len().saturating_sub(1);
    let mut mbp = 1;
    for size in 2..=all {
        if gain(size) > gain(mbp) {
            mbp = size;
        }
    }
    if all == 0 || gain(mbp) <= 0.0 {
        return Demand { mbp: 1, oap: 1 };
    }
    let enough =
        |size: &usize| gain(*size) <= 0.0 || gain(*size) < least_gain * responses[size - 1];
    let oap = (mbp + 1..=all).find(enough).unwrap_or(all);
    Demand { mbp: mbp as u32, oap: oap as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(responses: &[f64]) -> (u32, u32) {
        let Demand { mbp, oap } = points(responses, LEAST_GAIN);
        (mbp, oap)
    }

    #[test]
    fn curves_worked_by_hand() {
        // Gains 10, 40, 5, 1: 5 of 50 is worth it, 1 of 45 is not.
        assert_eq!(of(&[100.0, 90.0, 50.0, 45.0, 44.0]), (2, 4));
        assert_eq!(of(&[100.0, 40.0, 39.0, 39.0, 39.0]), (1, 2));
        assert_eq!(of(&[100.0, 98.0, 96.0, 40.0, 39.0]), (3, 4));
        assert_eq!(of(&[100.0, 50.0, 25.0, 12.0]), (1, 3), "always worth it: all");
        assert_eq!(of(&[100.0, 90.0, 80.0]), (1, 2), "the first of equals");
        assert_eq!(of(&[100.0, 99.0, 10.0]), (2, 2), "nothing above it");
        assert_eq!(of(&[100.0, 50.0, 47.5, 47.5]), (1, 3), "5 % exactly is worth it");
        assert_eq!(of(&[5.0, 0.0, 0.0, 0.0]), (1, 2), "nothing is left to gain");
        assert_eq!(of(&[100.0, 60.0, 57.1, 20.0]), (1, 2), "a cliff behind a plain is not seen");
    }

    #[test]
    fn noise_and_nothing_ask_for_one_granule() {
        assert_eq!(of(&[50.0, 51.0, 52.0]), (1, 1));
        assert_eq!(of(&[0.0; 11]), (1, 1));
        assert_eq!(of(&[f64::NAN; 4]), (1, 1));
        assert_eq!(of(&[7.0]), (1, 1));
        assert_eq!(of(&[]), (1, 1));
        assert_eq!(of(&[50.0, 60.0, 20.0, 21.0, 20.9]), (2, 3), "a rise is no gain");
    }

    proptest! {
        #[test]
        fn points_are_sizes_and_oap_is_not_below_mbp(
            responses in prop::collection::vec(prop_oneof![0.0..1e6_f64, Just(f64::NAN)], 2..20),
            least_gain in 0.0..1.0_f64,
        ) {
            let Demand { mbp, oap } = points(&responses, least_gain);
            prop_assert!(1 <= mbp && mbp <= oap && (oap as usize) < responses.len());
            let scaled: Vec<f64> = responses.iter().map(|response| 4.0 * response).collect();
            prop_assert_eq!(points(&scaled, least_gain), Demand { mbp, oap }, "any unit");
            let lower = points(&responses, least_gain / 2.0);
            prop_assert!(lower.mbp == mbp && lower.oap >= oap, "less is enough");
        }
    }
}
