//! What an approval that is remembered covers: the subject of a tool's calls, which is the text that matters about one, and
//! a pattern over it that a person has seen. Plain text and nothing else: what a pattern covers can be read off it.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::arguments;
use crate::primitives::HostRule;

/// Characters that a star does not stand for: with them a shell starts something else.
const NOT_IN_STAR: [char; 7] = [';', '|', '&', '<', '>', '$', '`'];

/// An argument of commands that can hold a program of any kind: a command with it is more than its line.
const INPUT: &str = "stdin";

/// Which argument of a tool is the subject of its calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolSubject {
    pub argument: String,
    pub kind: SubjectKind,
}

/// What a subject is, which decides how much of it is offered to be remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubjectKind {
    /// A path: its folder is offered.
    Path,
    /// A command, as a line or as a list of words: its program is offered with the first word after it, if that is plain.
    Command,
}

/// Which subjects an approval covers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubjectPattern {
    /// This one.
    Exact(String),
    /// Every one that begins like this and continues without characters that a shell reads as more than a word.
    Beginning(String),
    /// These hosts, for calls of a tool that connect to hosts beside those of their agent.
    Hosts(BTreeSet<HostRule>),
}

/// For whom an approval is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalScope {
    /// The agent that asked.
    Agent,
    /// Every agent of its tree.
    Tree,
}

/// An approval that counts for later calls as well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RememberedApproval {
    pub scope: ApprovalScope,
    pub pattern: SubjectPattern,
}

impl ApprovalScope {
    /// As people write it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "this agent",
            Self::Tree => "this tree",
        }
    }
}

impl ToolSubject {
    #[must_use]
    pub fn path(argument: &str) -> Self {
        Self { argument: argument.to_owned(), kind: SubjectKind::Path }
    }

    #[must_use]
    pub fn command(argument: &str) -> Self {
        Self { argument: argument.to_owned(), kind: SubjectKind::Command }
    }

    /// The subject of a call: its argument as text, a list as the words of a shell. `None` if it is missing, given twice,
    /// or something else, and for a command that is given its input.
    #[must_use]
    pub fn of_call(&self, args: &str) -> Option<String> {
        let mut values = arguments::values(args, &self.argument)?;
        let is_more = self.kind == SubjectKind::Command && !arguments::values(args, INPUT)?.is_empty();
        match values.pop().filter(|_| values.is_empty() && !is_more) {
            Some(Value::String(text)) => Some(text),
            Some(Value::Array(words)) => {
                let words: Option<Vec<String>> = words.iter().map(|word| word.as_str().map(quoted)).collect();
                words.map(|words| words.join(" "))
            }
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => None,
        }
    }
}

impl SubjectPattern {
    /// The widest pattern that a person is offered for a call.
    #[must_use]
    pub fn offered(kind: Option<SubjectKind>, subject: &str) -> Self {
        let beginning = match kind {
            Some(SubjectKind::Path) => subject.rfind('/').map(|end| &subject[..=end]),
            Some(SubjectKind::Command) => plain_command(subject),
            None => None,
        };
        let wider = beginning.map(|beginning| Self::Beginning(beginning.to_owned()));
        wider.filter(|wider| wider.covers(subject)).unwrap_or_else(|| Self::Exact(subject.to_owned()))
    }

    /// Whether it covers a subject.
    #[must_use]
    pub fn covers(&self, subject: &str) -> bool {
        match self {
            Self::Exact(exact) => exact == subject,
            Self::Beginning(beginning) => {
                subject.strip_prefix(beginning.as_str()).is_some_and(is_in_star)
                    && !subject.split('/').any(|name| name == "..")
            }
            Self::Hosts(_) => false,
        }
    }

    /// The hosts that it names.
    pub fn hosts(&self) -> impl Iterator<Item = &HostRule> {
        match self {
            Self::Hosts(hosts) => Some(hosts),
            Self::Exact(_) | Self::Beginning(_) => None,
        }
        .into_iter()
        .flatten()
    }

    /// Whether it covers everything that another one covers.
    #[must_use]
    pub fn covers_all_of(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Hosts(wide), Self::Hosts(narrow)) => narrow.is_subset(wide),
            (Self::Exact(_), Self::Beginning(_)) | (Self::Hosts(_), _) | (_, Self::Hosts(_)) => false,
            (_, Self::Exact(exact)) => self.covers(exact),
            (Self::Beginning(wide), Self::Beginning(narrow)) => {
                narrow.strip_prefix(wide.as_str()).is_some_and(is_in_star)
            }
        }
    }

    /// Its bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Exact(text) | Self::Beginning(text) => text.len(),
            Self::Hosts(hosts) => hosts.iter().map(|rule| rule.to_string().len()).sum(),
        }
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A beginning ends with a star. A star at the end of an exact text has a backslash before it. Hosts are a list.
impl fmt::Display for SubjectPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Beginning(text) => write!(f, "{text}*"),
            Self::Exact(text) => match text.strip_suffix('*') {
                Some(text) => write!(f, "{text}\\*"),
                None => f.write_str(text),
            },
            Self::Hosts(hosts) => {
                for (at, rule) in hosts.iter().enumerate() {
                    let gap = if at == 0 { "" } else { ", " };
                    write!(f, "{gap}{rule}")?;
                }
                Ok(())
            }
        }
    }
}

