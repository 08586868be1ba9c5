//! The command of a tool that a tree file defines: words with places for arguments of the call, `{{ name }}`. A value
//! stays within the word that has its place, and no shell reads it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::primitives::limit::{COMMAND_WORD_BYTES_MAX, COMMAND_WORDS_MAX};

/// Programs that read their argument after `-c` as a program.
const SHELLS: [&str; 7] = ["sh", "bash", "dash", "zsh", "ksh", "ash", "fish"];
const OPEN: &str = "{{";
const CLOSE: &str = "}}";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct CommandTemplate(Vec<Word>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Word(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Argument(String),
}

/// Why a command cannot be one. `word` counts from 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandTemplateError {
    #[error("the command is empty")]
    Empty,
    #[error("a command has at most {COMMAND_WORDS_MAX} words")]
    TooManyWords,
    #[error("the word has more than {COMMAND_WORD_BYTES_MAX} bytes")]
    LongWord { word: usize },
    #[error("the word contains a zero byte")]
    ZeroByte { word: usize },
    #[error("`{{{{` has no `}}}}`")]
    Unclosed { word: usize },
    #[error("`{{{{ {name} }}}}` is not the name of an argument")]
    BadName { word: usize, name: String },
    #[error("the program itself cannot be an argument of the call")]
    Program,
    #[error("a shell would run what `{{{{ {name} }}}}` is replaced by")]
    Shell { word: usize, name: String },
}

/// Why a call does not fill a command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandFillError {
    #[error("`{name}` may not begin with `-`: the command would read it as an option")]
    Option { name: String },
    #[error("`{name}` contains a zero byte")]
    ZeroByte { name: String },
    #[error("`{name}` is too long for a command: at most {COMMAND_WORD_BYTES_MAX} bytes")]
    TooLong { name: String },
}

impl CommandTemplateError {
    /// The word that is wrong, if it is one.
    #[must_use]
    pub const fn word(&self) -> Option<usize> {
        match self {
            Self::Empty | Self::TooManyWords => None,
            Self::LongWord { word }
            | Self::ZeroByte { word }
            | Self::Unclosed { word }
            | Self::BadName { word, .. }
            | Self::Shell { word, .. } => Some(*word),
            Self::Program => Some(0),
        }
    }
}

impl CommandTemplate {
    /// # Errors
    /// If it has no program, or a word cannot be read.
    pub fn new<W: AsRef<str>>(words: &[W]) -> Result<Self, CommandTemplateError> {
        if words.len() > COMMAND_WORDS_MAX {
            return Err(CommandTemplateError::TooManyWords);
        }
        let words = words.iter().enumerate().map(|(word, text)| Word::new(word, text.as_ref()));
        let words = words.collect::<Result<Vec<_>, _>>()?;
        match words.first() {
            None => Err(CommandTemplateError::Empty),
            Some(program) if program.0.is_empty() => Err(CommandTemplateError::Empty),
            Some(program) if program.arguments().next().is_some() => Err(CommandTemplateError::Program),
            Some(_) => Self(words).without_code(),
        }
    }

    /// Refuses a place in what a shell reads as a program: a value could be anything there.
    fn without_code(self) -> Result<Self, CommandTemplateError> {
        let mut words = self.0.iter().enumerate();
        let is_shell = |word: &Word| {
            word.fixed().is_some_and(|text| SHELLS.contains(&text.rsplit('/').next().unwrap_or(text)))
        };
        // Not only the first: `env sh -c`, `timeout 5 sh -c`.
        if words.any(|(_, word)| is_shell(word)) {
            let is_command = |word: &Word| {
                word.fixed().is_some_and(|text| {
                    text.starts_with('-') && !text.starts_with("--") && text.contains('c')
                })
            };
            // More options may stand before what it reads.
            let is_option = |word: &Word| word.fixed().is_some_and(|text| text.starts_with(['-', '+']));
            let code = words
                .find(|(_, word)| is_command(word))
                .and_then(|_| words.find(|(_, word)| !is_option(word)));
            if let Some((word, name)) = code.and_then(|(at, word)| Some((at, word.arguments().next()?))) {
                return Err(CommandTemplateError::Shell { word, name: name.to_owned() });
            }
        }
        Ok(self)
    }

    /// The arguments that have a place, with the word that has it; some more than once.
    pub fn arguments(&self) -> impl Iterator<Item = (usize, &str)> {
        self.0.iter().enumerate().flat_map(|(at, word)| word.arguments().map(move |name| (at, name)))
    }

