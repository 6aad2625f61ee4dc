//! What a reader must know of the curves of a call: one sentence for many curves.
//!
//! For: merging what was noted curve by curve. Must never know: points, how a curve is measured.
//! Units: blocks.

use super::options::CurveOptions;

/// What was noted while curves were measured.
#[derive(Clone, Debug, Default)]
pub(super) struct Remarks {
    /// Curves of the call.
    pub curves: usize,
    /// Why policies are sampled without being asked for.
    pub sampled: Option<String>,
    /// Of each curve with sizes simulated at a higher rate than asked for: the highest rate and
    /// the largest of those sizes.
    pub raised: Vec<(f64, u32)>,
    /// Of each curve measured exactly instead of by samples: the size from which samples serve.
    pub exact_instead: Vec<u32>,
    /// Of each curve without points at small sizes: the size from which it has some.
    pub cut_below: Vec<u32>,
}

impl Remarks {
    /// The sentences, each once.
    pub fn sentences(&self, options: &CurveOptions, rate: f64) -> Vec<String> {
        let largest = |sizes: &[u32]| sizes.iter().copied().max().unwrap_or(0);
        let mut found: Vec<String> = self.sampled.iter().cloned().collect();
        if !self.raised.is_empty() {
            let (prefix, high) = (self.prefix(self.raised.len()), self.raised.iter());
            let highest = high.clone().map(|(rate, _)| *rate).fold(0.0, f64::max);
            let sizes = high.map(|(_, size)| *size).max().unwrap_or(0);
            found.push(format!(
                "{prefix}sampling at rate {rate} leaves too few blocks for sizes up to {sizes} \
                 blocks; they are simulated at rates up to {highest}"
            ));
        }
        if !self.exact_instead.is_empty() {
            let (prefix, from) =
                (self.prefix(self.exact_instead.len()), largest(&self.exact_instead));
            let method = options.method.word();
            found.push(format!(
                "{prefix}measured exactly: samples of method `{method}` serve for {from} blocks \
                 and more"
            ));
        }
        if !self.cut_below.is_empty() {
            let (prefix, from) = (self.prefix(self.cut_below.len()), largest(&self.cut_below));
            found.push(format!(
                "{prefix}no points below {from} blocks, for which samples are too small"
            ));
        }
        found
    }

    fn prefix(&self, count: usize) -> String {
        if self.curves == 1 {
            String::new()
        } else {
            format!("{count} of {} curves: ", self.curves)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_curves_share_one_sentence() {
        let raised = vec![(0.02, 5000), (1.0, 40_000), (0.08, 300)];
        let remarks = Remarks { curves: 48, raised, cut_below: vec![7, 9], ..Remarks::default() };
        let found = remarks.sentences(&CurveOptions::default(), 0.01);
        assert_eq!(
            found,
            [
                "3 of 48 curves: sampling at rate 0.01 leaves too few blocks for sizes up to 40000 \
                 blocks; they are simulated at rates up to 1",
                "2 of 48 curves: no points below 9 blocks, for which samples are too small",
            ]
        );
        let alone = Remarks { curves: 1, exact_instead: vec![1000], ..Remarks::default() };
        let found = alone.sentences(&CurveOptions::default(), 0.01);
        assert_eq!(
            found,
            ["measured exactly: samples of method `auto` serve for 1000 blocks and more"]
        );
    }
}
