//! The two points of a tenant's response times by cache size.
//!
//! For: the labels of models of `icache`. Must never know: how responses were measured, models.
//! Source: Li, Sun, Qin, iCache (TCAD 2025), section IV-C: K is the reduction of the mean response
//! by one more granule; "increments were set at 10 %", so that the first K is that of the second
//! granule. Units: granules; responses in any unit.
//!
//! What the paper leaves open: a K that is not positive (noise) or not a number counts as 0. If all
//! are 0, both points are one granule. Among equal K the smallest size is taken. The paper's L is
//! "5 % of performance improvement", without a unit: [`GainOf`] has three readings. A K of 0 is
//! below any of them.

use super::allocate::GranuleDemand;

/// The paper's L: 5 %.
pub const MIN_GAIN: f64 = 0.05;

/// The base of the smallest gain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GainOf {
    /// The response before the step.
    Before,
    /// The largest gain of all steps.
    Largest,
    /// The gain of all granules together over the smallest size.
    Whole,
}

impl GainOf {
    /// All readings by name.
    pub const NAMED: [(&'static str, GainOf); 3] =
        [("before", GainOf::Before), ("largest", GainOf::Largest), ("whole", GainOf::Whole)];

    /// The reading with this name. Errors: what was found and what was expected.
    pub fn parse(name: &str) -> Result<GainOf, String> {
        let known = GainOf::NAMED.iter().find(|(known, _)| *known == name);
        known.map(|(_, gain_of)| *gain_of).ok_or_else(|| {
            let names = GainOf::NAMED.map(|(known, _)| known).join(", ");
            format!("`gain_of`: found `{name}`, expected one of {names}")
        })
    }
}

/// The rule that finds points in responses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PointRule {
    /// Whether the step from a cache that is switched off to one granule counts.
    pub from_off: bool,
    /// The smallest gain of a step that justifies its granule.
    pub least_gain: f64,
    /// The base of `least_gain`.
    pub gain_of: GainOf,
}

impl Default for PointRule {
    /// The most likely reading of the paper: steps between cache sizes, L of the response before.
    fn default() -> Self {
        PointRule { from_off: false, least_gain: MIN_GAIN, gain_of: GainOf::Before }
    }
}

/// The points of `responses` with 0, 1, ... granules of the cache. MBP is the size whose last
/// granule gained most. OAP is the first larger size whose last granule gained too little, or the
/// whole cache.
pub fn points(responses: &[f64], reading: PointRule) -> GranuleDemand {
    let gain = |size: usize| (responses[size - 1] - responses[size]).max(0.0);
    let first = if reading.from_off { 1 } else { 2 };
    let all = responses.len().saturating_sub(1);
    let mut mbp = first;
    for size in first + 1..=all {
        if gain(size) > gain(mbp) {
            mbp = size;
        }
    }
    if all < first || gain(mbp) <= 0.0 {
        return GranuleDemand { mbp: 1, oap: 1 };
    }
    let lowest = responses[first..].iter().copied().fold(f64::INFINITY, f64::min);
    let whole = (responses[first - 1] - lowest).max(0.0);
    let base = |size: usize| match reading.gain_of {
        GainOf::Before => responses[size - 1],
        GainOf::Largest => gain(mbp),
        GainOf::Whole => whole,
    };
    let enough =
        |size: &usize| gain(*size) <= 0.0 || gain(*size) < reading.least_gain * base(*size);
    let oap = (mbp + 1..=all).find(enough).unwrap_or(all);
    GranuleDemand { mbp: mbp as u32, oap: oap as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(responses: &[f64], reading: PointRule) -> (u32, u32) {
        let GranuleDemand { mbp, oap } = points(responses, reading);
        (mbp, oap)
    }

    fn points_from_off(responses: &[f64]) -> (u32, u32) {
        read(responses, PointRule { from_off: true, ..PointRule::default() })
    }

    #[test]
    fn the_step_from_a_cache_switched_off_does_not_count_by_default() {
        // Gains from the second granule on: 4, 30, 6, 1.
        let responses = [900.0, 100.0, 96.0, 66.0, 60.0, 59.0];
        assert_eq!(read(&responses, PointRule::default()), (3, 5), "6 of 66 is worth it, 1 is not");
        assert_eq!(points_from_off(&responses), (1, 2), "with size 0 the first granule gains most");
        assert_eq!(read(&[100.0, 50.0], PointRule::default()), (1, 1), "one size has no step");
        assert_eq!(read(&[100.0, 50.0, 50.0], PointRule::default()), (1, 1), "nothing gained");
    }

    #[test]
    fn readings_have_names() {
        for (name, gain_of) in GainOf::NAMED {
            assert_eq!(GainOf::parse(name), Ok(gain_of));
        }
        let refused = GainOf::parse("first").unwrap_err();
        assert_eq!(refused, "`gain_of`: found `first`, expected one of before, largest, whole");
    }

    #[test]
    fn the_least_gain_is_a_share_of_what_the_reading_says() {
        // Gains from the second granule on: 40, 4, 2.5, 0.5; together 47.
        let responses = [900.0, 100.0, 60.0, 56.0, 53.5, 53.0];
        let oap = |gain_of| read(&responses, PointRule { gain_of, ..PointRule::default() }).1;
        assert_eq!(oap(GainOf::Before), 4, "2.5 is below 5 % of 56");
        assert_eq!(oap(GainOf::Largest), 5, "0.5 is below 5 % of 40, 2.5 is not");
        assert_eq!(oap(GainOf::Whole), 5, "0.5 is below 5 % of 47");
        let whole = PointRule { gain_of: GainOf::Whole, least_gain: 0.06, ..PointRule::default() };
        assert_eq!(read(&responses, whole).1, 4, "2.5 is below 6 % of 47");
    }

    #[test]
    fn curves_worked_by_hand() {
        // Gains 10, 40, 5, 1: 5 of 50 is worth it, 1 of 45 is not.
        assert_eq!(points_from_off(&[100.0, 90.0, 50.0, 45.0, 44.0]), (2, 4));
        assert_eq!(points_from_off(&[100.0, 40.0, 39.0, 39.0, 39.0]), (1, 2));
        assert_eq!(points_from_off(&[100.0, 98.0, 96.0, 40.0, 39.0]), (3, 4));
        assert_eq!(points_from_off(&[100.0, 50.0, 25.0, 12.0]), (1, 3), "always worth it: all");
        assert_eq!(points_from_off(&[100.0, 90.0, 80.0]), (1, 2), "the first of equals");
        assert_eq!(points_from_off(&[100.0, 99.0, 10.0]), (2, 2), "nothing above it");
        assert_eq!(points_from_off(&[100.0, 50.0, 47.5, 47.5]), (1, 3), "5 % exactly is worth it");
        assert_eq!(points_from_off(&[5.0, 0.0, 0.0, 0.0]), (1, 2), "nothing is left to gain");
        assert_eq!(
            points_from_off(&[100.0, 60.0, 57.1, 20.0]),
            (1, 2),
            "a cliff behind a plain is not seen"
        );
    }

    #[test]
    fn noise_and_nothing_ask_for_one_granule() {
        assert_eq!(points_from_off(&[50.0, 51.0, 52.0]), (1, 1));
        assert_eq!(points_from_off(&[0.0; 11]), (1, 1));
        assert_eq!(points_from_off(&[f64::NAN; 4]), (1, 1));
        assert_eq!(points_from_off(&[7.0]), (1, 1));
        assert_eq!(points_from_off(&[]), (1, 1));
        assert_eq!(points_from_off(&[50.0, 60.0, 20.0, 21.0, 20.9]), (2, 3), "a rise is no gain");
    }

    proptest! {
        #[test]
        fn points_are_sizes_and_oap_is_not_below_mbp(
            responses in prop::collection::vec(prop_oneof![0.0..1e6_f64, Just(f64::NAN)], 2..20),
            least_gain in 0.0..1.0_f64,
            from_off in any::<bool>(),
            gain_of in prop::sample::select(GainOf::NAMED.map(|(_, gain_of)| gain_of).to_vec()),
        ) {
            let reading = PointRule { from_off, least_gain, gain_of };
            let GranuleDemand { mbp, oap } = points(&responses, reading);
            prop_assert!(1 <= mbp && mbp <= oap && (oap as usize) < responses.len());
            let scaled: Vec<f64> = responses.iter().map(|response| 4.0 * response).collect();
            prop_assert_eq!(points(&scaled, reading), GranuleDemand { mbp, oap }, "any unit");
            let lower = points(&responses, PointRule { least_gain: least_gain / 2.0, ..reading });
            prop_assert!(lower.mbp == mbp && lower.oap >= oap, "less is enough");
        }
    }
}
