//! The program that an agent is, in place of a model: a known one, or a command with one place for the task.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    BoxSpec, CommandFillError, CommandTemplate, CommandTemplateError, OutputLimits, Refusal, check_text,
};
use crate::primitives::{FolderPath, limit};

/// The name of the place in a command.
const GOAL: &str = "goal";

/// An agent's program and what surrounds it. It is one attempt: it is never started a second time by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramSpec {
    pub command: ProgramCommand,
    /// What every task begins with.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prompt: String,
    /// How long a model call of the program waits at a ceiling before it is refused; has a default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub halt_wait_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "OutputLimits::is_default")]
    pub outputs: OutputLimits,
    #[serde(default, rename = "box", skip_serializing_if = "BoxSpec::is_default")]
    pub sandbox: BoxSpec,
    /// The repository that each agent has a copy of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_copy: Option<FolderPath>,
}

/// What is started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ProgramCommand {
    Known(KnownProgram),
    /// A list of arguments in which one word is the task. No shell reads it.
    Words(CommandTemplate),
}

/// A program whose options and output are known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KnownProgram {
    Claude,
    Codex,
    Opencode,
}

/// Why a list of words is not the command of a program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramCommandError {
    #[error(transparent)]
    Command(#[from] CommandTemplateError),
    #[error("no word of the command is `{{{{ goal }}}}`")]
    NoGoal,
    #[error("`{{{{ goal }}}}` fills exactly one word, alone")]
    NotAlone { word: usize },
    #[error("`{{{{ {name} }}}}` has no value here: the only place is `{{{{ goal }}}}`")]
    UnknownPlace { word: usize, name: String },
}

impl ProgramCommandError {
    /// The word that is wrong, if it is one.
    #[must_use]
    pub const fn word(&self) -> Option<usize> {
        match self {
            Self::Command(error) => error.word(),
            Self::NoGoal => None,
            Self::NotAlone { word } | Self::UnknownPlace { word, .. } => Some(*word),
        }
    }
}

impl KnownProgram {
    pub const ALL: [Self; 3] = [Self::Claude, Self::Codex, Self::Opencode];

    /// The name of its file.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Opencode => "opencode",
        }
    }
}

impl ProgramCommand {
    /// A command in which one word, alone, is `{{ goal }}`.
    ///
    /// # Errors
    /// What is wrong with which word.
    pub fn words<W: AsRef<str>>(words: &[W]) -> Result<Self, ProgramCommandError> {
        let command = CommandTemplate::new(words)?;
        check_places(&command)?;
        Ok(Self::Words(command))
    }

    /// What is started, for people and for what a user allows: without the task. Words are quoted as for a shell where they
    /// could be taken for others, so two commands never look the same.
    #[must_use]
    pub fn shown(&self) -> String {
        match self {
            Self::Known(known) => known.as_str().to_owned(),
            Self::Words(command) => {
                let words = Vec::<String>::from(command.clone());
                words.iter().map(|word| shown_word(word)).collect::<Vec<_>>().join(" ")
            }
        }
    }

    /// The words of a command with this task.
    ///
    /// # Errors
    /// If the task cannot be a word of a command, or would be read as an option.
    pub fn fill(command: &CommandTemplate, task: &str) -> Result<Vec<String>, CommandFillError> {
        let task: Map<String, Value> = [(GOAL.to_owned(), Value::from(task))].into_iter().collect();
        command.fill(&task)
    }

    fn check(&self) -> Result<(), ProgramCommandError> {
        match self {
            Self::Known(_) => Ok(()),
            Self::Words(command) => check_places(command),
        }
    }
}

