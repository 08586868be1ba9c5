//! Offloading: a long tool output leaves a preview in the context, and the whole becomes a file in its agent's
//! workspace. This file decides what is long, what a preview shows, the file's name and whether there is room for it,
//! so that model and folder agree. Files are written elsewhere.

use std::collections::BTreeSet;
use std::ops::Bound;

use crate::primitives::{BlobHash, BlobRef, Body, limit};

/// The folder in an agent's workspace.
pub const FOLDER: &str = "offload";
/// Hex digits of a blob's hash in its file name.
const NAME_DIGITS: usize = 16;
/// The most bytes that a cut loses to end at a character boundary.
const CHARACTER_REST: u64 = 3;

/// The most bytes of the line that says what is missing between head and tail.
pub(crate) const GAP_BYTES_MAX: usize = 128;
/// The most bytes of the line that says that a text is only a beginning.
pub(crate) const BEGINNING_BYTES_MAX: usize = 112;

/// Head and tail of a text that is too long to be shown whole; `None` if it is not.
#[must_use]
pub fn preview(text: &str) -> Option<(&str, &str)> {
    let is_long =
        text.chars().nth(limit::OFFLOAD_CHARS).is_some() || text.lines().nth(limit::OFFLOAD_LINES).is_some();
    is_long.then(|| (head(text), tail(text)))
}

/// For a tool that sets how many bytes of its output are shown whole.
#[must_use]
pub fn preview_beyond(text: &str, bytes_max: usize) -> Option<(&str, &str)> {
    // So that head and tail never overlap, and the journal's limit holds.
    let least = limit::OFFLOAD_HEAD_BYTES + limit::OFFLOAD_TAIL_BYTES;
    let is_long = text.len() > bytes_max.clamp(least, limit::TEXT_BYTES_MAX);
    is_long.then(|| (head(text), tail(text)))
}

/// The file name of a blob, in [`FOLDER`].
#[must_use]
pub fn name(blob: &BlobHash) -> String {
    format!("{}.txt", digits(blob))
}

/// Where the whole of a partly shown output is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whole {
    File(String),
    /// In the journal only: the agent's folder has no room.
    NoRoom,
    /// In the journal only: it is not a tool's output.
    Journal,
}

/// The offloaded files of one agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offloads {
    blobs: BTreeSet<BlobHash>,
    bytes: u64,
}

impl Offloads {
    /// Adds the next partly shown output and returns where its whole is. The same output twice is one file.
    pub fn take(&mut self, blob: &BlobRef) -> Whole {
        let name = name(&blob.hash);
        if self.blobs.contains(&blob.hash) {
            return Whole::File(name);
        }
        // Outputs whose hashes collide in the shown digits must not replace each other.
        let first = digits(&blob.hash);
        let mut alike = self.blobs.range::<str, _>((Bound::Included(first), Bound::Unbounded));
        let is_taken = alike.next().is_some_and(|other| digits(other) == first);
        let bytes = self.bytes.saturating_add(blob.bytes);
        if is_taken || bytes > limit::OFFLOAD_BYTES_MAX {
            return Whole::NoRoom;
        }
        self.bytes = bytes;
        self.blobs.insert(blob.hash.clone());
        Whole::File(name)
    }

    pub fn names(&self) -> impl Iterator<Item = String> {
        self.blobs.iter().map(name)
    }
}

/// A text as models and people read it. A preview says so, and where the whole is.
#[must_use]
pub fn shown(body: Body, whole: &Whole) -> String {
    let Some(rest) = body.rest() else { return body.text };
    let all = rest.bytes;
    // Outputs above the blob limit were cut; their original size is not recorded.
    let is_cut = all.saturating_add(CHARACTER_REST) >= limit::BLOB_BYTES_MAX as u64;
    let Some((head, tail)) = body.ends() else {
        let beginning = if is_cut { "only the beginning of at least" } else { "only the beginning:" };
        let in_all = if is_cut { "" } else { " in all" };
        let blob = digits(&rest.hash);
        return format!("{}\n[{beginning} {all} bytes{in_all}; the whole is blob {blob}]", body.text);
    };
    let missing = all.saturating_sub(body.text.len() as u64);
    let missing =
        if is_cut { format!("at least {missing} bytes") } else { format!("{missing} of {all} bytes") };
    let place = match whole {
        Whole::File(name) if is_cut => format!("; the first {all} are in {FOLDER}/{name}"),
        Whole::File(name) => format!("; the whole is in {FOLDER}/{name}"),
        Whole::NoRoom => format!("; {FOLDER}/ has no room for the whole"),
        Whole::Journal => String::new(),
    };
    let line_break = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
    format!("{head}{line_break}[{missing} left out{place}]\n{tail}")
}

fn digits(blob: &BlobHash) -> &str {
    let hash = blob.as_str();
    hash.get(..NAME_DIGITS).unwrap_or(hash)
}

/// The first lines of a text, as far as they fit.
fn head(text: &str) -> &str {
    let end = text.floor_char_boundary(limit::OFFLOAD_HEAD_BYTES);
    let lines = text[..end].match_indices('\n').nth(limit::OFFLOAD_HEAD_LINES - 1);
    let end = lines.map_or(end, |(at, _)| at + 1);
    &text[..if is_inside_break(text, end) { end - 1 } else { end }]
}

/// The last lines of a text, as far as they fit.
fn tail(text: &str) -> &str {
    let start = text.ceil_char_boundary(text.len().saturating_sub(limit::OFFLOAD_TAIL_BYTES));
    // A trailing line break does not start another line.
    let end = text.strip_suffix('\n').map_or(text.len(), str::len).max(start);
    let lines = text[start..end].rmatch_indices('\n').nth(limit::OFFLOAD_TAIL_LINES - 1);
    let start = lines.map_or(start, |(at, _)| start + at + 1);
    &text[if is_inside_break(text, start) { start + 1 } else { start }..]
}

/// Whether `at` is between `\r` and `\n`.
fn is_inside_break(text: &str, at: usize) -> bool {
    text[..at].ends_with('\r') && text[at..].starts_with('\n')
}
