//! What a driver returned, without secrets: for trees whose journal has none. It is done before the report, so a tree that
//! is resumed reads what the live one read.

use std::borrow::Cow;

use spinney_kernel::port::model::{AttemptError, ModelAnswer};
use spinney_kernel::port::tool::ToolAnswer;

use super::hooked::Ended;
use crate::hooks::Returned;
use crate::redaction::Redactor;

/// The same without secrets. Files that a tool wrote stay as they are.
pub(super) fn redacted(redactor: &Redactor, ended: Ended) -> Ended {
    let plain = |text: &mut String| {
        if let Cow::Owned(redacted) = redactor.redact(text) {
            *text = redacted;
        }
    };
    match ended {
        Ok(Returned::Model(mut answer)) => {
            let ModelAnswer { text, reasoning, continuation, asks, .. } = &mut answer;
            plain(text);
            plain(reasoning);
            // What a provider wants back cannot be changed, only left out.
            continuation.take_if(|bytes| redactor.first_in(bytes).is_some());
            for ask in asks {
                plain(&mut ask.args);
            }
            Ok(Returned::Model(answer))
        }
        Ok(Returned::Tool(mut answer)) => {
            let ToolAnswer { text, parts, .. } = &mut answer;
            plain(text);
            for part in parts {
                if let Some(redacted) = redactor.redact_bytes(&part.bytes) {
                    part.bytes = redacted;
                }
            }
            Ok(Returned::Tool(answer))
        }
        Err(AttemptError { mut fault, used }) => {
            plain(&mut fault.message);
            Err(AttemptError { fault, used })
        }
    }
}
