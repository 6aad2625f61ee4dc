//! `cachewrightd STACK.toml`: serves the volumes of a stack until it is told to stop.
//!
//! For: service managers. Must never know: anything that `cachewright serve` does not; both call
//! the same library. Exit status: 0 stopped by SIGINT or SIGTERM, 1 it failed, 2 the command, the
//! stack or a device is wrong, 3 another server has the devices now. A second signal ends it at
//! once, and so does the first while it starts: no client has had an answer yet.

use cachewright_daemon::machine::{MachineTimes, MeasuredSpan};
use cachewright_daemon::rehearsal::RehearsalCommand;
use cachewright_daemon::{
    Accepted, ControlSignals, LiveError, LivePlan, OperatorLine, Server, ServerCommand, Severity,
    choose_scratch_folder,
};
use cachewright_types::Bytes;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const HELP: &str = "usage: cachewrightd [--set KEY=VALUE]... [--record FILE] [--log FORM]
                    [--accept-changed NAME]... [--discard-dirty] STACK.toml
       cachewrightd rehearse STACK.toml --recording PATH --drive DEVICE --backing DEVICE [OPTION]...
       cachewrightd calibrate FOLDER

Serves the volumes of a stack over the network block device protocol, until SIGINT or SIGTERM.
SIGHUP loads the changed stack file: tenants, quotas, goals, caps and limits.
SIGUSR1 finishes the current recording of `serve.record` and begins another one.
--set changes a setting of the stack. --record records every request and decision in a new file, a
trace that `cachewright run` replays. `cachewright live format STACK.toml` formats the devices.
--log is the form of log lines: plain, text (with time and level), or json (an object per line).
--accept-changed serves the tenant NAME from a backing device that was changed while no server ran.
--discard-dirty starts even if another set of cache devices has dirty blocks, and gives them up.
`cachewrightd rehearse --help` tells how a server is tried in virtual time, on models of devices.
`cachewrightd calibrate FOLDER` times this machine and the device of a folder for that, with two
files of 256 MiB that it removes, and prints a file for `--processor` and `--drive`.";

/// What a command line asks for.
#[derive(Debug, PartialEq)]
enum Task {
    Text(String),
    Rehearse(Box<RehearsalCommand>),
    /// The times of this machine and of the device below a folder are wanted.
    Calibrate(PathBuf),
    Serve {
        stack: String,
        settings: Vec<(String, String)>,
        record: Option<PathBuf>,
        log: LogForm,
        accepted: Accepted,
    },
}

/// How lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LogForm {
    /// As they are.
    #[default]
    Plain,
    /// Behind their time and level.
    Text,
    /// As objects of JSON.
    Json,
}

impl LogForm {
    fn read(text: &str) -> Result<LogForm, LiveError> {
        match text {
            "plain" => Ok(LogForm::Plain),
            "text" => Ok(LogForm::Text),
            "json" => Ok(LogForm::Json),
            found => Err(LiveError::Refused(format!(
                "found `--log {found}`, expected `plain`, `text` or `json`"
            ))),
        }
    }

    /// Begins to write lines so.
    fn begin(self) {
        let lines = tracing_subscriber::fmt().with_target(false).with_ansi(false);
        match self {
            LogForm::Plain => {}
            LogForm::Text => lines.init(),
            LogForm::Json => lines.json().flatten_event(true).init(),
        }
    }

    /// Writes a line.
    fn say(self, line: &OperatorLine) {
        match (self, line.severity) {
            (LogForm::Plain, _) => say(&line.text),
            (_, Severity::Info) => tracing::info!("{}", line.text),
            (_, Severity::Warning) => tracing::warn!("{}", line.text),
        }
    }
}

fn main() -> ExitCode {
    let arguments: Result<Vec<String>, _> =
        std::env::args_os().skip(1).map(OsString::into_string).collect();
    let arguments = arguments.map_err(|found| {
        LiveError::Refused(format!("found the argument {found:?}, expected UTF-8"))
    });
    match arguments.and_then(|arguments| parsed(&arguments)).and_then(carried_out) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(error.status())
        }
    }
}