    /// Whether a word is a place and nothing else.
    pub(super) fn is_place(&self, word: usize) -> bool {
        self.0.get(word).is_some_and(|word| matches!(word.0.as_slice(), [Piece::Argument(_)]))
    }

    /// The words without a place.
    pub fn fixed_words(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(Word::fixed)
    }

    /// What is before the first place in each word that has one.
    pub fn beginnings(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|word| match word.0.as_slice() {
            [Piece::Text(text), _, ..] => Some(text.as_str()),
            _ => None,
        })
    }

    /// The same with other words where there is no place: `change` may replace each, such as by the whole path of a file.
    #[must_use]
    pub fn with_fixed_words(mut self, change: impl Fn(&str) -> Option<String>) -> Self {
        for word in &mut self.0 {
            if let [Piece::Text(text)] = word.0.as_mut_slice()
                && let Some(changed) = change(text)
            {
                *text = changed;
            }
        }
        self
    }

    /// The command of a call with these arguments. A word with a place whose argument is absent or null is left out; a value
    /// that is not text is written as JSON.
    ///
    /// # Errors
    /// If a value cannot be a word, or would be read as an option.
    pub fn fill(&self, arguments: &Map<String, Value>) -> Result<Vec<String>, CommandFillError> {
        let mut filled = Vec::with_capacity(self.0.len());
        // After it a command reads no options, as is usual.
        let mut after_options = false;
        for word in &self.0 {
            if let Some(text) = word.fill(arguments, after_options)? {
                after_options |= text == "--" && word.arguments().next().is_none();
                filled.push(text);
            }
        }
        Ok(filled)
    }
}

impl Word {
    fn new(word: usize, text: &str) -> Result<Self, CommandTemplateError> {
        if text.len() > COMMAND_WORD_BYTES_MAX {
            return Err(CommandTemplateError::LongWord { word });
        }
        if text.contains('\0') {
            return Err(CommandTemplateError::ZeroByte { word });
        }
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once(OPEN) {
            let (name, after) = after.split_once(CLOSE).ok_or(CommandTemplateError::Unclosed { word })?;
            let name = name.trim();
            if name.is_empty() || name.contains(|c: char| c.is_whitespace() || c == '{' || c == '}') {
                return Err(CommandTemplateError::BadName { word, name: name.to_owned() });
            }
            if !before.is_empty() {
                pieces.push(Piece::Text(before.to_owned()));
            }
            pieces.push(Piece::Argument(name.to_owned()));
            rest = after;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.to_owned()));
        }
        Ok(Self(pieces))
    }

    /// The text of a word without a place.
    fn fixed(&self) -> Option<&str> {
        match self.0.as_slice() {
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }

    fn arguments(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Argument(name) => Some(name.as_str()),
            Piece::Text(_) => None,
        })
    }

    fn fill(
        &self,
        arguments: &Map<String, Value>,
        after_options: bool,
    ) -> Result<Option<String>, CommandFillError> {
        let mut filled = String::new();
        for piece in &self.0 {
            let name = match piece {
                Piece::Text(text) => {
                    filled.push_str(text);
                    continue;
                }
                Piece::Argument(name) => name,
            };
            let text = match arguments.get(name) {
                None | Some(Value::Null) => return Ok(None),
                Some(Value::String(text)) => {
                    if filled.is_empty() && text.starts_with('-') && !after_options {
                        return Err(CommandFillError::Option { name: name.clone() });
                    }
                    text.clone()
                }
                Some(other) => other.to_string(),
            };
            if text.contains('\0') {
                return Err(CommandFillError::ZeroByte { name: name.clone() });
            }
            filled.push_str(&text);
            if filled.len() > COMMAND_WORD_BYTES_MAX {
                return Err(CommandFillError::TooLong { name: name.clone() });
            }
        }
        Ok(Some(filled))
    }

    fn written(&self) -> String {
        let mut text = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(piece) => text.push_str(piece),
                Piece::Argument(name) => {
                    for part in [OPEN, " ", name, " ", CLOSE] {
                        text.push_str(part);
                    }
                }
            }
        }
        text
    }
}

impl TryFrom<Vec<String>> for CommandTemplate {
    type Error = CommandTemplateError;

    fn try_from(words: Vec<String>) -> Result<Self, CommandTemplateError> {
        Self::new(&words)
    }
}

