//! The arguments of `ask_human`.

use serde::Deserialize;

use crate::context::{AskArgs, TimeoutPolicy, read};
use crate::definition::{Builtin, Refusal, TimeSpan};

/// Before rules 3, a question could not say what happens if no answer comes in time; before rules 8, not what an answer must
/// be.
pub(crate) fn read_ask(args: &str, rules: u32) -> Result<AskArgs, Refusal> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Rules2 {
        question: String,
        timeout: Option<TimeSpan>,
        default: Option<String>,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Rules7 {
        question: String,
        timeout: Option<TimeSpan>,
        default: Option<String>,
        on_timeout: Option<TimeoutPolicy>,
    }
    let Rules7 { question, timeout, default, on_timeout } = match rules {
        8.. => return read(Builtin::AskHuman, args),
        3.. => read(Builtin::AskHuman, args)?,
        _ => {
            let Rules2 { question, timeout, default } = read(Builtin::AskHuman, args)?;
            Rules7 { question, timeout, default, on_timeout: None }
        }
    };
    Ok(AskArgs { question, timeout, default, on_timeout, choices: None, answer_schema: None })
}
