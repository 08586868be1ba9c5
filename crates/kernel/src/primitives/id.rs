//! Ids and names: newtypes that are validated when they are made, so nothing downstream checks them again.

use std::borrow::Borrow;
use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroU64;
use std::str::FromStr;
use std::sync::Arc;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smallvec::SmallVec;

use crate::primitives::{Time, limit};

use super::hostile::is_hostile;

/// Ids that no agent may have, because events, messages and views use them for something that is not an agent.
pub const RESERVED_IDS: [&str; 4] = ["person", "system", "tree", "user"];

/// First words of the topics of a tree's own events. A message from a model must not use them.
pub const OWN_TOPICS: [&str; 7] = ["agent", "budget", "context", "model", "thread", "tool", "tree"];

const HEX: &[u8; 16] = b"0123456789abcdef";
const BASE36: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    #[error("`{text}` is not a valid {what}: {rule}")]
    Invalid {
        what: &'static str,
        /// The rejected text, cut to a readable length.
        text: String,
        rule: &'static str,
    },
}

impl IdError {
    pub(super) fn new(what: &'static str, text: &str, rule: &'static str) -> Self {
        Self::Invalid { what, text: text.chars().take(80).collect(), rule }
    }
}

/// A tree's id, which is also its trace id: 16 bytes, shown as 32 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct TreeId([u8; 16]);

impl TreeId {
    /// The bytes are drawn outside the kernel.
    #[must_use]
    pub const fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    #[must_use]
    pub const fn bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for TreeId {
    /// Uses a table because every effect's key begins with this text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digits = [0; 32];
        for (pair, byte) in digits.as_chunks_mut::<2>().0.iter_mut().zip(self.0) {
            *pair = [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 0xf)]];
        }
        f.write_str(std::str::from_utf8(&digits).unwrap_or_default())
    }
}

impl fmt::Debug for TreeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TreeId({self})")
    }
}

impl FromStr for TreeId {
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, IdError> {
        let invalid = || IdError::new("tree id", text, "32 lowercase hex digits");
        if text.len() != 32 || !text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(invalid());
        }
        let number = u128::from_str_radix(text, 16).map_err(|_| invalid())?;
        Ok(Self(number.to_be_bytes()))
    }
}

impl TryFrom<String> for TreeId {
    type Error = IdError;
    fn try_from(text: String) -> Result<Self, IdError> {
        text.parse()
    }
}

impl From<TreeId> for String {
    fn from(id: TreeId) -> Self {
        id.to_string()
    }
}

struct Parsed<T>(PhantomData<T>);

impl<T: FromStr<Err = IdError>> Visitor<'_> for Parsed<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

/// A shared string that passed `$check` when it was made.
macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $what:literal, $check:ident, $rule:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                if $check(text) { Ok(Self(text.into())) } else { Err(IdError::new($what, text, $rule)) }
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(Parsed(PhantomData))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &self.0)
            }
        }
    };
}

name!(
    /// An agent's id, unique in its tree. It also names a folder, so it cannot contain a path.
    AgentId, "agent id", is_slug_64,
    "1 to 64 characters of a-z, 0-9, `_` and `-`, the first a letter or digit"
);
name!(
    /// A role: a kind of agent that the tree's definition describes.
    RoleName, "role", is_slug_48,
    "1 to 48 characters of a-z, 0-9, `_` and `-`, the first a letter or digit"
);
name!(
    /// A model's name in the tree's definition.
    ModelName, "model name", is_label,
    "1 to 128 characters of A-Z, a-z, 0-9 and `._:/-`, the first a letter or digit"
);
name!(
    ToolName,
    "tool name",
    is_label,
    "1 to 128 characters of A-Z, a-z, 0-9 and `._:/-`, the first a letter or digit"
);
name!(
    /// A server of tools in the tree's definition.
    ServerName, "server name", is_server_name,
    "1 to 32 characters of A-Z, a-z, 0-9, `_` and `-`, the first a letter or digit, without `__` and not ending in `_`"
);
name!(
    /// The conversation an agent belongs to: an address for tracing that grants no rights.
    ThreadId, "thread id", is_label,
    "1 to 128 characters of A-Z, a-z, 0-9 and `._:/-`, the first a letter or digit"
);

