//! What the libraries say on standard error: warnings of the host, for people, and with `SPINNEY_LOG` debug lines.
//!
//! Not a second journal: nothing reads the lines, and they contain ids, names, counts and kinds, never texts of
//! agents, arguments or keys. They pass the same terminal filter as all output.

use std::fmt::{self, Write as _};

use spinney::clock::{Clock, SystemClock};
use spinney_terminal::out;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

pub(crate) const VARIABLE: &str = "SPINNEY_LOG";

/// A default level, and levels by prefix of the target.
#[derive(Debug, PartialEq, Eq)]
struct Filter {
    level: LevelFilter,
    targets: Vec<(String, LevelFilter)>,
}

#[derive(Debug)]
pub(crate) struct BadFilter(String);

impl fmt::Display for BadFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "bad {VARIABLE}, at `{}`: write off, error, warn, info, debug or trace, or target=level, with commas",
            self.0
        )
    }
}

/// Shows warnings for people, and debug lines if the variable is set.
#[expect(clippy::disallowed_methods, reason = "a filter for the whole process, read once at its start")]
pub(crate) fn start() -> Result<(), BadFilter> {
    let text = std::env::var_os(VARIABLE).filter(|text| !text.is_empty());
    let filter = text.map(|text| Filter::parse(&text.to_string_lossy())).transpose()?.unwrap_or(Filter::OFF);
    let clock = SystemClock::new();
    let log = Log { filter, started_ms: clock.now_ms(), clock };
    // Nothing else in this process sets one.
    let _ = tracing::subscriber::set_global_default(log);
    Ok(())
}

/// Whether debug lines may be written at any moment.
pub(crate) fn is_on() -> bool {
    tracing::dispatcher::get_default(|log| {
        log.downcast_ref().is_some_and(|log: &Log| log.filter != Filter::OFF)
    })
}

impl Filter {
    const OFF: Self = Self { level: LevelFilter::OFF, targets: Vec::new() };

    fn parse(text: &str) -> Result<Self, BadFilter> {
        let mut filter = Self::OFF;
        for part in text.split(',').map(str::trim) {
            let (target, level) = part.split_once('=').map_or((None, part), |(t, level)| (Some(t), level));
            let level = level_of(level).ok_or_else(|| BadFilter(part.to_owned()))?;
            match target {
                None => filter.level = level,
                Some("") => return Err(BadFilter(part.to_owned())),
                Some(target) => filter.targets.push((target.to_owned(), level)),
            }
        }
        Ok(filter)
    }

    /// The level of the longest matching prefix, or else the default.
    fn level(&self, target: &str) -> LevelFilter {
        let starts = self.targets.iter().filter(|(start, _)| is_start(start, target));
        starts.max_by_key(|(start, _)| start.len()).map_or(self.level, |(_, level)| *level)
    }
}

/// Whether it is a warning that the user should read, as a sentence.
fn is_for_people(metadata: &Metadata<'_>) -> bool {
    let is_of = |start| is_start(start, metadata.target());
    *metadata.level() == Level::WARN
        && [
            "spinney_host",
            "spinney_server::control",
            "spinney_drivers::commands",
            "spinney_drivers::mcp",
            "spinney::journal",
        ]
        .into_iter()
        .any(is_of)
}

/// Whether `target` is `start` or a module below it.
fn is_start(start: &str, target: &str) -> bool {
    target.strip_prefix(start).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

fn level_of(word: &str) -> Option<LevelFilter> {
    match word.to_ascii_lowercase().as_str() {
        "off" => Some(LevelFilter::OFF),
        "error" => Some(LevelFilter::ERROR),
        "warn" => Some(LevelFilter::WARN),
        "info" => Some(LevelFilter::INFO),
        "debug" => Some(LevelFilter::DEBUG),
        "trace" => Some(LevelFilter::TRACE),
        _ => None,
    }
}

/// Writes each event as one line. There are no spans: every event names its tree.
struct Log {
    filter: Filter,
    clock: SystemClock,
    started_ms: u64,
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event()
            && (is_for_people(metadata) || *metadata.level() <= self.filter.level(metadata.target()))
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        let levels = self.filter.targets.iter().map(|(_, level)| *level);
        levels.chain([self.filter.level, LevelFilter::WARN]).max()
    }

    fn event(&self, event: &Event<'_>) {
        let ms = self.clock.now_ms().saturating_sub(self.started_ms);
        let mut line = Line { message: String::new(), fields: String::new() };
        event.record(&mut line);
        if is_for_people(event.metadata()) {
            return out::complain(&line.message);
        }
        let (level, target) = (event.metadata().level(), event.metadata().target());
        let text =
            format!("{}.{:03}s {level} {target}: {}{}", ms / 1_000, ms % 1_000, line.message, line.fields);
        out::note(&text.replace('\n', "\\n"));
    }

    /// No span is enabled, so none is created.
    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

/// An event as text: its message, then its other fields.
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string cannot fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_start_of_a_target_decides_its_level() {
        let filter = Filter::parse("info, spinney=debug,spinney::journal=off").unwrap();
        assert_eq!(filter.level("other"), LevelFilter::INFO);
        assert_eq!(filter.level("spinneys"), LevelFilter::INFO);
        assert_eq!(filter.level("spinney::tree::run"), LevelFilter::DEBUG);
        assert_eq!(filter.level("spinney::journal"), LevelFilter::OFF);
    }

    #[test]
    fn what_is_no_filter_is_refused_with_the_part_at_fault() {
        for bad in ["loud", "info,", "=debug", "spinney=", "a=b=info"] {
            assert!(Filter::parse(bad).is_err(), "{bad}");
        }
        assert_eq!(
            Filter::parse("info,spinney=loud").unwrap_err().to_string(),
            "bad SPINNEY_LOG, at `spinney=loud`: write off, error, warn, info, debug or trace, or target=level, with commas"
        );
    }
}
