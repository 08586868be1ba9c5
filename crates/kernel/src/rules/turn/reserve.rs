//! An agent's reserve for its own answer, and whether a new agent could make its first call at all. Both are computed
//! from its first packet when it is spawned.

use crate::budget::{Amounts, Ceilings, Fit, Resource, ResourceSet, Shortfall, Terms};
use crate::definition::{Allow, BudgetSpec, Builtin, Caps, Definition, OnLow, Refusal, Role};
use crate::primitives::{ModelName, Time, limit};
use crate::record::{ModelCall, Spawned, Work};
use crate::rules::Draft;
use crate::rules::call::first_attempt;
use crate::world::{AgentIx, World};

/// An agent that takes turns and may delegate work.
pub(crate) struct Lead<'a> {
    definition: &'a Definition,
    model: &'a ModelName,
    packet: u64,
    now: Time,
}

impl<'a> Lead<'a> {
    /// `None` if it takes no turns or cannot have children.
    pub(crate) fn new(
        definition: &'a Definition,
        role: &Role,
        caps: &Caps,
        depth: u32,
        model: &'a ModelName,
        packet: u64,
        now: Time,
    ) -> Option<Self> {
        // Older trees may have a tool of that name.
        let is_own = |tool: &Builtin| !definition.tools.contains_key(tool.as_str());
        let starts =
            |tool: &Builtin| caps.tools.has(tool.as_str()) && (*tool == Builtin::SpawnAgent || is_own(tool));
        let spawns =
            Builtin::STARTING.iter().any(starts) && depth < caps.depth_max && caps.spawn != Allow::only([]);
        (role.turns.is_some() && spawns).then_some(Self { definition, model, packet, now })
    }

    /// The cost of one call with short results of its children, and an answer.
    fn answer(&self) -> Amounts {
        let input = self.packet.saturating_add(limit::RESERVE_INPUT_TOKENS);
        one_call(self.definition, self.model, input, limit::RESERVE_OUTPUT_TOKENS, self.now)
    }
}

/// Adds the reserve that descendants must leave: the value in the tree file, otherwise a share of the ceilings or one
/// call, for agents that may delegate. Trees of older rules keep the share for every agent.
pub(crate) fn with_reserve(terms: Terms, rules: u32, budget: &BudgetSpec, lead: Option<&Lead<'_>>) -> Terms {
    let reserve_fixed = rules >= 3 && budget.answer_reserve.is_none();
    let reserve = reserve(rules, budget, &terms.limit, lead);
    Terms { reserve, reserve_fixed: reserve_fixed && !reserve.is_zero(), ..terms }
}

fn reserve(rules: u32, budget: &BudgetSpec, limit: &Ceilings, lead: Option<&Lead<'_>>) -> Amounts {
    let share = |percent: u8| {
        let percent = u64::from(percent);
        ResourceSet::MEASURED.iter().fold(Amounts::ZERO, |reserve, resource| match limit.get(resource) {
            Some(amount) => reserve.with(resource, amount / 100 * percent + amount % 100 * percent / 100),
            None => reserve,
        })
    };
    if let Some(percent) = budget.answer_reserve {
        return share(percent);
    }
    let least = share(limit::ANSWER_RESERVE_PERCENT);
    if rules < 3 {
        return least;
    }
    let Some(lead) = lead else { return Amounts::ZERO };
    let answer = lead.answer();
    let enough = ResourceSet::MEASURED.iter().fold(least, |reserve, resource| match limit.get(resource) {
        Some(amount) => {
            let call = answer.get(resource).min(amount / 2);
            reserve.with(resource, reserve.get(resource).max(call))
        }
        None => reserve,
    });
    enough.with(Resource::Steps, u64::from(limit.get(Resource::Steps).is_some()))
}

/// Refuses a child whose first call could never fit, with the numbers.
pub(crate) fn check_first_call(
    draft: &Draft<'_>,
    parent: AgentIx,
    spawned: &Spawned,
    role: &Role,
    packet: u64,
) -> Result<(), Refusal> {
    let Some(turns) = role.turns.as_ref().filter(|_| draft.rules() >= 3) else { return Ok(()) };
    let never = |model: &ModelName| {
        let output = draft.definition().models.get(model).map_or(0, |spec| turns.output_cap_with(spec));
        let output = output.min(limit::OUTPUT_TOKENS_SHRUNK);
        let ask = one_call(draft.definition(), model, packet, output, draft.now());
        above(draft, parent, &ask).or_else(|| own(spawned, &ask))
    };
    let Some(refusal) = never(&spawned.model) else { return Ok(()) };
    // It may start with the model that it downgrades to.
    match &spawned.on_low {
        OnLow::Downgrade(model) if never(model).is_none() => Ok(()),
        OnLow::Halt | OnLow::Shrink | OnLow::Downgrade(_) => Err(refusal),
    }
}

/// The permanent shortfall of a ceiling above the child, if there is one.
fn above(world: &World, parent: AgentIx, ask: &Amounts) -> Option<Refusal> {
    match world.ledger().fit_below(world.agent(parent).account, ask) {
        Fit::Never(by, short) => Some(Refusal::FirstCallTooLarge { account: world.owner(by), short }),
        Fit::Yes | Fit::Wait(..) | Fit::Shut(_) => None,
    }
}

/// The shortfall of its own ceilings, if there is one.
fn own(spawned: &Spawned, ask: &Amounts) -> Option<Refusal> {
    let is_short = |resource: &Resource| {
        spawned.terms.limit.get(*resource).is_some_and(|limit| ask.get(*resource) > limit)
    };
    let resource = Resource::ALL.into_iter().find(is_short)?;
    let limit = spawned.terms.limit.get(resource)?;
    let asked = ask.get(resource);
    let short = Shortfall { resource, limit, reserve: 0, spent: 0, held: 0, lent: 0, asked };
    Some(Refusal::FirstCallTooLarge { account: spawned.agent.clone(), short })
}

fn one_call(
    definition: &Definition,
    model: &ModelName,
    input_tokens: u64,
    output_cap: u64,
    now: Time,
) -> Amounts {
    let call = ModelCall::new(model.clone(), input_tokens, output_cap);
    first_attempt(definition, &Work::Model(call), now)
}
