//! Counts the tokens of everything in a definition that models will read.

use super::{around_tokens, facts_tokens, tool_tokens};
use crate::definition::Definition;
use crate::primitives::TokenCount;

impl Definition {
    /// The kernel has no tokenizer: the caller that makes the definition supplies the counts. Without a count, bytes
    /// are the bound.
    pub fn count(&mut self, tokens: &dyn Fn(&str) -> TokenCount) {
        let facts = facts_tokens(tokens);
        for role in self.roles.values_mut() {
            if let Some(turns) = &mut role.turns {
                turns.prompt.count(tokens);
                turns.around_tokens = Some(around_tokens(&role.caps.tools, tokens));
                turns.facts_tokens = Some(facts);
                turns.output_schema.iter_mut().for_each(|schema| schema.count(tokens));
            }
        }
        for (name, tool) in &mut self.tools {
            tool.tokens = Some(tool_tokens(name.as_str(), &tool.description, &tool.schema, tokens));
        }
    }
}
