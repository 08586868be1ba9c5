//! `box`: what surrounds the commands of agents. What a role says comes before what the file says, key by key.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use spinney_kernel::definition::{BoxSpec, BoxWalls, ByteSize, Count, Definition};
use spinney_kernel::primitives::limit;

use super::TreeFile;
use super::definition::{Path, Reader};
use super::error::FileError;
use super::keys::{BoxKeys, WrittenBox};
use super::node::Step;
use super::problem::FileProblem;

/// A command needs itself, and something to start.
const PROCESSES: RangeInclusive<u64> = 1..=1_000_000;
/// Less than this starts no program.
const MEMORY_MIN: u64 = 1 << 20;

impl Reader<'_> {
    /// The box of a role.
    pub(super) fn sandbox(&self, written: Option<&WrittenBox>) -> BoxSpec {
        let file = self.keys.sandbox.as_ref().map(ReadBox::new).unwrap_or_default();
        written.map(ReadBox::new).unwrap_or_default().over(file).spec()
    }

    /// What is wrong with the boxes of the file and of its agents.
    pub(super) fn check_box(&self) {
        if let Some(WrittenBox::Keys(keys)) = &self.keys.sandbox {
            self.check_keys(&[Step::Key("box")], keys);
        }
        for (name, agent) in &self.keys.agents {
            if let Some(WrittenBox::Keys(keys)) = &agent.sandbox {
                self.check_keys(&[Step::Key("agents"), Step::Key(name.as_str()), Step::Key("box")], keys);
            }
        }
    }

    fn check_keys(&self, path: Path<'_>, keys: &BoxKeys) {
        let at = |key| path.iter().copied().chain([Step::Key(key)]).collect::<Vec<_>>();
        self.noted(self.bounded(&at("processes"), keys.processes, PROCESSES));
        if keys.memory.is_some_and(|size| size.bytes() < MEMORY_MIN) {
            let error = self.wrong(&at("memory"), "`memory` is too small for any program");
            self.note(error.with_help("write at least 1MiB"));
        }
        let env = keys.env.as_deref().unwrap_or_default();
        self.noted(self.few(&at("env"), env.len()));
        for (index, name) in env.iter().enumerate() {
            let place: Vec<Step<'_>> = at("env").into_iter().chain([Step::Item(index)]).collect();
            if let Some((message, help)) = bad_variable(name) {
                self.note(self.wrong(&place, message).with_help(help));
            }
        }
    }
}

/// The keys that were written.
#[derive(Clone, Default)]
struct ReadBox {
    processes: Option<u64>,
    memory_bytes: Option<u64>,
    disk_bytes: Option<u64>,
    env: Option<BTreeSet<String>>,
    walls: Option<BoxWalls>,
    /// Whether there is a box at all.
    has_keys: bool,
}

impl ReadBox {
    fn new(written: &WrittenBox) -> Self {
        let keys = match written {
            WrittenBox::None => return Self { walls: Some(BoxWalls::None), ..Self::default() },
            WrittenBox::Keys(keys) => keys,
        };
        let walls = keys.allow.as_ref().map(|allow| match allow.is_empty() {
            true => BoxWalls::Whole,
            false => BoxWalls::OpenToSignals,
        });
        Self {
            processes: keys.processes.map(Count::count),
            memory_bytes: keys.memory.map(ByteSize::bytes),
            disk_bytes: keys.disk.map(ByteSize::bytes),
            env: keys.env.as_ref().map(|names| names.iter().cloned().collect()),
            walls,
            has_keys: true,
        }
    }

    fn over(self, other: Self) -> Self {
        Self {
            processes: self.processes.or(other.processes),
            memory_bytes: self.memory_bytes.or(other.memory_bytes),
            disk_bytes: self.disk_bytes.or(other.disk_bytes),
            env: self.env.or(other.env),
            // With keys of its own a role has a box, also in a file that has none.
            walls: self.walls.or(other.walls.filter(|walls| *walls != BoxWalls::None || !self.has_keys)),
            has_keys: self.has_keys || other.has_keys,
        }
    }

    fn spec(self) -> BoxSpec {
        BoxSpec {
            processes: self.processes,
            memory_bytes: self.memory_bytes,
            disk_bytes: self.disk_bytes,
            env: self.env.unwrap_or_default(),
            walls: self.walls.unwrap_or_default(),
        }
    }
}

/// Variables that a box sets itself, or that change which program runs.
const OURS: [&str; 3] = ["HOME", "LD_PRELOAD", "LD_LIBRARY_PATH"];

/// What is wrong with the name of a variable, and what to do.
fn bad_variable(name: &str) -> Option<(String, &'static str)> {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let shown: String = name.chars().take(40).collect();
    let is_name = (1..=limit::NAME_BYTES_MAX).contains(&name.len())
        && name.chars().all(is_letter)
        && !name.starts_with(|c: char| c.is_ascii_digit());
    if !is_name {
        let help = "write the name alone: letters, digits and `_`; its value comes from the environment";
        return Some((format!("`{shown}` cannot be the name of a variable"), help));
    }
    OURS.contains(&name).then(|| (format!("`{name}` is set by the box itself"), "leave it out"))
}

impl TreeFile {
    /// Roles that could start agents in a weaker box than their own.
    pub(super) fn weaker_boxes(&self, definition: &Definition) -> Vec<FileProblem> {
        let weaker = definition.weaker_boxes_below().into_iter();
        let error = weaker.map(|weaker| {
            let path = [Step::Key("agents"), Step::Key(weaker.below.as_str()), Step::Key("box")];
            let help = format!(
                "boxes only get stronger downwards: give `{0}` the same `box`, or leave `{1}` out of its `subagents`",
                weaker.above, weaker.below
            );
            FileError::new(&self.file, self.root.place_of(&path), weaker.to_string()).with_help(help)
        });
        error.map(FileProblem::error).collect()
    }
}