impl From<CommandTemplate> for Vec<String> {
    fn from(template: CommandTemplate) -> Self {
        template.0.iter().map(Word::written).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn filled(words: &[&str], arguments: &Value) -> Result<Vec<String>, String> {
        let template = CommandTemplate::new(words).map_err(|error| error.to_string())?;
        let Value::Object(arguments) = arguments else { unreachable!("they are a map") };
        template.fill(arguments).map_err(|error| error.to_string())
    }

    #[test]
    fn each_value_fills_exactly_its_word() {
        let words = ["count", "--max={{max}}", "{{ deep }}", "{{ text }}", "{{ list }}"];
        let all = json!({ "max": 3, "deep": true, "text": "a b; rm -rf $HOME `id` \"", "list": ["x", 1] });
        assert_eq!(
            filled(&words, &all).unwrap(),
            ["count", "--max=3", "true", "a b; rm -rf $HOME `id` \"", "[\"x\",1]"]
        );
        assert_eq!(filled(&words, &json!({ "text": "", "max": null })).unwrap(), ["count", ""]);
        assert_eq!(filled(&["a", "{{ x }}-{{ y }}"], &json!({ "x": 1, "y": "2" })).unwrap(), ["a", "1-2"]);
        // What a value contains is not a place.
        assert_eq!(filled(&["a", "{{ x }}"], &json!({ "x": "{{ y }}", "y": 1 })).unwrap(), ["a", "{{ y }}"]);
    }

    #[test]
    fn no_value_becomes_an_option() {
        let refused = "`x` may not begin with `-`: the command would read it as an option";
        for words in [&["a", "{{ x }}"][..], &["a", "{{ x }}.txt"], &["a", "{{ x }}", "--"]] {
            assert_eq!(filled(words, &json!({ "x": "--output=/etc" })).unwrap_err(), refused);
        }
        for words in [&["a", "--", "{{ x }}"][..], &["a", "--file={{ x }}"]] {
            assert!(filled(words, &json!({ "x": "-o" })).is_ok());
        }
        // Another argument cannot end the options.
        let two = json!({ "x": "-o", "y": "--" });
        assert!(filled(&["a", "--{{ z }}", "{{ y }}", "{{ x }}"], &two).is_err());
        assert_eq!(filled(&["a", "{{ x }}"], &json!({ "x": -5 })).unwrap(), ["a", "-5"]);
    }

    #[test]
    fn what_is_no_word_is_refused() {
        assert!(filled(&["a", "{{ x }}"], &json!({ "x": "a\u{0}b" })).unwrap_err().contains("zero byte"));
        let long = "x".repeat(COMMAND_WORD_BYTES_MAX + 1);
        assert!(filled(&["a", "{{ x }}"], &json!({ "x": long })).unwrap_err().contains("too long"));
    }

    #[test]
    fn a_command_is_read_whole_or_refused() {
        let error = |words: &[&str]| CommandTemplate::new(words).unwrap_err();
        assert_eq!(error(&[]), CommandTemplateError::Empty);
        assert_eq!(error(&[""]), CommandTemplateError::Empty);
        assert_eq!(error(&["{{ x }}"]), CommandTemplateError::Program);
        assert_eq!(error(&["a", "{{ x"]), CommandTemplateError::Unclosed { word: 1 });
        for name in ["", "a b", "{ a"] {
            let word = format!("{{{{{name}}}}}");
            assert!(matches!(error(&["a", &word]), CommandTemplateError::BadName { word: 1, .. }), "{name}");
        }
        for shell in [
            &["sh", "-c", "wc {{ x }}"][..],
            &["env", "/bin/bash", "-l", "-ec", "{{ x }}"],
            &["sh", "-c", "-e", "--", "wc {{ x }}"],
        ] {
            assert!(matches!(error(shell), CommandTemplateError::Shell { .. }), "{shell:?}");
        }
        assert!(CommandTemplate::new(&["sh", "-c", "wc \"$1\"", "sh", "{{ x }}"]).is_ok());
        assert_eq!(error(&["a", "b\0"]).word(), Some(1));
        assert_eq!(error(&["a"; COMMAND_WORDS_MAX + 1]), CommandTemplateError::TooManyWords);
        let template = CommandTemplate::new(&["a", "b{{c}}d{{ e }}"]).unwrap();
        let json = serde_json::to_string(&template).unwrap();
        assert_eq!(json, r#"["a","b{{ c }}d{{ e }}"]"#);
        assert_eq!(serde_json::from_str::<CommandTemplate>(&json).unwrap(), template);
        assert!(serde_json::from_str::<CommandTemplate>("[]").is_err());
    }
}
