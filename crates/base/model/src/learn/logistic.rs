use crate::squash::sigmoid;

/// The numbers of a descent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DescentSettings {
    /// Steps over the whole sample.
    pub steps: usize,
    /// Length of a step.
    pub rate: f32,
}

/// A logistic regression of two classes, trained on a small sample: a weight per input, then the
/// bias.
#[derive(Clone, Debug, PartialEq)]
pub struct LogisticRegression {
    weights: Vec<f32>,
}

impl LogisticRegression {
    /// Gradient descent on the mean cross entropy, from zero. Each example is a row of inputs and
    /// whether it belongs to the class. Without examples all weights stay zero.
    pub fn fit(inputs: usize, examples: &[(&[f32], bool)], settings: DescentSettings) -> Self {
        let mut model = LogisticRegression { weights: vec![0.0; inputs + 1] };
        let mut gradient = vec![0.0_f32; inputs + 1];
        if examples.is_empty() {
            return model;
        }
        for _ in 0..settings.steps {
            gradient.fill(0.0);
            for &(row, in_class) in examples {
                let error = sigmoid(model.logit(row)) - f32::from(u8::from(in_class));
                for (sum, input) in gradient.iter_mut().zip(row) {
                    *sum += error * input;
                }
                gradient[inputs] += error;
            }
            for (weight, sum) in model.weights.iter_mut().zip(&gradient) {
                *weight -= settings.rate * sum / examples.len() as f32;
            }
        }
        model
    }

    /// The logit of the class: above 0, a row rather belongs to it.
    pub fn logit(&self, row: &[f32]) -> f32 {
        let bias = self.weights.last().copied().unwrap_or(0.0);
        self.weights.iter().zip(row).fold(bias, |sum, (weight, input)| sum + weight * input)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From zero, each example's error is -1/2 or 1/2.
    #[test]
    fn the_first_step_by_hand() {
        let examples: [(&[f32], bool); 2] = [(&[4.0, 0.0], true), (&[1.0, 2.0], false)];
        let settings = DescentSettings { steps: 1, rate: 1.0 };
        let model = LogisticRegression::fit(2, &examples, settings);
        assert_eq!(model.weights, [0.75, -0.5, 0.0]);
        assert_eq!(model.logit(&[2.0, 1.0]), 1.0);
    }

    #[test]
    fn without_examples_no_weight_moves() {
        let settings = DescentSettings { steps: 5, rate: 1.0 };
        assert_eq!(LogisticRegression::fit(3, &[], settings).weights, [0.0; 4]);
    }
}