/// A text that is not a pattern over texts. There is none: every text is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotPattern {}

impl FromStr for SubjectPattern {
    type Err = NotPattern;

    fn from_str(text: &str) -> Result<Self, NotPattern> {
        Ok(match (text.strip_suffix("\\*"), text.strip_suffix('*')) {
            (Some(text), _) => Self::Exact(format!("{text}*")),
            (None, Some(text)) => Self::Beginning(text.to_owned()),
            (None, None) => Self::Exact(text.to_owned()),
        })
    }
}

/// Whether a star stands for this.
fn is_in_star(text: &str) -> bool {
    !text.chars().any(|c| c.is_control() || NOT_IN_STAR.contains(&c))
}

/// Whether a person sees all of a text on one line: no line breaks, and nothing that hides or turns around what is beside
/// it.
pub(super) fn is_visible(text: &str) -> bool {
    let is_hiding = |c| matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}');
    !text.chars().any(|c| c.is_control() || is_hiding(c))
}

/// The program of a command with the word after it, if both are plain: `git status` of `git status -s`.
fn plain_command(command: &str) -> Option<&str> {
    let is_plain = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_alphabetic())
            && word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
    };
    let (program, rest) = command.split_once(' ')?;
    let word = rest.split(' ').next().unwrap_or_default();
    (is_plain(program) && is_plain(word)).then(|| &command[..program.len() + 1 + word.len()])
}

/// A word as a shell reads it back.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> SubjectPattern {
        let Ok(pattern) = text.parse();
        pattern
    }

    #[test]
    fn the_subject_of_a_call_is_its_argument_and_never_an_ambiguous_one() {
        let (path, command) = (ToolSubject::path("path"), ToolSubject::command("command"));
        assert_eq!(path.of_call(r#"{"text": "x", "path": "a\u002fb"}"#).as_deref(), Some("a/b"));
        assert_eq!(path.of_call(r#"{"path": "a", "path": "b"}"#), None);
        assert_eq!(path.of_call(r#"{"file": "a"}"#), None);
        assert_eq!(path.of_call(r#"{"path": 7}"#), None);
        assert_eq!(path.of_call("[1]"), None);
        assert_eq!(command.of_call(r#"{"command": "git status"}"#).as_deref(), Some("git status"));
        let list = r#"{"command": ["git", "log", "a b", "it's", ""]}"#;
        assert_eq!(command.of_call(list).as_deref(), Some(r"git log 'a b' 'it'\''s' ''"));
        assert_eq!(command.of_call(r#"{"command": ["git", 1]}"#), None);
        assert_eq!(command.of_call(r#"{"command": "sh", "stdin": "rm -rf ."}"#), None, "the input decides");
        assert_eq!(path.of_call(r#"{"path": "a", "stdin": ""}"#).as_deref(), Some("a"));
    }

    #[test]
    fn what_is_offered_is_a_folder_or_a_plain_command_or_the_call_itself() {
        let offered = |kind, subject: &str| SubjectPattern::offered(kind, subject).to_string();
        let (path, command) = (Some(SubjectKind::Path), Some(SubjectKind::Command));
        for (kind, subject, expected) in [
            (path, "outputs/notes/a.md", "outputs/notes/*"),
            (path, "a.md", "a.md"),
            (path, "outputs/../a.md", "outputs/../a.md"),
            (path, "outputs/*", r"outputs/*"),
            (command, "git status -s", "git status*"),
            (command, "git status", "git status*"),
            (command, "git -C / status", "git -C / status"),
            (command, "git status; rm -rf /", "git status; rm -rf /"),
            (command, "ls", "ls"),
            (command, "./x.sh now", "./x.sh now"),
            (command, "rm *", r"rm \*"),
            (None, r#"{"a": 1}"#, r#"{"a": 1}"#),
        ] {
            assert_eq!(offered(kind, subject), expected, "{subject}");
        }
    }

    #[test]
    fn a_star_stands_for_no_second_command_and_leads_to_no_other_folder() {
        let status = pattern("git status*");
        for covered in ["git status", "git status -s", "git status --short src"] {
            assert!(status.covers(covered), "{covered}");
        }
        for not in [
            "git statu",
            "git push",
            "git status; rm x",
            "git status && rm x",
            "git status | sh",
            "git status > x",
            "git status $(rm x)",
            "git status `rm x`",
            "git status\nrm x",
            "git status ../../x/../y",
        ] {
            assert!(!status.covers(not), "{not}");
        }
        assert!(!pattern("outputs/*").covers("outputs/../history/x"));
        assert!(!pattern("outputs/..*").covers("outputs/../x"));
        assert!(pattern(r"rm \*").covers("rm *"));
        assert!(!pattern(r"rm \*").covers("rm x"));
    }
}
