//! The kinds of value that only stack files have.
//!
//! For: reading and writing each. Must never know: which key has which kind. Units: nanoseconds on
//! the workload's clock; shares from 0 to 1, in the file percentages.

use cachewright_partition::layout::Wish;
use cachewright_types::declare::{Mismatch, Percent, ValueKind};
use cachewright_types::{Nanos, SettingError, Size, Value};
use std::collections::BTreeMap;

/// A text, or a whole number that stands for its digits; several with commas, or as a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label(pub String);

impl ValueKind for Label {
    const KIND: &'static str = "text in quotes, a whole number, or a list of them";

    fn read(value: &Value) -> Result<Label, Mismatch> {
        match value {
            Value::Text(text) => Ok(Label(text.clone())),
            Value::Int(number) => Ok(Label(number.to_string())),
            Value::List(values) if !values.is_empty() => {
                let labels: Result<Vec<Label>, Mismatch> = values.iter().map(Label::read).collect();
                let texts: Vec<String> = labels?.into_iter().map(|label| label.0).collect();
                Ok(Label(texts.join(",")))
            }
            _ => Err(Mismatch::Kind),
        }
    }

    fn value(&self) -> Option<Value> {
        Some(Value::Text(self.0.clone()))
    }
}

/// The file of a trace, or the files of one recording; each may be a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceFiles(pub Vec<String>);

impl TraceFiles {
    /// As messages and results name them.
    pub fn text(&self) -> String {
        self.0.join(", ")
    }
}

impl ValueKind for TraceFiles {
    const KIND: &'static str = "text in quotes, or a list of at least one for parts of a recording";

    fn read(value: &Value) -> Result<TraceFiles, Mismatch> {
        let text = |value: &Value| value.as_text().map(str::to_owned).ok_or(Mismatch::Kind);
        match value {
            Value::List(values) if !values.is_empty() => {
                values.iter().map(text).collect::<Result<_, _>>().map(TraceFiles)
            }
            other => text(other).map(|only| TraceFiles(vec![only])),
        }
    }

    fn value(&self) -> Option<Value> {
        match self.0.as_slice() {
            [only] => Some(Value::Text(only.clone())),
            several => Some(Value::List(several.iter().cloned().map(Value::Text).collect())),
        }
    }
}

/// Texts by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Texts(pub Vec<(String, String)>);

impl ValueKind for Texts {
    const KIND: &'static str = "a table of texts";

    fn read(value: &Value) -> Result<Texts, Mismatch> {
        let Value::Table(pairs) = value else { return Err(Mismatch::Kind) };
        let text = |(key, value): &(String, Value)| {
            let refuse = || {
                let (found, expected) = (format!("`{}`", value.shown()), String::KIND.to_owned());
                Mismatch::Key(SettingError { key: key.clone(), found, expected })
            };
            let text = value.as_text().ok_or_else(refuse)?;
            Ok((key.clone(), text.to_owned()))
        };
        pairs.iter().map(text).collect::<Result<_, _>>().map(Texts)
    }

    fn value(&self) -> Option<Value> {
        let pair = |(key, text): &(String, String)| (key.clone(), Value::Text(text.clone()));
        Some(Value::Table(self.0.iter().map(pair).collect()))
    }
}

/// Options of a trace format, by key: texts, and numbers and flags that stand for theirs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FormatOptions(pub BTreeMap<String, String>);

impl ValueKind for FormatOptions {
    const KIND: &'static str = "a table of texts and numbers";

    fn read(value: &Value) -> Result<FormatOptions, Mismatch> {
        let Value::Table(pairs) = value else { return Err(Mismatch::Kind) };
        let text = |(key, value): &(String, Value)| match value {
            Value::List(_) | Value::Table(_) => Err(Mismatch::Kind),
            Value::Text(text) => Ok((key.clone(), text.clone())),
            other => Ok((key.clone(), other.to_string())),
        };
        pairs.iter().map(text).collect::<Result<_, _>>().map(FormatOptions)
    }

