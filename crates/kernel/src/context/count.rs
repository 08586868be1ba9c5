//! Counting the tokens of everything in a definition that models will read.

use super::{around_tokens, facts_tokens, tool_tokens};
use crate::definition::Definition;

impl Definition {
    /// Has everything counted that stands in it and that a model will read. The kernel never tokenises: whoever makes
    /// the definition brings the counts along, and without them bytes count.
    pub fn count(&mut self, tokens: &dyn Fn(&str) -> u64) {
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