fn shown_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-=:,@+%".contains(c);
    // The one place of the task, or a word that can be nothing else.
    let is_goal = word
        .strip_prefix("{{")
        .and_then(|word| word.strip_suffix("}}"))
        .is_some_and(|key| key.trim() == GOAL);
    if is_goal || (!word.is_empty() && word.chars().all(is_plain)) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn check_places(command: &CommandTemplate) -> Result<(), ProgramCommandError> {
    let mut places = command.arguments();
    let (word, name) = places.next().ok_or(ProgramCommandError::NoGoal)?;
    let unknown = |word, name: &str| ProgramCommandError::UnknownPlace { word, name: name.to_owned() };
    if name != GOAL {
        return Err(unknown(word, name));
    }
    match places.next() {
        Some((word, name)) if name != GOAL => return Err(unknown(word, name)),
        Some((word, _)) => return Err(ProgramCommandError::NotAlone { word }),
        None if command.is_place(word) => {}
        None => return Err(ProgramCommandError::NotAlone { word }),
    }
    Ok(())
}

impl fmt::Display for ProgramCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown())
    }
}

impl ProgramSpec {
    /// A program in a whole box, with the default limits.
    #[must_use]
    pub fn new(command: ProgramCommand) -> Self {
        Self {
            command,
            prompt: String::new(),
            halt_wait_ms: None,
            outputs: OutputLimits::default(),
            sandbox: BoxSpec::default(),
            working_copy: None,
        }
    }

    /// How long a model call of the program waits at a ceiling.
    #[must_use]
    pub fn halt_wait_ms(&self) -> u64 {
        self.halt_wait_ms.unwrap_or(limit::HALT_WAIT_MS)
    }

    pub(super) fn check(&self) -> Result<(), Refusal> {
        self.command.check().map_err(|error| Refusal::BadProgram { reason: error.to_string() })?;
        check_text("prompt", &self.prompt, limit::TEXT_BYTES_MAX)?;
        self.sandbox.check()?;
        match self.halt_wait_ms {
            Some(ms) if ms > limit::TIMEOUT_MS_MAX => {
                Err(Refusal::BadTimeout { ms, ms_max: limit::TIMEOUT_MS_MAX })
            }
            Some(_) | None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_task_fills_exactly_one_word_of_a_command() {
        let words = |words: &[&str]| ProgramCommand::words(words);
        assert!(words(&["agent", "--task", "{{ goal }}"]).is_ok());
        assert!(words(&["agent", "--", "{{goal}}"]).is_ok());
        for (wrong, word) in [
            (&["agent"][..], None),
            (&["agent", "--task={{ goal }}"], Some(1)),
            (&["agent", "{{ goal }} now"], Some(1)),
            (&["agent", "{{ goal }}", "{{ goal }}"], Some(2)),
            (&["agent", "{{ goal }}{{ goal }}"], Some(1)),
            (&["agent", "{{ goal }}", "{{ key }}"], Some(2)),
            (&["agent", "{{ task }}"], Some(1)),
            (&["{{ goal }}"], Some(0)),
            (&["sh", "-c", "{{ goal }}"], Some(2)),
            (&[], None),
        ] {
            assert_eq!(words(wrong).unwrap_err().word(), word, "{wrong:?}");
        }
    }

    #[test]
    fn a_task_is_never_read_as_an_option() {
        let ProgramCommand::Words(command) = ProgramCommand::words(&["agent", "{{ goal }}"]).unwrap() else {
            panic!("they are words")
        };
        let error = ProgramCommand::fill(&command, "--yes").unwrap_err();
        assert_eq!(error, CommandFillError::Option { name: GOAL.to_owned() });
        assert_eq!(ProgramCommand::fill(&command, "a; b").unwrap(), ["agent", "a; b"]);
        let ProgramCommand::Words(command) = ProgramCommand::words(&["agent", "--", "{{ goal }}"]).unwrap()
        else {
            panic!("they are words")
        };
        assert_eq!(ProgramCommand::fill(&command, "--yes").unwrap(), ["agent", "--", "--yes"]);
    }

    #[test]
    fn a_command_is_written_as_it_is_read() {
        for written in [r#""claude""#, r#"["agent","--task","{{ goal }}"]"#] {
            let command: ProgramCommand = serde_json::from_str(written).unwrap();
            assert_eq!(serde_json::to_string(&command).unwrap(), written);
        }
    }
}