    fn value(&self) -> Option<Value> {
        let pair = |(key, text): (&String, &String)| (key.clone(), Value::Text(text.clone()));
        Some(Value::Table(self.0.iter().map(pair).collect()))
    }
}

/// The end of a tenant before its trace ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stop {
    /// It sends nothing from this time on; simulated time in a closed loop.
    At(Nanos),
    /// It sends this share of its requests, from the first.
    Share(f64),
}

impl Stop {
    /// When a tenant stops, if that is a time.
    pub fn time(self) -> Option<Nanos> {
        match self {
            Stop::At(time) => Some(time),
            Stop::Share(_) => None,
        }
    }

    /// As in the file.
    pub fn text(self) -> String {
        match self {
            Stop::At(time) => time.exact(),
            Stop::Share(share) => Percent(share).text(),
        }
    }
}

impl ValueKind for Stop {
    const KIND: &'static str = "a share of the requests above 0%, to 100%, or a time such as `90s`";

    fn read(value: &Value) -> Result<Stop, Mismatch> {
        let text = value.as_text().ok_or(Mismatch::Kind)?;
        if text.trim_end().ends_with('%') {
            let share = Percent::read(value)?.0;
            let within = share > 0.0 && share <= 1.0;
            return if within { Ok(Stop::Share(share)) } else { Err(Mismatch::Kind) };
        }
        Nanos::read(value).map(Stop::At).map_err(|_| Mismatch::Kind)
    }

    fn value(&self) -> Option<Value> {
        Some(Value::Text(self.text()))
    }
}

/// The warm-up by what the tenants did before.
const HISTORY: &str = "history";

/// What is replayed and not counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Warmup {
    /// What arrives before this time.
    Until(Nanos),
    /// This share of the reads and writes of all tenants, from the first.
    Share(f64),
    /// So many reads and writes of all tenants, from the first.
    Requests(u64),
    /// What the tenants did before, by their `history`, which comes before their traces.
    History,
}

impl Warmup {
    /// None.
    pub const NONE: Warmup = Warmup::Until(Nanos(0));

    /// Whether everything is counted.
    pub fn is_none(self) -> bool {
        matches!(self, Warmup::Until(Nanos(0)) | Warmup::Requests(0)) || self == Warmup::Share(0.0)
    }

    /// When it ends, if that is a time.
    pub fn time(self) -> Option<Nanos> {
        match self {
            Warmup::Until(time) => Some(time),
            Warmup::Share(_) | Warmup::Requests(_) | Warmup::History => None,
        }
    }

    /// How many of `all` reads and writes it has, where it is no time; a share is rounded down.
    pub fn requests(self, all: u64) -> Option<u64> {
        match self {
            Warmup::Until(_) | Warmup::History => None,
            Warmup::Share(share) => Some((all as f64 * share) as u64),
            Warmup::Requests(requests) => Some(requests),
        }
    }

    /// As in the file.
    pub fn text(self) -> String {
        match self {
            Warmup::Until(time) => time.exact(),
            Warmup::Share(share) => Percent(share).text(),
            Warmup::Requests(requests) => format!("{requests} requests"),
            Warmup::History => HISTORY.to_owned(),
        }
    }
}

impl ValueKind for Warmup {
    const KIND: &'static str = "a time such as `90s`, a share below 100% such as `10%`, \
         a number such as `8000 requests`, or `history`";

    fn read(value: &Value) -> Result<Warmup, Mismatch> {
        let text = value.as_text().ok_or(Mismatch::Kind)?.trim();
        if text == HISTORY {
            return Ok(Warmup::History);
        }
        if text.ends_with('%') {
            let share = Percent::read(value)?.0;
            let within = (0.0..1.0).contains(&share);
            return if within { Ok(Warmup::Share(share)) } else { Err(Mismatch::Kind) };
        }
        let counted = text.strip_suffix("requests").or_else(|| text.strip_suffix("request"));
        if let Some(number) = counted {
            let number = number.trim().parse();
            return number.map(Warmup::Requests).map_err(|_| Mismatch::Kind);
        }
        Nanos::read(value).map(Warmup::Until).map_err(|mismatch| match mismatch {
            Mismatch::Expected(words) if words.starts_with("at most") => Mismatch::Expected(words),
            _ => Mismatch::Kind,
        })
    }

