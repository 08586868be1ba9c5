//! The arguments of `spawn_agent`.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::read_with_budget;
use crate::context::{SpawnArgs, read};
use crate::definition::{BudgetKeys, Builtin, Refusal, Share, TimeSpan};
use crate::primitives::{AgentId, ModelName, RoleName, ToolName};
use crate::rules::Draft;

/// Before rules 8, a spawner gave its child neither a window nor messages, and errors did not list them.
pub(crate) fn read_spawn(draft: &Draft<'_>, args: &str) -> Result<SpawnArgs, Refusal> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Rules7 {
        agent: RoleName,
        goal: String,
        id: Option<AgentId>,
        model: Option<ModelName>,
        tools: Option<Vec<ToolName>>,
        #[serde(default)]
        budget: BudgetKeys,
        timeout: Option<TimeSpan>,
        #[serde(default)]
        detach: bool,
        share: Option<Share>,
        output_schema: Option<Box<RawValue>>,
    }
    if draft.rules() >= 8 {
        return read(Builtin::SpawnAgent, args);
    }
    let Rules7 { agent, goal, id, model, tools, budget, timeout, detach, share, output_schema } =
        read_with_budget(draft, Builtin::SpawnAgent, args)?;
    let (window, messages) = (None, Vec::new());
    Ok(SpawnArgs {
        agent,
        goal,
        id,
        model,
        tools,
        budget,
        timeout,
        detach,
        share,
        output_schema,
        window,
        messages,
    })
}