/// Errors: no stack file, or an option that does not exist.
fn parsed(arguments: &[String]) -> Result<Task, LiveError> {
    let refuse = |found: String| {
        Err(LiveError::Refused(format!("found {found}; see `cachewrightd --help`")))
    };
    if let Some(("rehearse", rest)) = arguments.split_first().map(|(one, rest)| (&**one, rest)) {
        let command = RehearsalCommand::read(rest)?;
        let help = || Task::Text(RehearsalCommand::help().to_owned());
        return Ok(command.map_or_else(help, |command| Task::Rehearse(Box::new(command))));
    }
    if let Some(("calibrate", rest)) = arguments.split_first().map(|(one, rest)| (&**one, rest)) {
        return match rest {
            [help] if help == "--help" || help == "-h" => Ok(Task::Text(HELP.to_owned())),
            [folder] if !folder.starts_with('-') => Ok(Task::Calibrate(PathBuf::from(folder))),
            _ => refuse(format!("`calibrate {}`, expected one folder", rest.join(" "))),
        };
    }
    let (mut stack, mut settings, mut record) = (None, Vec::new(), None);
    let (mut log, mut accepted) = (LogForm::default(), Accepted::default());
    let mut left = arguments.iter();
    while let Some(argument) = left.next() {
        let pair = match argument.as_str() {
            "--help" | "-h" => return Ok(Task::Text(HELP.to_owned())),
            "--version" => return Ok(Task::Text(env!("CARGO_PKG_VERSION").to_owned())),
            "--set" => left.next().map(String::as_str).unwrap_or_default(),
            text if text.starts_with("--set=") => &text["--set=".len()..],
            "--record" => match left.next() {
                Some(path) => {
                    record = Some(PathBuf::from(path));
                    continue;
                }
                None => return refuse("`--record`, expected `--record FILE`".to_owned()),
            },
            "--accept-changed" => match left.next() {
                Some(name) => {
                    accepted.changed.push(name.clone());
                    continue;
                }
                None => {
                    return refuse(
                        "`--accept-changed`, expected `--accept-changed NAME`".to_owned(),
                    );
                }
            },
            text if text.starts_with("--accept-changed=") => {
                accepted.changed.push(text["--accept-changed=".len()..].to_owned());
                continue;
            }
            "--discard-dirty" => {
                accepted.discard_dirty = true;
                continue;
            }
            "--log" => {
                log = LogForm::read(left.next().map(String::as_str).unwrap_or_default())?;
                continue;
            }
            text if text.starts_with("--log=") => {
                log = LogForm::read(&text["--log=".len()..])?;
                continue;
            }
            text if text.starts_with("--record=") => {
                record = Some(PathBuf::from(&text["--record=".len()..]));
                continue;
            }
            text if text.starts_with('-') => return refuse(format!("unknown option `{text}`")),
            text if stack.is_none() => {
                stack = Some(text.to_owned());
                continue;
            }
            text => return refuse(format!("`{text}`, expected nothing behind the stack file")),
        };
        match pair.split_once('=') {
            Some((key, value)) => settings.push((key.to_owned(), value.to_owned())),
            None => return refuse(format!("`--set {pair}`, expected `--set KEY=VALUE`")),
        }
    }
    match stack {
        Some(stack) => Ok(Task::Serve { stack, settings, record, log, accepted }),
        None => refuse("no stack file, expected the path of one".to_owned()),
    }
}

/// The first SIGINT or SIGTERM sets `stop`, and the second one ends the process. Errors: the
/// system's.
fn stop_by_signals(stop: &Arc<AtomicBool>) -> Result<(), LiveError> {
    for signal in [SIGINT, SIGTERM] {
        // In this order: the second signal finds the flag set by the first.
        let known = flag::register_conditional_shutdown(signal, 1, Arc::clone(stop))
            .and_then(|_| flag::register(signal, Arc::clone(stop)));
        known.map_err(|error| LiveError::Failed(format!("signals: {error}")))?;
    }
    Ok(())
}

