//! Softmax and cross entropy of a few classes.
//!
//! For: the loss of a classifier and its gradient. Must never know: networks. Units: nats. Only the
//! reported loss takes a logarithm; gradients need none.

use crate::squash::exp;

/// The least probability of which a logarithm is taken.
const MIN_PROBABILITY: f32 = 1e-30;

/// Probabilities of the classes from their logits.
pub fn softmax<const CLASSES: usize>(logits: [f32; CLASSES]) -> [f32; CLASSES] {
    let max = logits.into_iter().fold(f32::NEG_INFINITY, f32::max);
    let powers = logits.map(|logit| exp(logit - max));
    let sum: f32 = powers.iter().sum();
    powers.map(|power| power / sum)
}

/// The cross entropy of one step whose class has this probability.
pub fn cross_entropy(probability: f32) -> f64 {
    -f64::from(probability.max(MIN_PROBABILITY)).ln()
}

/// The gradient of the cross entropy by the logit of a class.
pub fn gradient_by_logit(probability: f32, is_class: bool) -> f32 {
    probability - f32::from(u8::from(is_class))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_of_equal_and_of_extreme_logits() {
        assert_eq!(softmax([7.0; 4]), [0.25; 4]);
        let [small, large] = softmax([-1e30, 1e30]);
        assert!(small < 1e-30 && large == 1.0);
        assert!(cross_entropy(small).is_finite());
        assert_eq!(cross_entropy(1.0), 0.0);
    }

    #[test]
    fn the_gradient_is_that_of_finite_differences() {
        let loss = |shift: f32| cross_entropy(softmax([0.3 + shift, -0.2, 0.9])[0]);
        let slope = (loss(0.01) - loss(-0.01)) / 0.02;
        let found = f64::from(gradient_by_logit(softmax([0.3, -0.2, 0.9])[0], true));
        assert!((slope - found).abs() < 1e-4, "{found} {slope}");
    }
}
