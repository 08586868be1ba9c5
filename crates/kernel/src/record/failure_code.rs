//! Why an agent failed, for programs: every reason that the rules give is a variant.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::definition::Refusal;
use crate::primitives::FaultKind;

/// Written as a word, and each word has one code: the reader of a journal gets what was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailureCode {
    /// A condition of a graph cannot be evaluated.
    BadCondition,
    /// Its output schema is invalid.
    BadOutputSchema,
    /// A task or question of a graph cannot be written.
    BadTemplate,
    /// The task that would undo a step cannot be written.
    BadUndo,
    /// Every step was cancelled.
    Cancelled,
    /// A hook refused a charge.
    ChargeRefused,
    /// A ceiling stopped it.
    Exhausted,
    /// It called the same tool with the same result again and again.
    LoopDetected,
    /// A loop of a graph took all its rounds.
    MaxRounds,
    /// It took all its turns.
    MaxSteps,
    /// An input of a step has no value.
    MissingInput,
    /// Its process died repeatedly during one model call.
    ModelLost,
    /// The agent of a step completed without an answer.
    NoAnswer,
    /// No answer has a majority of the votes.
    NoMajority,
    /// There were no votes.
    NoVotes,
    /// Every member of a race was skipped.
    NobodyWon,
    /// A step for each item has no list to go over.
    NotAList,
    /// A program could not be started.
    NotStarted,
    /// Its answer does not match its output schema.
    OutputMismatch,
    /// Its answer was cut at the output cap.
    OutputTruncated,
    /// A program ended with an error.
    ProgramFailed,
    /// The process that ran its program died, and the program is not started again.
    ProgramLost,
    /// There was no answer in time.
    QuestionExpired,
    /// Several answers have the same number of votes.
    Tie,
    /// Its time was up.
    Timeout,
    /// A step for each item has too many items.
    TooManyItems,
    /// A value is larger than a shared value may be.
    ValueTooLarge,
    /// Its window has no room for a call.
    WindowTooSmall,
    /// A model call failed like this.
    Model(FaultKind),
    /// Something that it cannot do without was refused: the code of the refusal.
    Refused(&'static str),
    /// Given by the actor that ended the agent.
    Own(Box<str>),
}

impl FailureCode {
    const PLAIN: [Self; 28] = [
        Self::BadCondition,
        Self::BadOutputSchema,
        Self::BadTemplate,
        Self::BadUndo,
        Self::Cancelled,
        Self::ChargeRefused,
        Self::Exhausted,
        Self::LoopDetected,
        Self::MaxRounds,
        Self::MaxSteps,
        Self::MissingInput,
        Self::ModelLost,
        Self::NoAnswer,
        Self::NoMajority,
        Self::NoVotes,
        Self::NobodyWon,
        Self::NotAList,
        Self::NotStarted,
        Self::OutputMismatch,
        Self::OutputTruncated,
        Self::ProgramFailed,
        Self::ProgramLost,
        Self::QuestionExpired,
        Self::Tie,
        Self::Timeout,
        Self::TooManyItems,
        Self::ValueTooLarge,
        Self::WindowTooSmall,
    ];

    #[must_use]
    pub const fn as_str(&self) -> &str {
        match self {
            Self::BadCondition => "bad_condition",
            Self::BadOutputSchema => "bad_output_schema",
            Self::BadTemplate => "bad_template",
            Self::BadUndo => "bad_undo",
            Self::Cancelled => "cancelled",
            Self::ChargeRefused => "charge_refused",
            Self::Exhausted => "exhausted",
            Self::LoopDetected => "loop_detected",
            Self::MaxRounds => "max_rounds",
            Self::MaxSteps => "max_steps",
            Self::MissingInput => "missing_input",
            Self::ModelLost => "model_lost",
            Self::NoAnswer => "no_answer",
            Self::NoMajority => "no_majority",
            Self::NoVotes => "no_votes",
            Self::NobodyWon => "nobody_won",
            Self::NotAList => "not_a_list",
            Self::NotStarted => "not_started",
            Self::OutputMismatch => "output_mismatch",
            Self::OutputTruncated => "output_truncated",
            Self::ProgramFailed => "program_failed",
            Self::ProgramLost => "program_lost",
            Self::QuestionExpired => "question_expired",
            Self::Tie => "tie",
            Self::Timeout => "timeout",
            Self::TooManyItems => "too_many_items",
            Self::ValueTooLarge => "value_too_large",
            Self::WindowTooSmall => "window_too_small",
            Self::Model(kind) => model_word(*kind),
            Self::Refused(code) => code,
            Self::Own(word) => word,
        }
    }

