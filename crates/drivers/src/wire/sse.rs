//! Server-sent events, decoded from bytes as they arrive. It knows lines and events, and no provider.
//!
//! Each byte is looked at a bounded number of times, wherever the chunks are split: finished lines are taken straight
//! from the chunk, and only an unfinished one is copied.

use super::bounds::{EVENT_BYTES_MAX, EVENT_NAME_BYTES_MAX, LINE_BYTES_MAX};

const BOM: &[u8] = "\u{feff}".as_bytes();

/// One event of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SseEvent<'d> {
    /// Its name; empty if it has none.
    pub name: &'d str,
    pub data: &'d str,
}

/// Why bytes are not a stream of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SseFault {
    #[error("a line of the stream has more than {LINE_BYTES_MAX} bytes")]
    LineTooLong,
    #[error("an event of the stream has more than {EVENT_BYTES_MAX} bytes")]
    EventTooLarge,
    #[error("the stream is not UTF-8")]
    NotUtf8,
}

/// Turns bytes into events.
#[derive(Debug, Default)]
pub struct SseDecoder {
    /// The beginning of a line whose end has not arrived.
    line: Vec<u8>,
    name: String,
    data: String,
    /// Whether the event has a data line; an event without one is none.
    has_data: bool,
    /// Whether the last line ended with CR, so LF at the beginning of what follows belongs to it.
    ended_with_cr: bool,
    /// Whether the first line has been read: a byte order mark can only stand before it.
    is_begun: bool,
    /// Whether a line has come that only a stream of events has.
    has_field: bool,
}

const FIELDS: [&str; 4] = ["data", "event", "id", "retry"];

impl SseDecoder {
    /// Whether a line has come that only a stream of events has, or what may be the beginning of one.
    #[must_use]
    pub fn is_stream(&self) -> bool {
        let may_be = |field: &&str| {
            let line = self.line.strip_prefix(BOM).unwrap_or(&self.line);
            match line.iter().position(|byte| *byte == b':') {
                Some(end) => line[..end] == *field.as_bytes(),
                None => !line.is_empty() && field.as_bytes().starts_with(line),
            }
        };
        self.has_field || self.line.starts_with(b":") || FIELDS.iter().any(may_be)
    }

    /// Whether something came after the last event.
    #[must_use]
    pub const fn is_pending(&self) -> bool {
        !self.line.is_empty() || self.has_data
    }

    /// Decodes what arrived and hands over each event that is complete. An event that the stream does not finish with
    /// an empty line is never handed over.
    ///
    /// # Errors
    /// If the bytes are not such a stream, or if `on_event` fails. Do not feed more after a fault.
    pub fn feed<F: From<SseFault>>(
        &mut self,
        mut bytes: &[u8],
        on_event: &mut dyn FnMut(SseEvent<'_>) -> Result<(), F>,
    ) -> Result<(), F> {
        while let Some(first) = bytes.first() {
            if std::mem::take(&mut self.ended_with_cr) && *first == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                return Ok(self.keep(bytes)?);
            };
            self.ended_with_cr = bytes[end] == b'\r';
            if self.line.is_empty() {
                self.line(&bytes[..end], on_event)?;
            } else {
                self.keep(&bytes[..end])?;
                let line = std::mem::take(&mut self.line);
                self.line(&line, on_event)?;
                self.line = line;
                self.line.clear();
            }
            bytes = &bytes[end + 1..];
        }
        Ok(())
    }

    /// Keeps a piece of a line.
    fn keep(&mut self, piece: &[u8]) -> Result<(), SseFault> {
        if piece.len() > LINE_BYTES_MAX - self.line.len() {
            return Err(SseFault::LineTooLong);
        }
        self.line.extend_from_slice(piece);
        Ok(())
    }

    fn line<F: From<SseFault>>(
        &mut self,
        line: &[u8],
        on_event: &mut dyn FnMut(SseEvent<'_>) -> Result<(), F>,
    ) -> Result<(), F> {
        if line.len() > LINE_BYTES_MAX {
            return Err(SseFault::LineTooLong.into());
        }
        let is_first = !std::mem::replace(&mut self.is_begun, true);
        let line = line.strip_prefix(BOM).filter(|_| is_first).unwrap_or(line);
        if line.is_empty() {
            return self.end_event(on_event);
        }
        let line = std::str::from_utf8(line).map_err(|_| SseFault::NotUtf8)?;
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        // A line that begins with a colon is a comment.
        self.has_field |= field.is_empty() || FIELDS.contains(&field);
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => self.add_data(value)?,
            "event" => {
                let known_size = Some(value).filter(|value| value.len() <= EVENT_NAME_BYTES_MAX);
                known_size.unwrap_or_default().clone_into(&mut self.name);
            }
            // Comments, ids, retry times and fields to come.
            _ => {}
        }
        Ok(())
    }

    fn add_data(&mut self, value: &str) -> Result<(), SseFault> {
        if value.len() >= EVENT_BYTES_MAX - self.data.len() {
            return Err(SseFault::EventTooLarge);
        }
        if std::mem::replace(&mut self.has_data, true) {
            self.data.push('\n');
        }
        self.data.push_str(value);
        Ok(())
    }

    fn end_event<F: From<SseFault>>(
        &mut self,
        on_event: &mut dyn FnMut(SseEvent<'_>) -> Result<(), F>,
    ) -> Result<(), F> {
        if std::mem::take(&mut self.has_data) {
            on_event(SseEvent { name: &self.name, data: &self.data })?;
        }
        self.name.clear();
        self.data.clear();
        Ok(())
    }
}
