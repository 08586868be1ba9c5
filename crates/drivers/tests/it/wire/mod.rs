//! Wire formats: streams of our own making, read whole, in pieces, cut and damaged; requests; errors.

mod announced;
mod bounds;
mod chunks;
mod faults;
mod requests;
mod round_trip;
mod server_events;
mod streams;
mod usage;

use std::fmt::Write as _;
use std::path::Path;

use spinney_drivers::wire::{
    Keep, ReadAs, Secrets, ServedFrom, StreamReader, UndividedWrites, WireAnswer, WireDelta, WireFault,
    WireFormat,
};

/// The key that one of the streams repeats.
pub(super) const KEY: &str = "sk-test-0123456789abcdef";

/// A stream of the corpus.
pub(super) struct Recorded {
    pub(super) format: WireFormat,
    /// Its file, without the ending.
    pub(super) shape: String,
    pub(super) bytes: Vec<u8>,
}

/// What came of reading a stream.
#[derive(Debug, PartialEq)]
pub(super) struct Outcome {
    pub(super) answer: WireAnswer,
    pub(super) fault: Option<WireFault>,
    /// The deltas as lines; texts that follow each other are one.
    pub(super) deltas: String,
}

pub(super) const fn folder(format: WireFormat) -> &'static str {
    match format {
        WireFormat::OpenAiChat => "open_ai_chat",
        WireFormat::CompatibleChat => "compatible_chat",
        WireFormat::OpenAiResponses => "open_ai_responses",
        WireFormat::AnthropicMessages => "anthropic_messages",
        WireFormat::Gemini => "gemini",
    }
}

/// The streams of a format, in order of their names.
pub(super) fn recorded(format: WireFormat) -> Vec<Recorded> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(folder(format));
    let mut streams: Vec<Recorded> = std::fs::read_dir(&root)
        .unwrap_or_else(|error| panic!("{}: {error}", root.display()))
        .map(|entry| {
            let path = entry.unwrap().path();
            let shape = path.file_stem().unwrap().to_str().unwrap().to_owned();
            Recorded { format, shape, bytes: std::fs::read(&path).unwrap() }
        })
        .collect();
    streams.sort_by(|a, b| a.shape.cmp(&b.shape));
    streams
}

pub(super) fn stream(format: WireFormat, shape: &str) -> Recorded {
    let found = recorded(format).into_iter().find(|stream| stream.shape == shape);
    found.unwrap_or_else(|| panic!("no stream {shape}"))
}

pub(super) fn all() -> Vec<Recorded> {
    WireFormat::ALL.into_iter().flat_map(recorded).collect()
}

pub(super) fn read_as(format: WireFormat, keep: Keep) -> ReadAs {
    ReadAs {
        format,
        model: "asked".to_owned(),
        keep,
        secrets: Secrets::new([KEY.to_owned()]),
        served_from: ServedFrom::Provider,
        undivided_writes: UndividedWrites::Minutes,
    }
}

/// Reads chunks until one is a fault.
pub(super) fn outcome<'c>(read_as: ReadAs, chunks: impl IntoIterator<Item = &'c [u8]>) -> Outcome {
    let mut reader = StreamReader::new(read_as);
    let mut lines = Lines::default();
    let mut fault = None;
    for chunk in chunks {
        fault = reader.feed(chunk, &mut |delta| lines.add(delta)).err();
        if fault.is_some() {
            break;
        }
    }
    Outcome { answer: reader.finish(), fault, deltas: lines.text() }
}

pub(super) fn read(stream: &Recorded) -> Outcome {
    outcome(read_as(stream.format, Keep::Everything), [stream.bytes.as_slice()])
}

#[derive(Default)]
struct Lines(Vec<Line>);

struct Line {
    kind: String,
    text: String,
}

impl Lines {
    fn add(&mut self, delta: WireDelta<'_>) {
        let (kind, text) = match delta {
            WireDelta::Text(text) => ("text".to_owned(), text),
            WireDelta::Reasoning(text) => ("reasoning".to_owned(), text),
            WireDelta::CallStarted { call, id, name } => (format!("call {call} started {id} {name}"), ""),
            WireDelta::CallArguments { call, text } => (format!("call {call} arguments"), text),
            WireDelta::CallFinished { call } => (format!("call {call} finished"), ""),
        };
        match self.0.last_mut() {
            Some(last) if last.kind == kind => last.text.push_str(text),
            _ => self.0.push(Line { kind, text: text.to_owned() }),
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for line in &self.0 {
            let shown = if line.text.is_empty() { String::new() } else { format!(" {:?}", line.text) };
            writeln!(text, "  {}{shown}", line.kind).unwrap();
        }
        text
    }
}

impl Outcome {
    /// For snapshots.
    pub(super) fn text(&self) -> String {
        let (answer, mut text) = (&self.answer, String::new());
        let (id, model) = (answer.id.as_deref().unwrap_or("-"), answer.model.as_deref().unwrap_or("-"));
        writeln!(text, "{:?}, stopped {:?}, {id} of {model}", answer.end, answer.stop).unwrap();
        if let Some(fault) = &self.fault {
            writeln!(text, "fault {:?}, retry after {:?}: {fault}", fault.kind, fault.retry_after_ms)
                .unwrap();
        }
        let usage = &answer.usage;
        let counts = [
            ("input", usage.input),
            ("output", usage.output),
            ("cache read", usage.cache_read),
            ("written 5m", usage.cache_written_5m),
            ("written 1h", usage.cache_written_1h),
            ("reasoning", usage.reasoning),
            ("reported nanos", usage.reported_nanos),
            ("nanos apart", Some(usage.apart_nanos).filter(|nanos| *nanos > 0)),
        ];
        let counts = counts.iter().filter_map(|(name, count)| Some(format!("{name} {}", (*count)?)));
        let counts = counts.chain(usage.has_unknown_price.then(|| "unknown price".to_owned()));
        writeln!(text, "usage: {}", counts.collect::<Vec<_>>().join(", ")).unwrap();
        writeln!(text, "text: {:?}", answer.text).unwrap();
        if !answer.reasoning.is_empty() {
            writeln!(text, "reasoning: {:?}", answer.reasoning).unwrap();
        }
        for call in &answer.calls {
            let whole = if call.is_whole { "whole" } else { "cut" };
            writeln!(text, "call {} {}: {} ({whole})", call.id, call.name, call.arguments).unwrap();
        }
        if let Some(continuation) = &answer.continuation {
            let bytes = continuation.to_bytes().unwrap();
            writeln!(text, "continuation: {}", String::from_utf8(bytes).unwrap()).unwrap();
        }
        write!(text, "deltas:\n{}", self.deltas).unwrap();
        text
    }
}
