//! What a person may answer to a question: any text, one of several choices, or JSON. The kernel compares with choices; the
//! runtime checks JSON, as for answers of agents.

use serde::{Deserialize, Serialize};

use super::{OutputSchema, Refusal};
use crate::primitives::{CallId, cut, limit};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerForm {
    /// Any text.
    #[default]
    Text,
    /// One of these.
    Choices(Vec<String>),
    /// A JSON value that this schema accepts.
    Schema(Box<OutputSchema>),
}

impl AnswerForm {
    #[must_use]
    pub const fn is_text(&self) -> bool {
        matches!(self, Self::Text)
    }

    /// The choices, if it has any.
    #[must_use]
    pub fn choices(&self) -> &[String] {
        if let Self::Choices(choices) = self { choices } else { &[] }
    }

    #[must_use]
    pub fn schema(&self) -> Option<&OutputSchema> {
        if let Self::Schema(schema) = self { Some(schema) } else { None }
    }

    /// Whether choices can be named by their numbers: none of them is the number of another.
    #[must_use]
    pub fn is_numbered(&self) -> bool {
        let choices = self.choices();
        let is_other = |(at, choice): (usize, &String)| {
            choice
                .parse::<usize>()
                .is_ok_and(|number| number != at + 1 && (1..=choices.len()).contains(&number))
        };
        !choices.iter().enumerate().any(is_other)
    }

    /// The choice that a person means: its text in whatever case, or its number, from 1, if the choices have numbers.
    #[must_use]
    pub fn chosen(&self, typed: &str) -> Option<&str> {
        let (choices, typed) = (self.choices(), typed.trim());
        let same = |choice: &&String| choice.to_lowercase() == typed.to_lowercase();
        let exact = choices.iter().find(|choice| *choice == typed);
        let number =
            || choices.get(typed.parse::<usize>().ok()?.checked_sub(1)?).filter(|_| self.is_numbered());
        exact.or_else(|| choices.iter().find(same)).or_else(number).map(String::as_str)
    }

    /// The form of a question that names choices, a schema, or neither.
    ///
    /// # Errors
    /// If it names both.
    pub(crate) fn of(choices: Option<Vec<String>>, schema: Option<OutputSchema>) -> Result<Self, String> {
        match (choices, schema) {
            (Some(_), Some(_)) => Err("`choices` and `answer_schema` exclude each other".to_owned()),
            (Some(choices), None) => Ok(Self::Choices(choices)),
            (None, Some(schema)) => Ok(Self::Schema(Box::new(schema))),
            (None, None) => Ok(Self::Text),
        }
    }

    /// Why a question cannot have this form, with this default if it has one.
    ///
    /// # Errors
    /// In words: choices that cannot be told apart, are not one line each, or are too many or too long; a default that is not
    /// among them; a schema that is not a JSON object.
    pub(crate) fn check(&self, default: Option<&str>) -> Result<(), String> {
        match self {
            Self::Text => Ok(()),
            Self::Schema(schema) => schema.check().map_err(|refusal| refusal.to_string()),
            Self::Choices(choices) => check_choices(choices, default),
        }
    }

    /// # Errors
    /// If an answer is none of the choices.
    pub(crate) fn check_answer(&self, question: CallId, answer: &str) -> Result<(), Refusal> {
        let Self::Choices(choices) = self else { return Ok(()) };
        if choices.iter().any(|choice| choice == answer) {
            return Ok(());
        }
        Err(Refusal::NotAChoice { question, choices: choices.clone() })
    }
}

fn check_choices(choices: &[String], default: Option<&str>) -> Result<(), String> {
    let (fewest, most) = (limit::CHOICES_MIN, limit::CHOICES_MAX);
    if !(fewest..=most).contains(&choices.len()) {
        return Err(format!("write {fewest} to {most} choices, not {}", choices.len()));
    }
    for (at, choice) in choices.iter().enumerate() {
        let shown = cut(choice, limit::CHOICE_BYTES_MAX);
        if choice.is_empty() || choice.trim() != choice || choice.chars().any(char::is_control) {
            return Err(format!("the choice `{shown}` is not one line of text without space around it"));
        }
        if choice.len() > limit::CHOICE_BYTES_MAX {
            return Err(format!(
                "the choice `{shown}` has {} bytes, more than {}",
                choice.len(),
                limit::CHOICE_BYTES_MAX
            ));
        }
        if choices.iter().take(at).any(|before| before.to_lowercase() == choice.to_lowercase()) {
            return Err(format!("the choice `{shown}` is there twice"));
        }
    }
    match default.filter(|default| choices.iter().all(|choice| choice != default)) {
        Some(default) => {
            Err(format!("the default `{}` is not one of the choices", cut(default, limit::CHOICE_BYTES_MAX)))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choices(texts: &[&str]) -> AnswerForm {
        AnswerForm::Choices(texts.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_person_names_a_choice_by_its_text_or_its_number() {
        let form = choices(&["Send", "wait", "3"]);
        let chosen = |typed| form.chosen(typed);
        assert_eq!([chosen("send"), chosen(" Send\n"), chosen("1")], [Some("Send"); 3]);
        assert_eq!([chosen("3"), chosen("2"), chosen("WAIT")], [Some("3"), Some("wait"), Some("wait")]);
        assert_eq!([chosen("0"), chosen("4"), chosen(""), chosen("sen"), chosen("-1")], [None; 5]);
        assert_eq!(AnswerForm::Text.chosen("1"), None);
        // A typed number never means another choice than the one shown with it.
        let swapped = choices(&["3", "1", "2"]);
        assert!(form.is_numbered() && !swapped.is_numbered());
        assert_eq!((swapped.chosen("1"), swapped.chosen("2")), (Some("1"), Some("2")));
        assert_eq!(choices(&["2", "servers"]).chosen("1"), None);
    }

    #[test]
    fn choices_that_cannot_be_told_apart_are_refused() {
        let long = "x".repeat(limit::CHOICE_BYTES_MAX + 1);
        for wrong in [&[][..], &["one"], &["a", "A"], &["a", ""], &["a", " b"], &["a", "b\nc"], &["a", &long]]
        {
            assert!(choices(wrong).check(None).is_err(), "{wrong:?}");
        }
        let many: Vec<String> = (0..=limit::CHOICES_MAX).map(|number| number.to_string()).collect();
        assert!(AnswerForm::Choices(many).check(None).is_err());
        assert_eq!(choices(&["a", "b"]).check(Some("b")), Ok(()));
        assert!(choices(&["a", "b"]).check(Some("B")).is_err());
    }
}
