//! The command line of a rehearsal: `cachewrightd rehearse STACK.toml ...`.

use super::{DeviceChoice, Pace, RehearsalSettings, rehearse, table};
use crate::error::LiveError;
use crate::machine::Processor;
use crate::plan::LivePlan;
use cachewright_result::document::Written;
use cachewright_result::rehearsal::RehearsalAnswer;
use cachewright_types::{Bytes, Nanos, Seed, nearest, parse_bytes, parse_duration};
use std::path::PathBuf;

/// What the command says of itself.
const HELP: &str = "usage: cachewrightd rehearse STACK.toml --recording PATH --drive DEVICE
                    --backing DEVICE [OPTION]...

Runs the server of a stack in virtual time, on models of devices, under recorded requests, and
says how it would answer. No device is opened, and nothing is written.

--recording PATH      a trace whose volumes are tenants of the stack, such as a server's recording;
                      of a folder of recordings, the last one
--drive DEVICE        the model of each device of the cache: a name of `cachewright list devices`,
                      and settings: `nvme-tlc`, `fixed-latency:read=80us,write=20us`; or a file
                      of `cachewrightd calibrate`, such as `machine.toml`
--backing DEVICE      the model of the device of each volume
--shared-backing      all volumes lie one behind the other on one such device
--cache-device SIZE   bytes of each device of the cache; else those of its file, if it is there, and
                      at least what the capacity needs
--speed X             send requests X times as fast as recorded; 1 by default
--clients N           send a tenant's next request when one of its N last ones was answered
--until TIME          send only requests recorded before this time (divided by `--speed`)
--kill-at TIME        kill the server so long after the first request, and start it again;
                      repeatable
--processor TIMES     what the processor takes: a file of `cachewrightd calibrate`, or parts such
                      as `request=3.5us,operation=2.4us,answer=3.5us`, which are the default
--seed N              chooses what is left of writes under way at a kill; 1 by default
--verify              compare reads with what was written, and read all of it at the end
--what-if KEYS        rehearse the stack with these keys, too, such as `capacity=2TiB,policy=lru`;
                      repeatable, one case each
--set KEY=VALUE       change a setting of the stack in all cases
--json                print the answer as JSON";

/// The names of all options.
const OPTIONS: [&str; 15] = [
    "--recording",
    "--drive",
    "--backing",
    "--shared-backing",
    "--cache-device",
    "--speed",
    "--clients",
    "--until",
    "--kill-at",
    "--processor",
    "--seed",
    "--verify",
    "--what-if",
    "--set",
    "--json",
];

/// A rehearsal, as a command line asks for it.
#[derive(Clone, Debug, PartialEq)]
pub struct RehearsalCommand {
    stack: PathBuf,
    /// Settings of all cases.
    overrides: Vec<(String, String)>,
    /// Settings of each further case.
    what_ifs: Vec<Vec<(String, String)>>,
    settings: RehearsalSettings,
    prints_json: bool,
}