    /// The code of a word.
    #[must_use]
    pub fn from_text(word: &str) -> Self {
        if let Some(plain) = Self::PLAIN.into_iter().find(|plain| plain.as_str() == word) {
            return plain;
        }
        if let Some(kind) = FaultKind::ALL.into_iter().find(|kind| model_word(*kind) == word) {
            return Self::Model(kind);
        }
        match Refusal::CODES.into_iter().find(|code| *code == word) {
            Some(code) => Self::Refused(code),
            None => Self::Own(word.into()),
        }
    }
}

const fn model_word(kind: FaultKind) -> &'static str {
    match kind {
        FaultKind::RateLimit => "model_rate_limit",
        FaultKind::Server => "model_server",
        FaultKind::Overloaded => "model_overloaded",
        FaultKind::Timeout => "model_timeout",
        FaultKind::Cut => "model_cut",
        FaultKind::Auth => "model_auth",
        FaultKind::OutOfCredit => "model_out_of_credit",
        FaultKind::Invalid => "model_invalid",
        FaultKind::ContextTooLong => "model_context_too_long",
        FaultKind::ContentFilter => "model_content_filter",
        FaultKind::Declined => "model_declined",
        FaultKind::Stopped => "model_stopped",
    }
}

impl From<&Refusal> for FailureCode {
    fn from(refusal: &Refusal) -> Self {
        Self::from_text(refusal.code())
    }
}

impl PartialEq<str> for FailureCode {
    fn eq(&self, word: &str) -> bool {
        self.as_str() == word
    }
}

impl PartialEq<&str> for FailureCode {
    fn eq(&self, word: &&str) -> bool {
        self.as_str() == *word
    }
}

impl fmt::Display for FailureCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for FailureCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for FailureCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = std::borrow::Cow::<str>::deserialize(deserializer)?;
        Ok(Self::from_text(&word))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Replays compare what was read with what is decided, so a code must come back as itself.
    #[test]
    fn every_code_is_read_back_as_itself() {
        let models = FaultKind::ALL.map(FailureCode::Model);
        for code in FailureCode::PLAIN.into_iter().chain(models) {
            assert_eq!(FailureCode::from_text(code.as_str()), code);
            let written = serde_json::to_string(&code).unwrap();
            assert_eq!(serde_json::from_str::<FailureCode>(&written).unwrap(), code);
        }
        for word in Refusal::CODES {
            assert_eq!(FailureCode::from_text(word).as_str(), word);
        }
        for fault in FaultKind::ALL {
            assert_eq!(FailureCode::Model(fault).as_str(), format!("model_{}", fault.as_str()));
        }
        assert_eq!(FailureCode::from_text("oops"), FailureCode::Own("oops".into()));
    }

    #[test]
    fn the_code_of_a_refusal_is_the_tag_of_its_json() {
        let refusals = [
            Refusal::TreeNotStarted,
            Refusal::UnknownAgent { agent: "a".parse().unwrap() },
            Refusal::LendWithoutCeiling,
            Refusal::NotApproved { tool: "t".parse().unwrap(), answer: "no".to_owned() },
        ];
        for refusal in refusals {
            let written = serde_json::to_value(&refusal).unwrap();
            assert_eq!(written["code"], refusal.code());
        }
        // A tag that is not known is answered with all that are.
        let unknown = serde_json::from_str::<Refusal>(r#"{"code":"no such code"}"#).unwrap_err().to_string();
        let known = unknown.split_once("expected one of").unwrap().1;
        let known: BTreeSet<&str> = known.split('`').skip(1).step_by(2).collect();
        assert_eq!(known, BTreeSet::from(Refusal::CODES));
        for code in Refusal::CODES {
            // A tag that is not known fails in another way than one whose fields are missing.
            let read = serde_json::from_str::<Refusal>(&format!(r#"{{"code":"{code}"}}"#));
            assert!(read.err().is_none_or(|error| !error.to_string().contains("unknown variant")), "{code}");
        }
    }
}