name!(
    /// A session of a program that is an agent, as the program names it: it continues with what it knew there. It is a word of
    /// a command, and never an option.
    SessionId, "session id", is_session,
    "1 to 128 characters of A-Z, a-z, 0-9 and `._-`, the first a letter or digit"
);
name!(
    /// What a message is about, for watchers: words separated by dots, the most general first.
    Topic, "topic", is_label,
    "1 to 128 characters of A-Z, a-z, 0-9 and `._:/-`, the first a letter or digit"
);
name!(
    /// The kind of a message, chosen by its sender.
    MessageKind, "message type", is_label,
    "1 to 128 characters of A-Z, a-z, 0-9 and `._:/-`, the first a letter or digit"
);
name!(
    /// Ties messages together: a reply has the correlation id of its request.
    Correlation, "correlation id", is_label,
    "1 to 128 characters of A-Z, a-z, 0-9 and `._:/-`, the first a letter or digit"
);
name!(
    /// A checkpoint's name, unique in its home.
    CheckpointName, "checkpoint name", is_slug_64,
    "1 to 64 characters of a-z, 0-9, `_` and `-`, the first a letter or digit"
);
name!(
    /// A step or a group of a graph, unique in its graph. The agents of a step are named after it.
    StepId, "step id", is_slug_48,
    "1 to 48 characters of a-z, 0-9, `_` and `-`, the first a letter or digit"
);
name!(
    /// The name of a value that a graph's steps write and read.
    ValueName, "value name", is_value_name,
    "1 to 64 characters of A-Z, a-z, 0-9 and `_.-`, the first a letter or `_`"
);
name!(
    /// A value's name, or the beginning of names followed by `*`.
    ValuePattern, "value name or beginning", is_value_pattern,
    "a value name, or the beginning of one followed by `*`"
);
name!(
    /// A MIME type.
    MediaType, "media type", is_media_type,
    "two words of a-z, 0-9 and `.+-` with one `/` between, at most 100 characters, such as `image/png`"
);
name!(
    /// The file name of an image or a file in a message. It is not a path.
    PartName, "name of a part", is_part_name,
    "1 to 128 bytes without `/`, `\\` and characters that cannot be printed, not `.` or `..`, no space at an end"
);
name!(
    /// The name of an actor outside the tree, such as a key's or a user's.
    ActorName, "name of an actor", is_actor_name,
    "1 to 128 bytes without characters that cannot be printed, no space at an end"
);
name!(
    /// The name of a file that a tree is resumed from. It is not a path.
    SourceName, "name of a source file", is_source_name,
    "1 to 64 characters of `a-z 0-9 . _ -`, starting with a letter or digit"
);
name!(
    /// The path of a file below an agent's `outputs/`, such as `notes/plan.md`: plain names only, so it leads nowhere
    /// else.
    OutputPath, "path of an output", is_output_path,
    "1 to 15 names with `/` between them, of letters, digits, spaces and `. _ - + = @ , ( )`; no name begins or ends with a dot or a space"
);
name!(
    /// A folder of the machine that a tree may be granted, by its absolute path.
    FolderPath, "path of a folder", is_folder_path,
    "an absolute path of 1 to 64 names, without `.`, `..`, empty names and characters that cannot be seen"
);
name!(
    /// The BLAKE3 hash of a blob.
    BlobHash, "blob hash", is_hash,
    "64 lowercase hex digits"
);