    fn value(&self) -> Option<Value> {
        Some(Value::Text(self.text()))
    }
}

/// The channels a tenant asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelWish(pub Wish);

impl ValueKind for ChannelWish {
    const KIND: &'static str = "a number of channels, or a list of them as in `[0, 1]`";

    fn read(value: &Value) -> Result<ChannelWish, Mismatch> {
        let wish = match value {
            Value::List(_) => Vec::read(value).map(Wish::Channels),
            _ => u32::read(value).map(Wish::Count),
        };
        wish.map(ChannelWish).map_err(|_| Mismatch::Kind)
    }

    fn value(&self) -> Option<Value> {
        match &self.0 {
            Wish::Count(count) => count.value(),
            Wish::Channels(channels) => {
                Some(Value::List(channels.iter().filter_map(ValueKind::value).collect()))
            }
        }
    }
}

/// The logical size of a drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Capacity {
    /// As large as what it holds.
    Auto,
    /// So large.
    Size(Size),
}

impl ValueKind for Capacity {
    const KIND: &'static str = "a size, or `auto` for one as large as what it holds";

    fn read(value: &Value) -> Result<Capacity, Mismatch> {
        match value.as_text() {
            Some("auto") => Ok(Capacity::Auto),
            _ => Size::read(value).map(Capacity::Size).map_err(|_| Mismatch::Kind),
        }
    }

    fn value(&self) -> Option<Value> {
        Some(Value::Text(match self {
            Capacity::Auto => "auto".to_owned(),
            Capacity::Size(size) => size.exact(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::Text(text.to_owned())
    }

    #[test]
    fn a_stop_is_a_time_or_a_share() {
        assert_eq!(Stop::read(&text("90s")), Ok(Stop::At(Nanos(90_000_000_000))));
        assert_eq!(Stop::read(&text("62.5%")), Ok(Stop::Share(0.625)));
        assert_eq!(Stop::Share(0.625).text(), "62.5%");
        for wrong in [text("0%"), text("101%"), text("x%"), text("soon"), Value::Int(3)] {
            assert_eq!(Stop::read(&wrong), Err(Mismatch::Kind), "{wrong}");
        }
    }

    #[test]
    fn other_kinds_read_back_as_themselves() {
        let list = Value::List(vec![Value::Int(0), Value::Int(3)]);
        assert_eq!(ChannelWish::read(&list).unwrap().value(), Some(list));
        assert_eq!(ChannelWish::read(&Value::Int(2)).unwrap().value(), Some(Value::Int(2)));
        assert!(ChannelWish::read(&text("2")).is_err());
        assert_eq!(Label::read(&Value::Int(7)).unwrap().value(), Some(text("7")));
        let several = Value::List(vec![text("8,0"), Value::Int(7)]);
        assert_eq!(Label::read(&several).unwrap().value(), Some(text("8,0,7")));
        let files = Value::List(vec![text("h00.csv"), text("h01.csv")]);
        assert_eq!(TraceFiles::read(&files).unwrap().value(), Some(files));
        assert_eq!(TraceFiles::read(&text("a")).unwrap().value(), Some(text("a")));
        assert!(TraceFiles::read(&Value::List(Vec::new())).is_err());
        assert!(TraceFiles::read(&several).is_err());
        assert_eq!(Capacity::read(&text("auto")), Ok(Capacity::Auto));
        assert_eq!(Capacity::read(&text("4MiB")).unwrap().value(), Some(text("4MiB")));
        let options = Value::Table(vec![("skip".to_owned(), Value::Int(1))]);
        let read = FormatOptions::read(&options).unwrap();
        assert_eq!(read.0["skip"], "1");
        assert!(Texts::read(&options).is_err());
    }
}