impl RehearsalCommand {
    /// The help text.
    pub fn help() -> &'static str {
        HELP
    }

    /// Reads the arguments behind `rehearse`; nothing if they ask for help. Errors: an option that
    /// does not exist, is missing or has a wrong value.
    pub fn read(arguments: &[String]) -> Result<Option<RehearsalCommand>, LiveError> {
        let (mut stack, mut overrides, mut what_ifs) = (None, Vec::new(), Vec::new());
        let (mut recording, mut drive, mut backing) = (None, None, None);
        let (mut shares_backing, mut cache_device) = (false, None);
        let (mut speed, mut clients, mut until, mut kills) = (None, None, None, Vec::new());
        let (mut processor, mut seed) = (Processor::default(), Seed(1));
        let (mut verify, mut prints_json) = (false, false);
        let mut left = arguments.iter();
        while let Some(argument) = left.next() {
            let (option, given) = match argument.split_once('=') {
                Some((option, value)) if option.starts_with("--") => (option, Some(value)),
                _ => (argument.as_str(), None),
            };
            let mut value = || {
                let value = given.or_else(|| left.next().map(String::as_str));
                value.ok_or_else(|| refuse(option, "nothing", "a value behind it"))
            };
            match option {
                "--help" | "-h" => return Ok(None),
                "--recording" => recording = Some(PathBuf::from(value()?)),
                "--drive" => drive = Some(DeviceChoice::read("--drive", value()?)?),
                "--backing" => backing = Some(DeviceChoice::read("--backing", value()?)?),
                "--cache-device" => cache_device = Some(bytes(option, value()?)?),
                "--speed" => speed = Some(checked_speed(value()?)?),
                "--clients" => clients = Some(count(option, value()?)? as usize),
                "--until" => until = Some(time(option, value()?)?),
                "--kill-at" => kills.push(time(option, value()?)?),
                "--processor" => processor = Processor::read(option, value()?)?,
                "--seed" => seed = Seed(number(option, value()?)?),
                "--what-if" => what_ifs.push(pairs(option, value()?)?),
                "--set" => overrides.push(pair(option, value()?)?),
                "--shared-backing" if given.is_none() => shares_backing = true,
                "--verify" if given.is_none() => verify = true,
                "--json" if given.is_none() => prints_json = true,
                text if text.starts_with('-') => {
                    let near = nearest(text, OPTIONS.iter().copied());
                    let near = near.map(|near| format!(", such as `{near}`")).unwrap_or_default();
                    let expected = format!("an option of `cachewrightd rehearse --help`{near}");
                    return Err(LiveError::Refused(format!(
                        "found `{argument}`, expected {expected}"
                    )));
                }
                _ if stack.is_none() => stack = Some(PathBuf::from(argument)),
                _ => {
                    return Err(LiveError::Refused(format!(
                        "found `{argument}`, expected nothing more behind the stack file"
                    )));
                }
            }
        }
        let missing = |what: &str| {
            LiveError::Refused(format!("found no {what}; see `cachewrightd rehearse --help`"))
        };
        let pace = match (speed, clients) {
            (Some(speed), Some(_)) => {
                let found = format!("`{speed}` beside `--clients`");
                return Err(refuse("--speed", found, "one of them"));
            }
            (_, Some(clients)) => Pace::Closed { clients },
            (speed, None) => Pace::Recorded { speed: speed.unwrap_or(1.0) },
        };
        let settings = RehearsalSettings {
            recording: recording.ok_or_else(|| missing("`--recording PATH`"))?,
            drive: drive.ok_or_else(|| missing("`--drive DEVICE`"))?,
            backing: backing.ok_or_else(|| missing("`--backing DEVICE`"))?,
            shares_backing,
            cache_device,
            pace,
            until,
            kills,
            processor,
            seed,
            verify,
        };
        let stack = stack.ok_or_else(|| missing("stack file"))?;
        Ok(Some(RehearsalCommand { stack, overrides, what_ifs, settings, prints_json }))
    }

    /// Rehearses all cases and hands over the text to be printed. Errors: as of [`rehearse`]; reads
    /// found something else than was written, which is said behind the text.
    pub fn run(&self, say: &mut dyn FnMut(&str)) -> Result<(), LiveError> {
        let answer = self.answer()?;
        if self.prints_json {
            let text = serde_json::to_string_pretty(&answer);
            say(&text.map_err(|error| LiveError::Failed(error.to_string()))?);
        } else {
            say(&table::of(&answer));
        }
        let verified = answer.cases.iter().filter_map(|case| case.verified.as_ref());
        match verified.map(|verified| verified.violations).sum() {
            0_u64 => Ok(()),
            wrong => Err(LiveError::Failed(format!(
                "found {wrong} sectors with neither the last answered write nor a later one, \
                 expected none; please report it"
            ))),
        }
    }

    /// Rehearses all cases. Errors: as of [`rehearse`].
    pub fn answer(&self) -> Result<RehearsalAnswer, LiveError> {
        let mut cases = Vec::new();
        for what_if in [&Vec::new()].into_iter().chain(&self.what_ifs) {
            let overrides = [&self.overrides[..], what_if].concat();
            let plan = LivePlan::open(&self.stack, &overrides)?;
            let named = what_if.iter().map(|(key, value)| format!("{key}={value}")).collect();
            cases.push(rehearse(&plan, &self.settings, named)?);
        }
        Ok(RehearsalAnswer {
            written: Written::here(),
            stack: self.stack.display().to_string(),
            recording: self.settings.recording.display().to_string(),
            drive: self.settings.drive.text.clone(),
            backing: self.settings.backing.text.clone(),
            seed: self.settings.seed.0,
            cases,
        })
    }
}

fn refuse(option: &str, found: impl std::fmt::Display, expected: &str) -> LiveError {
    LiveError::Refused(format!("{option}: found {found}, expected {expected}"))
}

fn number(option: &str, text: &str) -> Result<u64, LiveError> {
    text.parse().map_err(|_| refuse(option, format!("`{text}`"), "a whole number"))
}

fn count(option: &str, text: &str) -> Result<u64, LiveError> {
    match number(option, text)? {
        count @ 1..=65_536 => Ok(count),
        found => Err(refuse(option, format!("`{found}`"), "1 to 65536")),
    }
}

fn bytes(option: &str, text: &str) -> Result<Bytes, LiveError> {
    parse_bytes(text).map_err(|error| LiveError::Refused(format!("{option}: {error}")))
}

fn time(option: &str, text: &str) -> Result<Nanos, LiveError> {
    parse_duration(text).map_err(|error| LiveError::Refused(format!("{option}: {error}")))
}