impl AgentId {
    /// The default id of an agent: its role and eight hex digits drawn outside the kernel.
    #[must_use]
    pub fn drawn(role: &RoleName, draw: u32) -> Self {
        let mut text = SmallVec::<[u8; 64]>::from_slice(role.0.as_bytes());
        text.push(b'-');
        for byte in draw.to_be_bytes() {
            text.push(HEX[usize::from(byte >> 4)]);
            text.push(HEX[usize::from(byte & 0xf)]);
        }
        Self(String::from_utf8_lossy(&text).into())
    }

    /// Whether it is one of [`RESERVED_IDS`].
    #[must_use]
    pub fn is_reserved(&self) -> bool {
        RESERVED_IDS.contains(&self.as_str())
    }

    /// The role's name as an id. The root of a tree has this id.
    #[must_use]
    pub fn of_role(role: &RoleName) -> Self {
        Self(Arc::clone(&role.0))
    }
}

impl FolderPath {
    /// Whether a path is this folder or below it, by names alone: links are not looked at here.
    #[must_use]
    pub fn contains(&self, path: &Self) -> bool {
        let below = path.0.strip_prefix(&*self.0);
        below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
    }
}

impl RoleName {
    /// The role of the agents that stand for a graph or a group of one. They have no model and take no turns.
    #[must_use]
    pub fn of_graphs() -> Self {
        Self("pipeline".into())
    }

    #[must_use]
    pub fn is_of_graphs(&self) -> bool {
        &*self.0 == "pipeline"
    }
}

impl ModelName {
    /// Stands for the model of an agent that has none.
    #[must_use]
    pub fn of_none() -> Self {
        Self("none".into())
    }
}

impl StepId {
    /// The id that a step or a group gets if its author gives it none: `word`, or `word-2` and so on.
    pub(crate) fn numbered(word: &str, number: u32) -> Self {
        if number < 2 { Self(word.into()) } else { Self(format!("{}-{number}", shortened(word, 37)).into()) }
    }
}

impl ToolName {
    pub(crate) fn of_builtin(word: &'static str) -> Self {
        Self(word.into())
    }
}

impl ServerName {
    /// Between the name of a server and that of its tool. Models refuse a dot.
    const BETWEEN: &str = "__";
    /// The longest name that every provider takes.
    const TOOL_BYTES_MAX: usize = 64;

    /// The name of one of its tools in the tree. What models do not take in a name becomes `_`; `None` if the name is too
    /// long.
    #[must_use]
    pub fn tool(&self, tool: &str) -> Option<ToolName> {
        let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
        let tool: String = tool.chars().map(plain).collect();
        let name = format!("{self}{}{tool}", Self::BETWEEN);
        let fits = !tool.is_empty() && name.len() <= Self::TOOL_BYTES_MAX;
        fits.then(|| ToolName(name.into()))
    }

    /// The parts of a tool's name: its server, and the rest.
    #[must_use]
    pub fn split(tool: &ToolName) -> Option<(&str, &str)> {
        tool.as_str().split_once(Self::BETWEEN)
    }
}

impl AgentId {
    /// The id of an agent of a step: the step's own id, or with the number of its map item, round or attempt. A long
    /// id is shortened.
    pub(crate) fn of_step(step: &StepId, suffix: &str) -> Self {
        Self(format!("{}{suffix}", shortened(step.as_str(), 64 - suffix.len().min(63))).into())
    }
}

impl ValueName {
    /// What a graph says about its own progress. Only the kernel writes it.
    pub const PROGRESS: &str = "pipeline.progress";

    /// Whether agents may read it, but not write it.
    #[must_use]
    pub fn is_reserved(&self) -> bool {
        self.as_str() == Self::PROGRESS
    }
}

impl ValuePattern {
    /// How many bytes of the name it fixes, if it covers the name. One that fixes more is more specific, and a whole
    /// name is the most specific of all.
    #[must_use]
    pub fn covers(&self, name: &ValueName) -> Option<usize> {
        match self.0.strip_suffix('*') {
            Some(beginning) => name.0.starts_with(beginning).then_some(beginning.len()),
            None => (self.0 == name.0).then_some(usize::MAX),
        }
    }
}

