//! Cost-benefit: space won against the work of moving, weighed by age.
//!
//! For: reclaim of schemes that name none. Must never know: classes. With u the share of valid
//! pages and t the age, `form` is the worth: `sqrt` (1-u)/u sqrt(t) is the code of SepBIT and
//! MiDAS; `age` (1-u)/u t is the text of SepBIT (FAST'22, section 4.1). `lfs` is (1-u)/(1+u) t
//! (Rosenblum and Ousterhout, SOSP'91, section 3.5). The forms differ by some 5 % in write
//! amplification. Scores of `sqrt` are squared, which keeps their order. A superblock without valid
//! pages comes first.

use super::{Reclaim, Registered, Round, best};
pub use crate::superblocks::Since;
use crate::superblocks::at_age;
use crate::{Block, CleaningOrder, Entry, Geometry};
use cachewright_types::declare::{Mismatch, ValueKind, WORD};
use cachewright_types::{Seed, Value, choices, declare};

choices! {
    /// The formula.
    pub enum Form {
        /// (1-u)/u sqrt(t).
        Sqrt = "sqrt",
        /// (1-u)/u t.
        Age = "age",
        /// (1-u)/(1+u) t.
        Lfs = "lfs",
    }
}

impl ValueKind for Since {
    const KIND: &'static str = WORD;

    fn read(value: &Value) -> Result<Since, Mismatch> {
        match value.as_text() {
            Some("creation") => Ok(Since::Creation),
            Some("seal" | "append") => Ok(Since::Seal),
            _ => Err(Mismatch::Kind),
        }
    }

    fn value(&self) -> Option<Value> {
        let word = if *self == Since::Creation { "creation" } else { "seal" };
        Some(Value::Text(word.to_owned()))
    }

    fn words() -> Vec<&'static str> {
        vec!["creation", "seal", "append"]
    }
}

declare! {
    /// The variants of cost-benefit.
    pub struct CostBenefitSettings {
        /// the formula: sqrt, age or lfs
        form: Form = Form::Sqrt, "name";
        /// the moment from which the age counts: creation, seal or append
        since: Since = Since::Seal, "name";
    }
}

/// Cost-benefit.
#[derive(Clone, Debug)]
pub struct CostBenefit {
    settings: CostBenefitSettings,
    /// The worth at age 1 per number of invalid pages.
    worth: Vec<f64>,
}

impl Registered for CostBenefit {
    type Settings = CostBenefitSettings;
    const ENTRY: Entry = Entry {
        name: "cost-benefit",
        doc: "space won against pages moved, weighed by age",
        source: "Rosenblum and Ousterhout, SOSP'91; the forms of SepBIT, FAST'22, and MiDAS",
        needs: &[],
    };

    fn new(_: &Geometry, settings: &CostBenefitSettings, _: Seed) -> Self {
        CostBenefit { settings: settings.clone(), worth: Vec::new() }
    }
}

impl Reclaim for CostBenefit {
    fn prepare(&mut self, data_pages: u32) {
        let worth = |invalid: u32| {
            let (won, kept) = (f64::from(invalid), f64::from(data_pages - invalid));
            match self.settings.form {
                _ if kept == 0.0 => f64::INFINITY,
                Form::Sqrt => (won / kept) * (won / kept),
                Form::Age => won / kept,
                Form::Lfs => won / (won + 2.0 * kept),
            }
        };
        self.worth = (0..=data_pages).map(worth).collect();
    }

    /// Worth nothing with fewer invalid pages than a victim must have.
    fn order(&self, min_invalid: u32) -> CleaningOrder {
        let mut table = self.worth.clone();
        table.iter_mut().take(min_invalid as usize).for_each(|worth| *worth = 0.0);
        CleaningOrder::ByWorth { table, since: self.settings.since }
    }

    #[inline(always)]
    fn score(&self, block: &Block, round: &Round<'_>) -> f64 {
        let worth = self.worth.get(block.invalid as usize).copied().unwrap_or(0.0);
        at_age(worth, self.settings.since.since_of(block) as f64, round.clock as f64)
    }

    fn choose(&mut self, round: &Round<'_>) -> Option<u32> {
        if round.streams == u64::MAX {
            round.blocks.max_score(round.clock, |first, second| round.leads(first, second))
        } else {
            best(self, round)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_types::declare::Declared;

    /// 100 pages, 20 invalid, sealed 16 pages ago: 1/4 sqrt(16) = 1, squared 1; 1/4 16 = 4;
    /// 20/180 16.
    #[test]
    fn the_forms_are_those_of_the_sources() {
        let blocks = crate::Superblocks::new(100, CleaningOrder::None);
        let round = Round::over(&blocks, 116);
        let block = Block { pages: 100, invalid: 20, sealed_at: 100, ..Block::default() };
        let score = |form: &str| {
            let pairs = [("form".to_owned(), Value::Text(form.to_owned()))];
            let mut policy = CostBenefit {
                settings: CostBenefitSettings::from_pairs(&pairs).unwrap(),
                worth: Vec::new(),
            };
            policy.prepare(100);
            policy.score(&block, &round)
        };
        assert_eq!(["sqrt", "age"].map(score), [1.0, 4.0]);
        assert!((score("lfs") - 16.0 * 20.0 / 180.0).abs() < 1e-12);
    }

    #[test]
    fn an_unknown_form_is_refused() {
        let pairs = [("form".to_owned(), Value::Text("cubic".to_owned()))];
        let error = CostBenefitSettings::from_pairs(&pairs).unwrap_err().to_string();
        assert!(error.contains("one of sqrt, age, lfs"), "{error}");
    }
}
