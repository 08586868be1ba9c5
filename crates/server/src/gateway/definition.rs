//! The tree of a run: a root for the program itself and a role for the agents that its requests name. None takes turns.

use std::str::FromStr;
use std::sync::Arc;

pub(super) use spinney_host::exec::run_definition::AGENT;
use spinney_host::exec::run_definition::{MAIN, NO_MODEL};
use spinney_kernel::budget::{Ceilings, Price, Resource};
use spinney_kernel::definition::{
    Allow, BudgetSpec, Caps, Definition, HostRequests, ModelSpec, Network, OnLow, Recursion, Role, Tags,
    TreeLimits, WrapUp,
};
use spinney_kernel::primitives::{IdError, ModelName, RoleName};

/// Agents from the wire never say that they end.
pub(super) const AGENTS_MAX: u32 = 10_000;
const DEPTH_MAX: u32 = 16;

/// The ceilings of a run, and its tags.
#[derive(Clone, Debug, Default)]
pub struct ExecBudget {
    pub cost_nanos: Option<u64>,
    pub tokens: Option<u64>,
    /// Model calls.
    pub steps: Option<u64>,
    pub timeout_ms: Option<u64>,
    /// Model calls at the same time.
    pub parallel: Option<u32>,
    pub on_low: OnLow,
    /// The user's own labels.
    pub tags: Tags,
}

/// The definition of a run. `goal` says what was started.
///
/// # Errors
/// Never: the names in it are valid.
pub fn exec_definition(name: &str, goal: &str, budget: &ExecBudget) -> Result<Definition, IdError> {
    let (main, agent) = (RoleName::from_str(MAIN)?, RoleName::from_str(AGENT)?);
    let none = ModelName::from_str(NO_MODEL)?;
    let caps = Caps {
        models: Allow::All,
        below: Allow::All,
        tools: Allow::only([]),
        spawn: Allow::only([agent.clone()]),
        network: Network::Denied,
        host_requests: HostRequests::Refused,
        folders: None,
        depth_max: DEPTH_MAX,
    };
    let role = |recursive| Role {
        model: none.clone(),
        caps: caps.clone(),
        budget: BudgetSpec {
            on_low: Some(budget.on_low.clone()),
            wrap_up: Some(WrapUp::Off),
            answer_reserve: Some(0),
            ..BudgetSpec::default()
        },
        recursive,
        rate: spinney_kernel::definition::RateLimit::NONE,
        turns: None,
        program: None,
    };
    let ceilings = [
        (Resource::Cost, budget.cost_nanos),
        (Resource::Tokens, budget.tokens),
        (Resource::Steps, budget.steps),
    ];
    let limit = ceilings.into_iter().fold(Ceilings::NONE, |limit, (resource, most)| match most {
        Some(most) => limit.with(resource, most),
        None => limit,
    });
    let free = ModelSpec { price: Some(Price::flat(0, 0)), ..ModelSpec::default() };
    let mut definition = Definition::new(name, goal, main.clone())
        .with_model(none.clone(), free)
        .with_role(main, role(Recursion::Refused))
        .with_role(agent, role(Recursion::Allowed))
        .with_budget(BudgetSpec { timeout_ms: budget.timeout_ms, ..BudgetSpec::with_limit(limit) });
    definition.limits = TreeLimits {
        depth_max: DEPTH_MAX,
        children_max: AGENTS_MAX,
        agents_max: AGENTS_MAX,
        parallel_max: budget.parallel.unwrap_or(AGENTS_MAX),
        ..TreeLimits::default()
    };
    definition.tags = Arc::new(budget.tags.clone());
    Ok(definition)
}

#[cfg(test)]
mod tests {
    use spinney_host::exec::run_definition::is_of_program;

    use super::*;

    #[test]
    fn the_tree_of_a_program_is_known_by_its_definition() {
        let run = exec_definition("claude", "claude -p hi", &ExecBudget::default()).unwrap();
        assert!(is_of_program(&run));
        assert!(!is_of_program(&run.with_model("fast".parse().unwrap(), ModelSpec::default())));
    }
}
