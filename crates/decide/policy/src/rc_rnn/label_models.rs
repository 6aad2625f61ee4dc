//! The models of `rc-rnn`, one per kind of workload, and which of them is in use.
//!
//! For: the policy. Must never know: blocks, queues, features. Unit: nanoseconds.

use super::labeller::Labeller;

/// The models; see the top of the file.
#[derive(Default)]
pub struct LabelModels {
    models: Vec<Labeller>,
    /// Which model is in use.
    current: usize,
    /// How often the model was changed, modulo 2^16.
    changes: u16,
    /// Requests so far.
    requests: usize,
    /// When the last request arrived, and until when no model is there.
    now_ns: Option<u64>,
    loaded_ns: u64,
}

impl LabelModels {
    /// Takes models in place of those before; of the first ones the first is in use. One with the
    /// same name and file as before keeps its state. Loading another one takes `load_ns`.
    ///
    /// # Errors
    ///
    /// A model that cannot be read, none at all, or none for the workload that runs. The models
    /// before stay.
    pub fn load(&mut self, models: &[(String, Vec<u8>)], load_ns: u64) -> Result<(), String> {
        let load = |(name, bytes): &(String, Vec<u8>)| Labeller::load(name, bytes);
        let models: Result<Vec<Labeller>, String> = models.iter().map(load).collect();
        let mut models = models?;
        let current = self.place_in(&models)?;
        let before = self.models.get(self.current);
        let changes = before.is_some_and(|before| !before.is_like(&models[current]));
        for model in &mut models {
            if let Some(known) = self.models.iter_mut().find(|known| known.is_like(model)) {
                std::mem::swap(known, model);
            }
        }
        (self.models, self.current) = (models, current);
        if changes {
            self.begin(load_ns);
        }
        Ok(())
    }

    /// Which of other models goes on for the one in use.
    fn place_in(&self, models: &[Labeller]) -> Result<usize, String> {
        if models.is_empty() {
            return Err("found no model, expected one or more".to_owned());
        }
        let Some(before) = self.models.get(self.current) else { return Ok(0) };
        models.iter().position(|model| model.name == before.name).ok_or_else(|| {
            let found: Vec<String> =
                models.iter().map(|model| format!("`{}`", model.name)).collect();
            let (found, name) = (found.join(", "), &before.name);
            format!("found models of {found}, expected one of `{name}`, which runs now")
        })
    }

    /// Passes a request that arrived at that time; called before anything else about it.
    pub fn pass(&mut self, time_ns: u64) {
        self.now_ns = Some(time_ns);
        self.requests += 1;
    }

    /// Uses the model of this kind from a zero state, once it is loaded; a kind without a model
    /// changes nothing.
    pub fn change(&mut self, kind: &str, load_ns: u64) {
        let Some(next) = self.models.iter().position(|model| model.name == kind) else { return };
        if next != self.current {
            self.models[next].reset();
            self.current = next;
            self.begin(load_ns);
        }
    }

    /// Another model takes over, once it is loaded.
    fn begin(&mut self, load_ns: u64) {
        self.changes = self.changes.wrapping_add(1);
        if let Some(now_ns) = self.now_ns {
            self.loaded_ns = now_ns.saturating_add(load_ns);
        }
    }

    /// The model in use, if any is there, and the requests so far.
    #[inline(always)]
    pub fn current(&mut self) -> Option<(&mut Labeller, usize)> {
        self.models.get_mut(self.current).map(|labeller| (labeller, self.requests))
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