fn checked_speed(text: &str) -> Result<f64, LiveError> {
    let speed = text.parse::<f64>().ok();
    let speed = speed.filter(|speed| (1e-6..=1e6).contains(speed));
    speed.ok_or_else(|| refuse("--speed", format!("`{text}`"), "a number from 1e-6 to 1e6"))
}

fn pair(option: &str, text: &str) -> Result<(String, String), LiveError> {
    let pair = text.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
    let pair = pair.filter(|(key, _)| !key.is_empty());
    let pair = pair.map(|(key, value)| (key.to_owned(), value.to_owned()));
    pair.ok_or_else(|| refuse(option, format!("`{text}`"), "`KEY=VALUE`"))
}

/// Pairs with commas between them; commas in quotes, brackets and braces belong to a value.
fn pairs(option: &str, text: &str) -> Result<Vec<(String, String)>, LiveError> {
    let (mut parts, mut depth, mut in_quotes) = (vec![String::new()], 0_i32, false);
    for letter in text.chars() {
        match letter {
            '"' => in_quotes = !in_quotes,
            '{' | '[' if !in_quotes => depth += 1,
            '}' | ']' if !in_quotes => depth -= 1,
            ',' if !in_quotes && depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        parts.iter_mut().rev().take(1).for_each(|part| part.push(letter));
    }
    parts.iter().map(|part| pair(option, part)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<RehearsalCommand>, LiveError> {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        RehearsalCommand::read(&words)
    }

    const NEEDED: &str = "a.toml --recording r --drive ram --backing=hdd-7200-2tb";

    #[test]
    fn a_command_line_says_what_is_rehearsed() {
        let given = "--kill-at 30s --kill-at=1ms --speed 2 --seed 7 --verify --json \
                     --what-if capacity=1MiB,policy=lru --set serve.segment=64KiB \
                     --processor operation=0ns";
        let found = read(&format!("{NEEDED} {given}")).unwrap().unwrap();
        let RehearsalSettings { pace, kills, seed, verify, processor, .. } = &found.settings;
        assert_eq!((*pace, *seed, *verify), (Pace::Recorded { speed: 2.0 }, Seed(7), true));
        assert_eq!(kills, &[Nanos(30_000_000_000), Nanos(1_000_000)]);
        assert_eq!(*processor, Processor { operation: Nanos(0), ..Processor::default() });
        let two = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(found.what_ifs, [[two("capacity", "1MiB"), two("policy", "lru")]]);
        assert_eq!(found.overrides, [two("serve.segment", "64KiB")]);
        assert!(found.prints_json && found.stack.as_os_str() == "a.toml");
        let closed = read(&format!("{NEEDED} --clients 4")).unwrap().unwrap();
        assert_eq!(closed.settings.pace, Pace::Closed { clients: 4 });
        assert_eq!(read("--help"), Ok(None));
    }

    #[test]
    fn commas_within_a_value_end_no_pair() {
        let found = pairs("--what-if", r#"partition={ name = "hull", ahead = true },a="b,c""#);
        let keys: Vec<String> = found.unwrap().into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, ["partition", "a"]);
    }

    #[test]
    fn a_wrong_option_is_named_with_what_was_found_and_expected() {
        let wrong = [
            ("", "found no `--recording PATH`"),
            ("--recording r --drive ram --backing ram", "found no stack file"),
            ("--drive hdd-7200", "--drive: found `hdd-7200`, expected one of"),
            ("--drive fixed-latency:read", "--drive: found `read`"),
            ("--drive fixed-latency:reads=1us", "nearest is `read`"),
            ("--kill-at soon", "--kill-at: "),
            ("--speed 0", "--speed: found `0`, expected a number"),
            ("--speed 1 --clients 2", "--speed: found `1` beside `--clients`"),
            ("--clients 0", "--clients: found `0`, expected 1 to 65536"),
            (
                "--processor idle=1us",
                "--processor: `idle`: found an unknown key, expected one of request",
            ),
            ("--processor 3us", "--processor: found `3us`, expected `KEY=TIME`, or a file"),
            ("--processor no.toml", "no.toml: No such file"),
            ("--drive no.toml", "no.toml: No such file"),
            ("--what-if capacity", "--what-if: found `capacity`, expected `KEY=VALUE`"),
            ("--kill 3s", "such as `--kill-at`"),
            ("--json=yes", "found `--json=yes`"),
            ("--seed", "--seed: found nothing"),
            ("b.toml", "expected nothing more"),
        ];
        for (given, expected) in wrong {
            let is_whole = given.is_empty() || given.starts_with("--recording");
            let text = if is_whole { given.to_owned() } else { format!("{NEEDED} {given}") };
            let error = read(&text).unwrap_err();
            assert_eq!(error.status(), 2);
            assert!(error.to_string().contains(expected), "{text}: {error}");
        }
    }
}
