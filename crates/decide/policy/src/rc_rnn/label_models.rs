//! The models of `rc-rnn`, one per kind of workload, and which of them is in use.
//!
//! For: the policy. Must never know: blocks, queues, features. Unit: nanoseconds.

use super::labeller::Labeller;

/// The models; see the top of the file.
#[derive(Default)]
pub struct LabelModels {
    models: Vec<(String, Labeller)>,
    /// Which model is in use.
    current: usize,
    /// How often the model was changed, modulo 2^16.
    changes: u16,
    /// When the last request arrived, and until when no model is there.
    now_ns: Option<u64>,
    loaded_ns: u64,
}

impl LabelModels {
    /// Replaces all models; the first one is in use.
    ///
    /// # Errors
    ///
    /// A model that cannot be read, or none.
    pub fn load(&mut self, models: &[(String, Vec<u8>)]) -> Result<(), String> {
        let load = |(name, bytes): &(String, Vec<u8>)| {
            let labeller = Labeller::load(bytes).map_err(|error| format!("`{name}`: {error}"))?;
            Ok((name.clone(), labeller))
        };
        let models: Result<Vec<_>, String> = models.iter().map(load).collect();
        self.models = models?;
        self.current = 0;
        match self.models.is_empty() {
            true => Err("found no model, expected one or more".to_owned()),
            false => Ok(()),
        }
    }

    /// Passes a request that arrived at that time; called before anything else about it. (Tables of
    /// labels step with every request, also while another model is in use.)
    pub fn pass(&mut self, time_ns: u64) {
        self.now_ns = Some(time_ns);
        for (_, labeller) in &mut self.models {
            if let Labeller::Table(table) = labeller {
                table.pass();
            }
        }
    }

    /// Uses the model of this kind from a zero state, once it is loaded; a kind without a model
    /// changes nothing.
    pub fn change(&mut self, kind: &str, load_ns: u64) {
        let Some(next) = self.models.iter().position(|(name, _)| name == kind) else { return };
        if next != self.current {
            self.models[next].1.reset();
            self.current = next;
            self.changes = self.changes.wrapping_add(1);
            if let Some(now_ns) = self.now_ns {
                self.loaded_ns = now_ns.saturating_add(load_ns);
            }
        }
    }

    /// The model in use, if any is there.
    #[inline(always)]
    pub fn current(&mut self) -> Option<&mut Labeller> {
        self.models.get_mut(self.current).map(|(_, labeller)| labeller)
    }

    /// How often the model was changed, modulo 2^16.
    #[inline(always)]
    pub fn changes(&self) -> u16 {
        self.changes
    }

    /// Whether a model is being loaded.
    #[inline(always)]
    pub fn loads(&self) -> bool {
        self.now_ns.is_some_and(|now_ns| now_ns < self.loaded_ns)
    }
}
