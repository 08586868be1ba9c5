//! Write a shared value: a person gives agents something to read with `read_context`. Agents use `write_context`.

use serde::{Deserialize, Serialize};

use super::{Outside, Verb, person};
use crate::context::SharedText;
use crate::definition::Refusal;
use crate::primitives::{Actor, TokenCount, ValueName, limit};
use crate::rules::{Draft, shared};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteValue {
    pub name: ValueName,
    /// Its JSON, of at most [`limit::TEXT_BYTES_MAX`] bytes.
    pub json: String,
    /// The version that the value must have; 0 if there must be none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect_version: Option<u64>,
    /// Its tokens, if counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<TokenCount>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteValueReply {
    /// The version that the value has now. The first is 1.
    pub version: u64,
}

impl Verb for WriteValue {
    type Reply = WriteValueReply;

    fn count(&mut self, tokens: &dyn Fn(&str) -> TokenCount) {
        self.tokens = SharedText::from_json(&self.json).map(|text| text.counted(tokens));
    }

    fn outside(&self) -> Outside {
        Outside::Open
    }
}

impl WriteValue {
    pub(in crate::rules) fn decide(
        &self,
        draft: &mut Draft<'_>,
        by: &Actor,
    ) -> Result<WriteValueReply, Refusal> {
        person(by, "write a shared value this way; agents use `write_context`")?;
        draft.check_running()?;
        let bytes = self.json.len();
        if bytes > limit::TEXT_BYTES_MAX {
            let (what, bytes_max) = ("value".to_owned(), limit::TEXT_BYTES_MAX);
            return Err(Refusal::TextTooLong { what, bytes, bytes_max });
        }
        let Some(text) = SharedText::from_json(&self.json) else {
            return Err(Refusal::ValueNotJson { name: self.name.clone() });
        };
        let Self { name, tokens, expect_version, .. } = self;
        let version = shared::write_from_outside(draft, by, name, &text, *tokens, *expect_version)?;
        Ok(WriteValueReply { version })
    }
}
