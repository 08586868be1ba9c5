//! The offload: a long tool output leaves a preview in the context, and the whole is a file in the workspace of its
//! agent. What is long, what a preview shows, what the file is called and whether there is room for it is decided here,
//! so that the model and the folder are told the same. Files are written elsewhere.

use std::collections::BTreeSet;
use std::ops::Bound;

use crate::words::{BlobHash, BlobRef, Body, limit};

/// The folder in an agent's workspace.
pub const FOLDER: &str = "offload";
/// How many hex digits of a blob's hash name its file.
const NAME_DIGITS: usize = 16;
/// The most bytes that a text is cut by so that it ends with a character.
const CHARACTER_REST: u64 = 3;

/// The most bytes that say what is missing between head and tail, and where it is.
pub(crate) const GAP_BYTES_MAX: u64 = 128;
/// The most bytes that say that a text is only a beginning.
pub(crate) const BEGINNING_BYTES_MAX: u64 = 112;

/// The head and the tail of a text that is too long to be shown whole; none if it is not.
#[must_use]
pub fn preview(text: &str) -> Option<(&str, &str)> {
    let is_long =
        text.chars().nth(limit::OFFLOAD_CHARS).is_some() || text.lines().nth(limit::OFFLOAD_LINES).is_some();
    is_long.then(|| (head(text), tail(text)))
}

/// The same for a tool that says how many bytes of its output are shown whole.
#[must_use]
pub fn preview_beyond(text: &str, bytes_max: usize) -> Option<(&str, &str)> {
    // Head and tail never overlap, and a journal takes no longer text.
    let least = limit::OFFLOAD_HEAD_BYTES + limit::OFFLOAD_TAIL_BYTES;
    let is_long = text.len() > bytes_max.clamp(least, limit::TEXT_BYTES_MAX);
    is_long.then(|| (head(text), tail(text)))
}

/// The file of a blob, in [`FOLDER`].
#[must_use]
pub fn name(blob: &BlobHash) -> String {
    format!("{}.txt", digits(blob))
}

/// Where the whole of an output is that is only shown in parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whole {
    /// In this file of [`FOLDER`].
    File(String),
    /// In the journal only: the agent's folder has no room for it.
    NoRoom,
    /// In the journal only: it is no output of a tool.
    Journal,
}

/// The files that one agent has in its folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offloads {
    blobs: BTreeSet<BlobHash>,
    bytes: u64,
}

impl Offloads {
    /// Takes in the next output of a tool that is shown in parts, and says where its whole is. The same output twice is
    /// one file.
    pub fn take(&mut self, blob: &BlobRef) -> Whole {
        let name = name(&blob.hash);
        if self.blobs.contains(&blob.hash) {
            return Whole::File(name);
        }
        // Whoever makes two outputs whose hashes begin alike does not replace the first by the second.
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

    /// The names of the files.
    pub fn names(&self) -> impl Iterator<Item = String> {
        self.blobs.iter().map(name)
    }
}

/// A text as models and people read it. What is only shown in parts says so, and where the whole is.
#[must_use]
pub fn shown(body: Body, whole: &Whole) -> String {
    let Some(rest) = body.rest() else { return body.text };
    let all = rest.bytes;
    // Larger outputs are cut to what a blob may have; how large they were nobody has written down.
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

/// The first lines of a text, or as much of them as has room.
fn head(text: &str) -> &str {
    let end = text.floor_char_boundary(limit::OFFLOAD_HEAD_BYTES);
    let lines = text[..end].match_indices('\n').nth(limit::OFFLOAD_HEAD_LINES - 1);
    let end = lines.map_or(end, |(at, _)| at + 1);
    &text[..if is_inside_break(text, end) { end - 1 } else { end }]
}

/// The last lines of a text, or as much of them as has room.
fn tail(text: &str) -> &str {
    let start = text.ceil_char_boundary(text.len().saturating_sub(limit::OFFLOAD_TAIL_BYTES));
    // A break at the very end ends the last line and begins none.
    let end = text.strip_suffix('\n').map_or(text.len(), str::len).max(start);
    let lines = text[start..end].rmatch_indices('\n').nth(limit::OFFLOAD_TAIL_LINES - 1);
    let start = lines.map_or(start, |(at, _)| start + at + 1);
    &text[if is_inside_break(text, start) { start + 1 } else { start }..]
}

/// Whether this place is in the middle of a line break of two characters.
fn is_inside_break(text: &str, at: usize) -> bool {
    text[..at].ends_with('\r') && text[at..].starts_with('\n')
}
