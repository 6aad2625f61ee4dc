//! The classes of tenants as a value of a stack file.
//!
//! For: the words `none` and `urgent high`. Must never know: what is served when (see
//! `flash::priority`).

use crate::ssd::flash::Priority;
use cachewright_types::Value;
use cachewright_types::declare::{Mismatch, ValueKind};

/// The class of each tenant in the order of the stack file, the last one of all beyond; empty when
/// tenants have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Priorities(pub Vec<Priority>);

impl ValueKind for Priorities {
    const KIND: &'static str =
        "`none`, or a class for each tenant: urgent, high, medium or low (`urgent high`)";

    fn read(value: &Value) -> Result<Priorities, Mismatch> {
        let text = value.as_text().ok_or(Mismatch::Kind)?;
        if text == "none" {
            return Ok(Priorities::default());
        }
        let class = |word: &str| Priority::ALL.into_iter().find(|class| class.word() == word);
        let classes: Option<Vec<Priority>> = text.split_whitespace().map(class).collect();
        classes.filter(|all| !all.is_empty()).map(Priorities).ok_or(Mismatch::Kind)
    }

    fn value(&self) -> Option<Value> {
        let words: Vec<&str> = self.0.iter().map(|class| class.word()).collect();
        Some(Value::Text(if words.is_empty() { "none".to_owned() } else { words.join(" ") }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(text: &str) -> Option<Priorities> {
        Priorities::read(&Value::Text(text.to_owned())).ok()
    }

    #[test]
    fn classes_are_read_and_written() {
        let given = classes("urgent  low").unwrap();
        assert_eq!(given.0, [Priority::Urgent, Priority::Low]);
        assert_eq!(given.value(), Some(Value::Text("urgent low".into())));
        assert_eq!(classes("none").unwrap().value(), Some(Value::Text("none".into())));
        for bad in ["", "none high", "HIGH", "urgent,high"] {
            assert_eq!(classes(bad), None, "`{bad}`");
        }
        assert_eq!(Priorities::read(&Value::Int(1)), Err(Mismatch::Kind));
    }
}
