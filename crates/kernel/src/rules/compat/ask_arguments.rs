//! The arguments of `ask_human`.

use serde::Deserialize;

use crate::context::{AskArgs, read};
use crate::definition::{Builtin, Refusal, TimeSpan};

/// Before rules 3, a question could not say what happens if no answer comes in time.
pub(crate) fn read_ask(args: &str, rules: u32) -> Result<AskArgs, Refusal> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Rules2 {
        question: String,
        timeout: Option<TimeSpan>,
        default: Option<String>,
    }
    if rules >= 3 {
        return read(Builtin::AskHuman, args);
    }
    let Rules2 { question, timeout, default } = read(Builtin::AskHuman, args)?;
    Ok(AskArgs { question, timeout, default, on_timeout: None })
}
