//! Secrets in what a journal would keep: words that look like a provider's key, and values of variables that hold secrets.
//! They are looked for before a tree starts, because what a journal has once cannot be taken back.

use std::fmt;

use spinney::redaction::Redactor;
use spinney_drivers::wire::Secrets;

/// Shorter values of variables are ordinary words.
const VALUE_BYTES_MIN: usize = 8;

/// The secrets that are looked for.
#[derive(Default)]
pub struct SecretScan {
    /// Each with its variable.
    values: Vec<(String, Secrets)>,
}

/// A secret where a journal would keep it. It never shows the secret itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place} contains {what}, which the journal would keep: {}", place.remedy())]
pub struct FoundSecret {
    /// The place.
    pub place: SecretPlace,
    /// What it is.
    pub what: SecretKind,
}

/// What a secret was recognised by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretKind {
    /// It begins and looks like a provider's key.
    KeyShape,
    /// It is the value of this variable.
    Value(String),
}

/// Where a secret is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretPlace {
    /// In a tree file or a script.
    Line {
        /// The file, as it was named.
        file: String,
        /// Its line, from 1 on.
        line: usize,
    },
    /// In the goal that was given.
    Goal,
    /// In the value of this input.
    Input(String),
    /// In the value of this tag.
    Tag(String),
    /// In an argument of a program, from 1 on; 0 is its name.
    Argument(usize),
}

impl SecretPlace {
    const fn remedy(&self) -> &'static str {
        match self {
            Self::Line { .. } => "remove it, and name a variable that has it, with `key_env` or in `headers`",
            Self::Goal | Self::Input(_) => "remove it: models would read it as well",
            Self::Tag(_) => "remove it: every event that is shown has the tags of its tree",
            Self::Argument(_) => "pass it in the environment",
        }
    }
}

impl fmt::Display for SecretPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { file, line } => write!(f, "{}:{line}", file.escape_debug()),
            Self::Goal => f.write_str("the given goal"),
            Self::Input(name) => write!(f, "input `{}`", name.escape_debug()),
            Self::Tag(name) => write!(f, "tag `{}`", name.escape_debug()),
            Self::Argument(0) => f.write_str("the name of the program"),
            Self::Argument(number) => write!(f, "argument {number} of the program"),
        }
    }
}

impl fmt::Display for SecretKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KeyShape => f.write_str("what looks like a key"),
            Self::Value(variable) => write!(f, "the value of {}", variable.escape_debug()),
        }
    }
}

impl SecretScan {
    /// Looks for the values of these variables as well, if they are long enough to be told from ordinary words.
    #[must_use]
    pub fn new(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let long = variables.into_iter().filter(|(_, value)| value.len() >= VALUE_BYTES_MIN);
        Self { values: long.map(|(variable, value)| (variable, Secrets::new([value]))).collect() }
    }

    /// # Errors
    /// The first secret in the text of a file.
    pub fn check_file(&self, file: &str, text: &str) -> Result<(), FoundSecret> {
        match self.find(text) {
            None => Ok(()),
            Some((at, what)) => {
                let line = text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
                Err(FoundSecret { place: SecretPlace::Line { file: file.to_owned(), line }, what })
            }
        }
    }

    /// # Errors
    /// A secret in a text that was given.
    pub fn check_given(&self, place: SecretPlace, text: &str) -> Result<(), FoundSecret> {
        self.find(text).map_or(Ok(()), |(_, what)| Err(FoundSecret { place, what }))
    }

    fn find(&self, text: &str) -> Option<(usize, SecretKind)> {
        let values = self.values.iter().filter_map(|(variable, value)| {
            Some((value.first_in(text.as_bytes())?, SecretKind::Value(variable.clone())))
        });
        let shape = Redactor::default().first_in(text.as_bytes()).map(|(at, _)| (at, SecretKind::KeyShape));
        values.chain(shape).min_by_key(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan() -> SecretScan {
        let variables = [("TOKEN", "hunter2-hunter2"), ("SHORT", "hunter2")];
        SecretScan::new(variables.map(|(name, value)| (name.to_owned(), value.to_owned())))
    }

    #[test]
    fn a_secret_is_found_with_its_line_and_never_shown() {
        for (text, found) in [
            ("a: 1\nb: sk-ant-api03-AbCdEfGhIjKlMnOp12\n", "t.yaml:2 contains what looks like a key"),
            ("'AIzaSyA1234567890abcdefghi'", "t.yaml:1 contains what looks like a key"),
            ("x\n\nheaders: { a: hunter2-hunter2 }", "t.yaml:3 contains the value of TOKEN"),
            ("aHVudGVyMi1odW50ZXIy", "t.yaml:1 contains the value of TOKEN"),
            ("{\"a\":\"hunter2\\u002dhunter2\"}", "t.yaml:1 contains the value of TOKEN"),
            ("sk-1234567890abcdef\nhunter2-hunter2", "t.yaml:1 contains what looks like a key"),
        ] {
            let error = scan().check_file("t.yaml", text).unwrap_err().to_string();
            assert!(error.starts_with(found), "{error}");
            assert!(
                !error.contains("hunter") && !error.contains("sk-") && !error.contains("AIza"),
                "{error}"
            );
        }
        for text in
            ["", "hunter2", "sk-first-second-third-fourth", "task-12345678901234", "AIza", "hf_llama_3_8b_it"]
        {
            assert_eq!(scan().check_file("t.yaml", text), Ok(()), "{text}");
        }
    }
}