impl Topic {
    pub(crate) fn of_word(word: &'static str) -> Self {
        Self(word.into())
    }

    #[must_use]
    pub fn result() -> Self {
        Self::of_word("agent.result")
    }

    /// The topic of replies to messages that have none.
    #[must_use]
    pub fn reply() -> Self {
        Self::of_word("reply")
    }

    /// The topic of replies to messages with this topic. A very long one is cut; the correlation id still
    /// distinguishes replies.
    #[must_use]
    pub fn reply_to(topic: &Self) -> Self {
        Self(format!("reply.{topic}").chars().take(128).collect::<String>().into())
    }

    /// Whether it begins with one of [`OWN_TOPICS`].
    #[must_use]
    pub fn is_own(&self) -> bool {
        let first = self.0.split('.').next().unwrap_or_default();
        OWN_TOPICS.iter().any(|own| own.eq_ignore_ascii_case(first))
    }

    /// Whether it is this topic or is below it: `agent` covers `agent.spawn`.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        match other.0.strip_prefix(&*self.0) {
            Some(rest) => rest.is_empty() || rest.starts_with('.'),
            None => false,
        }
    }
}

impl MessageKind {
    /// What the spawn of a child is to watchers.
    #[must_use]
    pub fn spawn_request() -> Self {
        Self("spawn_request".into())
    }

    /// What the end of a child is to watchers.
    #[must_use]
    pub fn spawn_result() -> Self {
        Self("spawn_result".into())
    }
}

impl Correlation {
    /// Shared by a spawn and the child's result.
    #[must_use]
    pub fn of_agent(agent: &AgentId) -> Self {
        Self(Arc::clone(&agent.0))
    }

    /// The default: the last event's number and a count.
    #[must_use]
    pub fn drawn(seq: Seq, count: u64) -> Self {
        Self(format!("ask-{}-{count}", seq.0).into())
    }

    /// Shared by every event of a call.
    #[must_use]
    pub fn of_call(call: CallId) -> Self {
        Self(format!("call-{}", call.0).into())
    }
}

impl CheckpointName {
    /// The default name of a checkpoint: its time and ten hex digits derived from tree, position and draw, so no
    /// lookup is needed to know that it is free. Names sort by time, so the home's index grows at its end, which
    /// keeps writes small.
    #[must_use]
    pub fn drawn(tree: TreeId, at: Seq, now: Time, draw: u64) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"spinney checkpoint 1\0").update(tree.bytes());
        hasher.update(&at.0.to_le_bytes()).update(&draw.to_le_bytes());
        let mut text = [b'0'; 19];
        let (mut rest, base) = (now.0, BASE36.len() as u64);
        for digit in text[..8].iter_mut().rev() {
            *digit = BASE36[(rest % base) as usize];
            rest /= base;
        }
        text[8] = b'-';
        for (digit, hex) in text[9..].iter_mut().zip(hasher.finalize().to_hex().bytes()) {
            *digit = hex;
        }
        Self(String::from_utf8_lossy(&text).into())
    }
}

impl BlobHash {
    #[must_use]
    pub fn digest(bytes: &[u8]) -> Self {
        Self(blake3::hash(bytes).to_hex().as_str().into())
    }
}

impl ThreadId {
    /// The default thread of a tree: the tree's own id.
    #[must_use]
    pub fn of_tree(tree: TreeId) -> Self {
        Self(tree.to_string().into())
    }
}

/// A call's number in its tree: model calls, tool calls, waits and questions share one count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(pub u64);

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// A timer's number in its tree; the first is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TimerId(NonZeroU64);

impl TimerId {
    /// The id of the timer after `count` others.
    #[must_use]
    pub const fn after(count: u64) -> Self {
        Self(NonZeroU64::MIN.saturating_add(count))
    }

