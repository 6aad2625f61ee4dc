//! Adam, and a bound for the length of a gradient.
//!
//! For: one update of parameters by their gradient. Must never know: networks. Source: Kingma and
//! Ba, "Adam: A Method for Stochastic Optimization", ICLR'15.

/// The numbers of Adam.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamSettings {
    /// Length of a step.
    pub rate: f32,
    /// Factor by which the mean of gradients decays with each update.
    pub first_decay: f32,
    /// Factor by which the mean of squared gradients decays with each update.
    pub second_decay: f32,
    /// Keeps the divisor above zero.
    pub epsilon: f32,
}

impl Default for AdamSettings {
    /// The defaults of the paper.
    fn default() -> AdamSettings {
        AdamSettings { rate: 1e-3, first_decay: 0.9, second_decay: 0.999, epsilon: 1e-8 }
    }
}

/// The moments of the gradients so far.
#[derive(Clone, Debug)]
pub struct Adam {
    settings: AdamSettings,
    first: Vec<f32>,
    second: Vec<f32>,
    /// Powers of both decay factors after the updates so far.
    powers: (f32, f32),
}

impl Adam {
    /// The optimiser of so many parameters, before the first update.
    pub fn new(settings: AdamSettings, parameters: usize) -> Adam {
        let zeros = vec![0.0; parameters];
        Adam { settings, first: zeros.clone(), second: zeros, powers: (1.0, 1.0) }
    }

    /// One update by `factor` times the gradient, which is zero afterwards. Both slices have a
    /// number per parameter.
    pub fn update(&mut self, parameters: &mut [f32], gradient: &mut [f32], factor: f32) {
        debug_assert_eq!(parameters.len(), self.first.len(), "a moment per parameter");
        let AdamSettings { rate, first_decay, second_decay, epsilon } = self.settings;
        self.powers = (self.powers.0 * first_decay, self.powers.1 * second_decay);
        let (first_part, second_part) = (1.0 - self.powers.0, 1.0 - self.powers.1);
        let moments = self.first.iter_mut().zip(&mut self.second);
        let all = parameters.iter_mut().zip(gradient).zip(moments);
        for ((parameter, gradient), (first, second)) in all {
            let g = *gradient * factor;
            *gradient = 0.0;
            *first = first_decay * *first + (1.0 - first_decay) * g;
            *second = second_decay * *second + (1.0 - second_decay) * g * g;
            *parameter -= rate * (*first / first_part) / ((*second / second_part).sqrt() + epsilon);
        }
    }
}

/// The factor that turns a sum of gradients over `count` steps into their mean, shortened to
/// `max_norm` if the mean is longer.
pub fn clip_factor(gradient: &[f32], count: u64, max_norm: f32) -> f32 {
    let mean = 1.0 / count as f32;
    let norm = mean * gradient.iter().map(|g| g * g).sum::<f32>().sqrt();
    mean * if norm > max_norm { max_norm / norm } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first update moves each parameter by the rate, whatever the gradient's length. The
    /// second has a gradient of 0 and moves it by 0.09 / 0.19 over sqrt(0.000999 / 0.001999) of the
    /// rate.
    #[test]
    fn two_updates_by_hand() {
        let settings = AdamSettings { rate: 0.5, ..AdamSettings::default() };
        let mut adam = Adam::new(settings, 3);
        let (mut parameters, mut gradient) = ([1.0, 1.0, 1.0], [4.0, -0.25, 0.0]);
        adam.update(&mut parameters, &mut gradient, 0.5);
        assert_eq!(gradient, [0.0; 3]);
        let expected = [0.5, 1.5, 1.0];
        assert!(parameters.iter().zip(expected).all(|(p, e)| (p - e).abs() < 1e-4));
        adam.update(&mut parameters, &mut gradient, 1.0);
        let step = 0.5 * (0.09 / 0.19) / (0.000_999_f32 / 0.001_999).sqrt();
        let expected = [0.5 - step, 1.5 + step, 1.0];
        assert!(parameters.iter().zip(expected).all(|(p, e)| (p - e).abs() < 1e-3));
    }

    #[test]
    fn a_long_gradient_is_shortened_and_a_short_one_is_not() {
        assert_eq!(clip_factor(&[3.0, 4.0], 2, 10.0), 0.5);
        assert_eq!(clip_factor(&[3.0, 4.0], 2, 1.0), 0.5 * (1.0 / 2.5));
        assert_eq!(clip_factor(&[0.0; 2], 4, 1.0), 0.25);
    }
}
