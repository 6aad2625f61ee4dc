//! Where a tenant stops before its trace ends: at a time, or after a share of its requests.
//!
//! For: reading `stop`. Must never know: how a replay carries it out. Units: nanoseconds on the
//! workload's clock (simulated time in a closed loop), as `start`; shares from 0 to 1, in the file
//! percentages.

use super::flash::{percent, percent_text};
use super::section::Section;
use cachewright_types::Nanos;

/// The end of a tenant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stop {
    /// It sends nothing from this time on.
    At(Nanos),
    /// It sends this share of its requests, from the first.
    Share(f64),
}

impl Stop {
    /// The `stop` of a `[[tenant]]` that begins at `start`, if it has one. Errors: neither a later
    /// time nor a share above 0 %, to 100 %.
    pub fn from_section(section: &Section<'_>, start: Nanos) -> Result<Option<Stop>, String> {
        let Some(found) = section.get("stop") else { return Ok(None) };
        if let Some(text) = found.as_str().filter(|text| text.trim_end().ends_with('%')) {
            let share = percent(&section.key("stop"), text).ok().filter(|share| *share <= 1.0);
            let expected = "a share of the requests above 0%, to 100%, or a time such as `90s`";
            return share
                .map(|share| Some(Stop::Share(share)))
                .ok_or_else(|| section.refuse("stop", found, expected));
        }
        let time = section.duration("stop", Nanos(0))?;
        if time > start {
            return Ok(Some(Stop::At(time)));
        }
        let expected = format!("a time after its `start`, {start}, or a share such as `50%`");
        Err(section.refuse("stop", found, &expected))
    }

    /// As in the file.
    pub fn text(self) -> String {
        match self {
            Stop::At(time) => time.exact(),
            Stop::Share(share) => percent_text(share),
        }
    }

    /// When a tenant stops, if that is a time.
    pub fn time(self) -> Option<Nanos> {
        match self {
            Stop::At(time) => Some(time),
            Stop::Share(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<Stop>, String> {
        let table = format!("stop = {text}").parse::<toml::Table>().unwrap();
        Stop::from_section(&Section::new("tenant[1]", &table, &["stop"]).unwrap(), Nanos(5))
    }

    #[test]
    fn a_stop_is_a_later_time_or_a_share() {
        assert_eq!(read("\"90s\""), Ok(Some(Stop::At(Nanos(90_000_000_000)))));
        assert_eq!(read("\"62.5%\""), Ok(Some(Stop::Share(0.625))));
        assert_eq!(Stop::Share(0.625).text(), "62.5%");
        let words = "`tenant[1].stop`: found `\"5ns\"`, expected a time after its `start`, 5ns, or \
                     a share such as `50%`";
        assert_eq!(read("\"5ns\""), Err(words.to_owned()));
        for wrong in ["\"0%\"", "\"101%\"", "\"x%\"", "\"soon\"", "3", "true"] {
            let error = read(wrong).unwrap_err();
            assert!(error.starts_with("`tenant[1].stop`: found"), "{error}");
        }
    }
}