    #[must_use]
    pub const fn number(self) -> u64 {
        self.0.get()
    }
}

/// An event's position in its tree's journal; the first is 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seq(pub u64);

/// Ids are ASCII.
fn shortened(text: &str, bytes_max: usize) -> &str {
    text.get(..bytes_max).unwrap_or(text)
}

fn is_slug_64(text: &str) -> bool {
    is_slug(text, 64)
}

fn is_slug_48(text: &str) -> bool {
    is_slug(text, 48)
}

fn is_server_name(text: &str) -> bool {
    (1..=32).contains(&text.len())
        && text.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric)
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
        && !text.contains("__")
        && !text.ends_with('_')
}

fn is_slug(text: &str, max: usize) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    (1..=max).contains(&text.len())
        && text.as_bytes().first().copied().is_some_and(plain)
        && text.bytes().all(|b| plain(b) || matches!(b, b'_' | b'-'))
}

fn is_value_name(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text.as_bytes().first().is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

fn is_value_pattern(text: &str) -> bool {
    match text.strip_suffix('*') {
        Some(beginning) => beginning.is_empty() || is_value_name(beginning),
        None => is_value_name(text),
    }
}

fn is_media_type(text: &str) -> bool {
    let word = |word: &str| {
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        word.as_bytes().first().copied().is_some_and(plain)
            && word.bytes().all(|b| plain(b) || matches!(b, b'.' | b'+' | b'-'))
    };
    text.len() <= 100 && text.split_once('/').is_some_and(|(kind, of)| word(kind) && word(of))
}

/// Appears inside a line that a model reads.
fn is_part_name(text: &str) -> bool {
    is_printed(text) && !matches!(text, "." | "..") && !text.contains(['/', '\\'])
}

fn is_source_name(text: &str) -> bool {
    let is_plain = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-');
    let bytes = text.as_bytes();
    (1..=64).contains(&bytes.len()) && bytes.iter().all(is_plain) && bytes[0].is_ascii_alphanumeric()
}

fn is_output_path(text: &str) -> bool {
    text.len() <= limit::FILE_PATH_BYTES_MAX
        && text.split('/').count() < limit::FILE_PATH_NAMES_MAX
        && text.split('/').all(is_file_name)
}

/// The root of the machine is not one: it contains everything that must not be granted.
fn is_folder_path(text: &str) -> bool {
    let Some(names) = text.strip_prefix('/') else { return false };
    text.len() <= limit::FOLDER_PATH_BYTES_MAX
        && names.split('/').count() <= limit::FOLDER_PATH_NAMES_MAX
        && names.split('/').all(|name| !matches!(name, "" | "." | ".."))
        && is_printed(names)
        && !names.contains(is_hostile)
}

/// Whether a file or folder of an agent may have this name.
#[must_use]
pub fn is_file_name(name: &str) -> bool {
    let is_edge = |c: Option<char>| c.is_some_and(|c| !matches!(c, '.' | ' '));
    (1..=limit::NAME_BYTES_MAX).contains(&name.len())
        && name.chars().all(|c| c.is_alphanumeric() || "._-+=@,() ".contains(c))
        && is_edge(name.chars().next())
        && is_edge(name.chars().next_back())
}

/// Appears inside a line that people read.
fn is_actor_name(text: &str) -> bool {
    is_printed(text) && !text.contains(is_hostile)
}

/// Whether a text can stand inside a line and look like what it is: it has no line breaks and no marks of direction.
fn is_printed(text: &str) -> bool {
    let hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    (1..=128).contains(&text.len()) && text.trim() == text && !text.contains(hidden)
}

fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_session(text: &str) -> bool {
    is_label(text) && !text.contains([':', '/'])
}

fn is_label(text: &str) -> bool {
    (1..=128).contains(&text.len())
        && text.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric)
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'/' | b'-'))
}
