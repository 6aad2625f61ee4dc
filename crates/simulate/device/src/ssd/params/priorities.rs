//! The classes of tenants as a value of a stack file.
//!
//! For: the words `none` and `urgent high`. Must never know: who is served when (see
//! `flash::priority`).

use super::Quantity;
use crate::ssd::flash::Priority;
use cachewright_types::Value;

/// The class of each tenant in the order of the stack file, the last one of all beyond; empty when
/// tenants have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Priorities(pub Vec<Priority>);

impl Quantity for Priorities {
    const KIND: &'static str =
        "`none`, or a class for each tenant: urgent, high, medium or low (`urgent high`)";

    fn from_value(value: &Value) -> Option<Priorities> {
        let Value::Text(text) = value else { return None };
        if text == "none" {
            return Some(Priorities::default());
        }
        let class = |word: &str| Priority::ALL.into_iter().find(|class| class.word() == word);
        let classes: Option<Vec<Priority>> = text.split_whitespace().map(class).collect();
        classes.filter(|classes| !classes.is_empty()).map(Priorities)
    }

    fn number(&self) -> f64 {
        0.0
    }

    fn text(&self) -> String {
        let words: Vec<&str> = self.0.iter().map(|class| class.word()).collect();
        if words.is_empty() { "\"none\"".to_owned() } else { format!("\"{}\"", words.join(" ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(text: &str) -> Option<Priorities> {
        Priorities::from_value(&Value::Text(text.to_owned()))
    }

    #[test]
    fn classes_are_read_and_written() {
        let given = classes("urgent  low").unwrap();
        assert_eq!(given.0, [Priority::Urgent, Priority::Low]);
        assert_eq!(given.text(), "\"urgent low\"");
        assert_eq!(classes("none").unwrap().text(), "\"none\"");
        for bad in ["", "none high", "HIGH", "urgent,high"] {
            assert_eq!(classes(bad), None, "`{bad}`");
        }
        assert_eq!(Priorities::from_value(&Value::Int(1)), None);
    }
}
