//! The most that a tree can spend before anything runs: what its ceilings allow, at the rates of its models. A hold
//! never passes a ceiling, so neither does what is spent, unless a provider bills more than was held.

use spinney_kernel::budget::{Price, Resource};
use spinney_kernel::definition::{Definition, GraphStep, Role, Unpriced};
use spinney_kernel::primitives::{ModelName, RoleName, Time, limit};

use super::pipeline_bound::PipelineBound;
use super::reach::Reach;

/// The most that a tree can spend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorstCase {
    /// In nano-dollars.
    pub cost: SpendBound,
    /// Of all models together.
    pub tokens: SpendBound,
    /// Models whose calls count as free, because they have no price and the file allows that.
    pub free: Vec<ModelName>,
    /// What one call of each role's agents holds at most.
    pub calls: Vec<CallBound>,
    /// The steps of its pipeline, if it has one.
    pub pipeline: Option<PipelineBound>,
}

/// The most of one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpendBound {
    /// The tree's own ceiling.
    Ceiling(u64),
    /// The ceiling of the other resource, at the dearest or the cheapest rate of all models.
    AtRate(u64),
    /// The ceilings of all steps of its pipeline together.
    Steps(u64),
    /// Nothing limits it.
    None,
}

impl SpendBound {
    /// The number, if there is one.
    #[must_use]
    pub const fn most(&self) -> Option<u64> {
        match self {
            Self::Ceiling(most) | Self::AtRate(most) | Self::Steps(most) => Some(*most),
            Self::None => None,
        }
    }

    fn smaller(self, other: Self) -> Self {
        match (self.most(), other.most()) {
            (Some(own), Some(others)) if others < own => other,
            (None, Some(_)) => other,
            (Some(_) | None, _) => self,
        }
    }
}

/// What one call of a role holds at most with its own model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallBound {
    /// The role.
    pub role: RoleName,
    /// Its model.
    pub model: ModelName,
    /// The tokens of a full window; `None` if the context of its model is unknown.
    pub input: Option<u64>,
    /// The most output tokens.
    pub output: u64,
    /// In nano-dollars, for a full window and the whole output; `None` if one of them or the price is unknown.
    pub cost: Option<u64>,
    /// The most turns, whatever budget its agents are given.
    pub turns: Option<u32>,
    /// The most turns by the role's own budget, where that is less: a spawner may give its agents another one.
    pub turns_unless_given: Option<u32>,
}

impl WorstCase {
    /// With the ceilings of a definition, at the prices of this moment.
    #[must_use]
    pub fn new(definition: &Definition, now: Time) -> Self {
        let budget = definition.root_budget();
        let ceiling = |resource| budget.limit.get(resource).map_or(SpendBound::None, SpendBound::Ceiling);
        let (cost, tokens) = (ceiling(Resource::Cost), ceiling(Resource::Tokens));
        let free = free(definition);
        let at_rate = |most: Option<u64>, bound: &dyn Fn(u64) -> Option<u64>| {
            most.and_then(bound).map_or(SpendBound::None, SpendBound::AtRate)
        };
        let cost_of_tokens = at_rate(tokens.most(), &|tokens| cost_at_most(definition, &free, tokens));
        let tokens_of_cost = at_rate(cost.most(), &|cost| tokens_at_most(definition, cost));
        let reach = Reach::new(definition);
        let calls: Vec<CallBound> =
            definition.roles.keys().filter_map(|role| call(definition, &reach, role, now)).collect();
        let pipeline = PipelineBound::new(definition, &free, &calls);
        let steps = pipeline.as_ref().and_then(|pipeline| pipeline.cost);
        let cost_of_steps = steps.map_or(SpendBound::None, SpendBound::Steps);
        Self {
            cost: cost.smaller(cost_of_tokens).smaller(cost_of_steps),
            tokens: tokens.smaller(tokens_of_cost),
            free,
            calls,
            pipeline,
        }
    }
}