fn carried_out(task: Task) -> Result<(), LiveError> {
    match task {
        Task::Text(text) => say(&text),
        Task::Rehearse(command) => command.run(&mut say)?,
        Task::Calibrate(folder) => {
            let said = &mut |part: &str| eprintln!("{part}");
            let interrupted = Arc::new(AtomicBool::new(false));
            stop_by_signals(&interrupted)?;
            let span = MeasuredSpan::usual(interrupted);
            let times = MachineTimes::measure(&folder, &span, said)?;
            print!("{}", times.text());
        }
        Task::Serve { stack, settings, record, log, accepted } => {
            serve(&stack, &settings, record.as_deref(), log, accepted)?;
        }
    }
    Ok(())
}

fn serve(
    stack: &str,
    settings: &[(String, String)],
    record: Option<&Path>,
    log: LogForm,
    accepted: Accepted,
) -> Result<(), LiveError> {
    log.begin();
    choose_scratch_folder(Path::new(stack));
    let plan = || LivePlan::open(Path::new(stack), settings);
    let first = plan()?.accepting(accepted);
    let signals = ControlSignals::listen()?;
    let stop = Arc::new(AtomicBool::new(false));
    let starting = Arc::new(AtomicBool::new(true));
    for signal in [SIGINT, SIGTERM] {
        let known = flag::register_conditional_shutdown(signal, 0, Arc::clone(&starting));
        known.map_err(|error| LiveError::Failed(format!("signals: {error}")))?;
    }
    stop_by_signals(&stop)?;
    let server = Server::start(&first, record)?;
    starting.store(false, Ordering::Relaxed);
    let tell = |line: &str| log.say(&OperatorLine::info(line));
    server.lines().iter().for_each(|line| log.say(line));
    let mut wish = || match () {
        () if stop.load(Ordering::Relaxed) => ServerCommand::Stop,
        () if signals.take_reload() => ServerCommand::Reload(Box::new(plan())),
        () if signals.take_roll() => ServerCommand::Roll,
        () => ServerCommand::GoOn,
    };
    let stopped = server.run(&mut wish, &mut |line| log.say(line))?;
    stopped.lines.iter().for_each(|line| tell(line));
    tell(&format!("stopped; {} dirty in the cache", Bytes(stopped.dirty_bytes)));
    Ok(())
}

/// Prints a line at once. A pipe that is closed is no reason to stop.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _closed = writeln!(out, "{line}").and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(arguments: &[&str]) -> Result<Task, LiveError> {
        parsed(&arguments.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_command_line_has_one_stack_and_settings() {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let settings = vec![pair("policy", "lru"), pair("serve.engine", "threads")];
        let (stack, record) = ("a.toml".to_owned(), Some(PathBuf::from("b")));
        let log = LogForm::Plain;
        let accepted = Accepted::default();
        let wanted = |record| Task::Serve {
            stack: stack.clone(),
            settings: settings.clone(),
            record,
            log,
            accepted: accepted.clone(),
        };
        let words = ["--set", "policy=lru", "a.toml", "--set=serve.engine=threads"];
        assert_eq!(of(&words), Ok(wanted(None)));
        for recorded in [&["--record", "b"][..], &["--record=b"]] {
            assert_eq!(of(&[&words[..], recorded].concat()), Ok(wanted(record.clone())));
        }
        let changed = vec!["a".to_owned(), "b".to_owned()];
        let accepted = Accepted { changed, discard_dirty: true };
        let words = ["--accept-changed", "a", "--discard-dirty", "--accept-changed=b", "a.toml"];
        let (stack, settings) = (stack.clone(), Vec::new());
        let wanted = Task::Serve { stack, settings, record: None, log, accepted };
        assert_eq!(of(&words), Ok(wanted));
        assert!(matches!(of(&["--help"]), Ok(Task::Text(text)) if text.contains("usage")));
        for wrong in [
            &[][..],
            &["a", "b"],
            &["--sett", "a"],
            &["a", "--set"],
            &["--set=x", "a"],
            &["a", "--record"],
            &["a", "--log", "xml"],
            &["a", "--accept-changed"],
        ] {
            let error = of(wrong).unwrap_err();
            assert_eq!(error.status(), 2, "{error}");
        }
    }
}
