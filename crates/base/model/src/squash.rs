//! Sigmoid and tanh, in single precision and as tables for fixed point: additions and
//! multiplications only, no call of a C library, so that every machine gives the same bits.
//!
//! Units: in Q12 4096 is 1.0, in Q15 32767 is (so that 1.0 fits 16 bits).

/// Fractional bits of a pre-activation.
pub const Q12_BITS: u32 = 12;
/// What 1.0 is after a table.
pub const Q15_ONE: i32 = 32767;
/// Segments of a table; each covers 1/16 of [-8, 8).
pub const SEGMENTS: usize = 256;

/// A non-linearity as 256 straight segments, in Q15. The upper 16 bits of entry i hold the value at
/// (i - 128) / 16. The lower 16 hold the rise to the next entry.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct SquashTable(pub [i32; SEGMENTS]);

/// The logistic function.
pub static SIGMOID: SquashTable = table(false);
/// The hyperbolic tangent.
pub static TANH: SquashTable = table(true);

impl SquashTable {
    /// The function at `x` (Q12, clamped to 16 bits), in Q15: linear between entries, rounded half
    /// up. Largest error 4.2e-4 (tanh) and 8e-5 (sigmoid), plus what lies beyond +-8.
    #[inline(always)]
    pub fn interpolate(&self, x: i32) -> i32 {
        let x = x.clamp(-32768, 32767) + 32768;
        let entry = self.0[(x >> 8) as usize & (SEGMENTS - 1)];
        let (value, rise) = (entry >> 16, i32::from(entry as i16));
        (value * 256 + rise * (x & 255) + 128) >> 8
    }
}

const fn table(tanh: bool) -> SquashTable {
    let mut entries = [0; SEGMENTS];
    let mut i = 0;
    while i < SEGMENTS {
        let (value, next) = (node(i, tanh), node(i + 1, tanh));
        entries[i] = (value << 16) | ((next - value) & 0xFFFF);
        i += 1;
    }
    SquashTable(entries)
}

/// The value at the left end of segment `i`, in Q15, rounded half away from zero.
const fn node(i: usize, tanh: bool) -> i32 {
    let x = (i as f64 - 128.0) / 16.0;
    let y = if tanh { 1.0 - 2.0 / (exp_f64(2.0 * x) + 1.0) } else { 1.0 / (1.0 + exp_f64(-x)) };
    let scaled = y * Q15_ONE as f64;
    if scaled < 0.0 { -((0.5 - scaled) as i32) } else { (scaled + 0.5) as i32 }
}

/// e^x for |x| <= 16 by halving the argument ten times and a Taylor series of ten terms.
const fn exp_f64(x: f64) -> f64 {
    let small = x / 1024.0;
    let (mut sum, mut term, mut k) = (1.0, 1.0, 1);
    while k <= 10 {
        term = term * small / k as f64;
        sum += term;
        k += 1;
    }
    let mut halvings = 0;
    while halvings < 10 {
        sum *= sum;
        halvings += 1;
    }
    sum
}

/// e^x, within 2e-7 of relative error for -87 <= x <= 88, clamped outside. Method: x = n ln 2 + r,
/// a polynomial of degree 7 in r (coefficients as in S. Moshier's Cephes library), then 2^n.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    // Adding and taking away 1.5 * 2^23 rounds to the nearest integer, ties to even.
    const ROUND: f32 = 12_582_912.0;
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    let x = x.clamp(-87.0, 88.0);
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = x - n * LN2_HIGH - n * LN2_LOW;
    let mut p = 1.987_569_1e-4_f32;
    for coefficient in [1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_6e-1, 0.5] {
        p = p * r + coefficient;
    }
    // The lowest bits of `shifted` are n in two's complement: moved up, they are an exponent.
    let power = f32::from_bits((shifted.to_bits() << 23).wrapping_add(127 << 23));
    (p * r * r + r + 1.0) * power
}

/// The logistic function, within 2e-7.
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// The hyperbolic tangent, within 3e-7.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    1.0 - 2.0 / (exp(2.0 * x) + 1.0)
}

/// The softmax of `logits`, in place: what a classifier's outputs mean as probabilities.
pub fn softmax(logits: &mut [f32]) {
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for logit in logits.iter_mut() {
        *logit = exp(*logit - largest);
        sum += *logit;
    }
    for logit in logits {
        *logit /= sum;
    }
}

/// The index of the largest output, the first among equals; 0 of nothing.
pub fn argmax<T: PartialOrd + Copy>(outputs: &[T]) -> usize {
    let mut best = 0;
    for (index, output) in outputs.iter().enumerate() {
        if *output > outputs[best] {
            best = index;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_precision_follows_the_definitions() {
        for step in -20_000..20_000_i32 {
            let x = step as f32 / 1000.0;
            let exact = f64::from(x);
            assert!((f64::from(exp(x)) / exact.exp() - 1.0).abs() < 2e-7, "exp({x})");
            assert!((f64::from(tanh(x)) - exact.tanh()).abs() < 3e-7, "tanh({x})");
            let logistic = 1.0 / (1.0 + (-exact).exp());
            assert!((f64::from(sigmoid(x)) - logistic).abs() < 2e-7, "sigmoid({x})");
        }
    }

    #[test]
    fn tables_follow_the_definitions() {
        for x in -32768..=32767_i32 {
            let exact = f64::from(x) / 4096.0;
            let error = f64::from(TANH.interpolate(x)) / f64::from(Q15_ONE) - exact.tanh();
            assert!(error.abs() < 4.2e-4, "tanh({exact}): {error}");
            let logistic = 1.0 / (1.0 + (-exact).exp());
            let error = f64::from(SIGMOID.interpolate(x)) / f64::from(Q15_ONE) - logistic;
            assert!(error.abs() < 8e-5, "sigmoid({exact}): {error}");
        }
        assert_eq!(TANH.interpolate(0), 0);
        assert_eq!(TANH.interpolate(i32::MAX), TANH.interpolate(32767));
        assert_eq!(SIGMOID.interpolate(i32::MIN), SIGMOID.interpolate(-32768));
    }

    #[test]
    fn probabilities_add_up_and_the_largest_is_found() {
        let mut outputs = [1.0, 3.0, -2.0];
        assert_eq!(argmax(&outputs), 1);
        softmax(&mut outputs);
        assert!((outputs.iter().sum::<f32>() - 1.0).abs() < 1e-6);
        assert!((outputs[1] - 0.876).abs() < 1e-3);
        assert_eq!(argmax(&[2, 2]), 0);
    }
}