/// Unpriced models count as free only where the file says so; otherwise the kernel refuses them under a ceiling.
fn free(definition: &Definition) -> Vec<ModelName> {
    let unpriced = definition.models.iter().filter(|(_, model)| model.price.is_none());
    match definition.unpriced {
        Unpriced::Allow => unpriced.map(|(name, _)| name.clone()).collect(),
        Unpriced::Refuse => Vec::new(),
    }
}

/// The most that this many tokens cost. Unknown if a model has no price, or if tools have their own price.
pub(super) fn cost_at_most(definition: &Definition, free: &[ModelName], tokens: u64) -> Option<u64> {
    if definition.tools.values().any(|tool| tool.cost_nanos_max > 0) {
        return None;
    }
    let priced = definition.models.iter().filter(|(name, _)| !free.contains(name));
    let rates = priced.map(|(_, model)| model.price.as_ref().map(Price::dearest_token_nanos));
    let dearest = rates.collect::<Option<Vec<u64>>>()?.into_iter().max().unwrap_or_default();
    tokens.checked_mul(dearest)
}

/// The most tokens that cost this much. Unknown if some tokens of a model cost nothing.
fn tokens_at_most(definition: &Definition, cost: u64) -> Option<u64> {
    let rates = definition.models.values().map(|model| model.price.as_ref().map(Price::cheapest_per_mtok));
    let cheapest = rates.collect::<Option<Vec<u64>>>()?.into_iter().min().filter(|rate| *rate > 0)?;
    u64::try_from(u128::from(cost) * 1_000_000 / u128::from(cheapest)).ok()
}

fn call(definition: &Definition, reach: &Reach, name: &RoleName, now: Time) -> Option<CallBound> {
    let role = definition.roles.get(name)?;
    let model = definition.models.get(&role.model)?;
    let turns = role.turns.as_ref();
    let own = turns.and_then(|turns| turns.window.as_ref()?.size);
    let share = model.context.map(|context| context / 100 * limit::WINDOW_PERCENT);
    let input = own.into_iter().chain(share).min();
    let output = turns.map_or_else(|| model.output_cap(), |turns| turns.output_cap_with(model));
    let cost = input.zip(model.price.as_ref()).map(|(input, price)| price.worst_case(input, output, now));
    let fewest = |turns: u32, steps: Option<u64>| {
        steps.map_or(turns, |steps| turns.min(u32::try_from(steps).unwrap_or(u32::MAX)))
    };
    let tree = definition.root_budget().limit.get(Resource::Steps);
    let is_spawned = !reach.is_whole || reach.spawns.values().any(|children| children.contains(name));
    let steps = if is_spawned { None } else { steps_of_graph(definition, name, role) };
    let turns = turns.map(|turns| fewest(fewest(turns.turns_max, tree), steps));
    let unless_given = turns.filter(|_| is_spawned);
    let unless_given = unless_given.map(|turns| fewest(turns, role.budget.limit.get(Resource::Steps)));
    Some(CallBound {
        role: name.clone(),
        model: role.model.clone(),
        input,
        output,
        cost,
        turns,
        turns_unless_given: unless_given.filter(|own| Some(*own) != turns),
    })
}

/// The most steps of one agent by the budgets of the pipeline's steps and of the role.
fn steps_of_graph(definition: &Definition, name: &RoleName, role: &Role) -> Option<u64> {
    let graph = definition.graph.as_deref()?;
    let of_role = |step: &GraphStep| {
        step.agent_id == *name || step.undo.as_ref().is_some_and(|undo| undo.agent_id == *name)
    };
    let nodes = graph.steps().filter(|(_, _, step)| of_role(step));
    let most = nodes.map(|(_, node, _)| {
        let given = node.budget.as_ref().and_then(|budget| budget.limit.get(Resource::Steps));
        given.or(role.budget.limit.get(Resource::Steps))
    });
    most.collect::<Option<Vec<u64>>>()?.into_iter().max()
}
