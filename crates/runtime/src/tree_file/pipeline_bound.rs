//! The most that the steps of a pipeline can spend: how often each can run, and what one run may cost. Rounds, voters,
//! items and retries multiply; ceilings of groups and the tree's limit on agents bound what they multiply to.

use std::collections::BTreeMap;

use serde_json::Value;
use spinney_kernel::budget::Resource;
use spinney_kernel::definition::{
    BudgetSpec, Builtin, Definition, Expression, Graph, GraphNode, NodeIx, NodeKind,
};
use spinney_kernel::primitives::{ModelName, RoleName, StepId};

use super::worst_case::{CallBound, cost_at_most};

/// The most that the steps of a pipeline can spend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipelineBound {
    /// Every step, in the order of the graph's nodes.
    pub steps: Vec<StepBound>,
    /// In nano-dollars, by the ceilings of steps and groups; `None` if they leave something open.
    pub cost: Option<u64>,
    /// What all calls together hold at most if none is repeated, in nano-dollars.
    pub held: Option<u64>,
}

/// The most that one step can spend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepBound {
    /// Its place in the graph.
    pub node: NodeIx,
    /// Its id.
    pub id: StepId,
    /// The most agents that it can start.
    pub runs: u64,
    /// What multiplies to the number of runs, the outermost first.
    pub factors: Vec<RunFactor>,
    /// The ceiling of one run, in nano-dollars.
    pub ceiling: Option<u64>,
    /// What the calls of one run hold at most if none is repeated, in nano-dollars.
    pub held: Result<u64, UnboundedHold>,
}

/// Why a step can run more than once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunFactor {
    /// It, or a group around it, is tried again after a failure: attempts in all.
    Attempts(StepId, u32),
    /// The rounds of a loop.
    Rounds(StepId, u32),
    /// The voters of a vote.
    Voters(StepId, u32),
    /// The items of a map, whose list is known.
    Items(StepId, u64),
    /// The items of a map, whose list is only known when it runs.
    AnyItems(StepId),
}

/// Why the holds of a step have no bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnboundedHold {
    /// Its agent may start other agents.
    Spawns,
    /// Its model has no price.
    Unpriced,
    /// The size of its model's context is unknown.
    NoContext,
}

impl StepBound {
    /// The most that all its runs cost by their ceilings.
    #[must_use]
    pub fn cost(&self) -> Option<u64> {
        self.ceiling?.checked_mul(self.runs)
    }

    /// The most that the calls of all its runs hold if none is repeated.
    #[must_use]
    pub fn held_in_all(&self) -> Option<u64> {
        self.held.ok()?.checked_mul(self.runs)
    }
}

impl RunFactor {
    /// The step or group that multiplies.
    #[must_use]
    pub const fn step(&self) -> &StepId {
        match self {
            Self::Attempts(id, _)
            | Self::Rounds(id, _)
            | Self::Voters(id, _)
            | Self::Items(id, _)
            | Self::AnyItems(id) => id,
        }
    }

    /// The number, if it is known.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        match self {
            Self::Attempts(_, number) | Self::Rounds(_, number) | Self::Voters(_, number) => {
                Some(u64::from(*number))
            }
            Self::Items(_, number) => Some(*number),
            Self::AnyItems(_) => None,
        }
    }
}

impl PipelineBound {
    pub(super) fn new(definition: &Definition, free: &[ModelName], calls: &[CallBound]) -> Option<Self> {
        let graph = definition.graph.as_deref()?;
        let values = definition.inputs.iter().map(|(name, value)| (name.to_string(), value.clone()));
        let values: BTreeMap<String, Value> = values.collect();
        let items = (0..).zip(graph.nodes()).filter_map(|(ix, node)| match &node.kind {
            NodeKind::Map { over, .. } => Some((ix, items(over, &values)?)),
            _ => None,
        });
        let bounds = Bounds { definition, graph, free, calls, items: items.collect() };
        let steps: Vec<StepBound> = graph.steps().map(|(ix, node, _)| bounds.step(ix, node)).collect();
        let cost = bounds.in_all(&|budget, role| bounds.ceiling(&budget.or(bounds.budget_of(role))));
        let held = bounds.in_all(&|budget, role| bounds.held(budget, role).ok());
        Some(Self { steps, cost, held })
    }
}

struct Bounds<'a> {
    definition: &'a Definition,
    graph: &'a Graph,
    free: &'a [ModelName],
    calls: &'a [CallBound],
    /// Of the maps whose lists are known.
    items: BTreeMap<NodeIx, u64>,
}

/// What one run of a role costs at most, with this budget of its step.
type RunCost<'r> = &'r dyn Fn(&BudgetSpec, &RoleName) -> Option<u64>;

impl Bounds<'_> {
    fn step(&self, ix: NodeIx, node: &GraphNode) -> StepBound {
        let factors = self.factors(ix);
        let product = factors.iter().try_fold(1, |all: u64, factor| all.checked_mul(factor.number()?));
        let budget = node.budget.as_deref().cloned().unwrap_or_default();
        let role = node.step().map(|step| &step.agent_id);
        StepBound {
            node: ix,
            id: node.id.clone(),
            runs: product.map_or(self.agents(), |product| product.min(self.agents())),
            factors,
            ceiling: role.and_then(|role| self.ceiling(&budget.or(self.budget_of(role)))),
            held: role.map_or(Err(UnboundedHold::Unpriced), |role| self.held(&budget, role)),
        }
    }

    /// The most agents beside the root's.
    fn agents(&self) -> u64 {
        u64::from(self.definition.limits.agents_max.saturating_sub(1))
    }

    fn factors(&self, ix: NodeIx) -> Vec<RunFactor> {
        let mut factors = Vec::new();
        for (depth, above) in self.graph.up(ix).enumerate() {
            let node = self.graph.node(above);
            if depth > 0 {
                factors.extend(self.factor(above, node));
            }
            if node.retry > 0 {
                factors.push(RunFactor::Attempts(node.id.clone(), node.retry + 1));
            }
        }
        factors.reverse();
        factors
    }

    /// How often a group runs each of its members.
    fn factor(&self, ix: NodeIx, node: &GraphNode) -> Option<RunFactor> {
        let id = node.id.clone();
        match &node.kind {
            NodeKind::Loop { max_rounds, .. } => Some(RunFactor::Rounds(id, *max_rounds)),
            NodeKind::Vote { rule, .. } if rule.voters > 1 => Some(RunFactor::Voters(id, rule.voters)),
            NodeKind::Map { .. } => Some(match self.items.get(&ix) {
                Some(items) => RunFactor::Items(id, *items),
                None => RunFactor::AnyItems(id),
            }),
            _ => None,
        }
    }

    fn budget_of(&self, role: &RoleName) -> &BudgetSpec {
        match self.definition.roles.get(role) {
            Some(role) => &role.budget,
            None => unreachable!("the agents of a pipeline exist"),
        }
    }

    /// The most that a budget allows, in nano-dollars.
    fn ceiling(&self, budget: &BudgetSpec) -> Option<u64> {
        let tokens = budget.limit.get(Resource::Tokens);
        let at_rate = tokens.and_then(|tokens| cost_at_most(self.definition, self.free, tokens));
        budget.limit.get(Resource::Cost).into_iter().chain(at_rate).min()
    }

    /// A full window in every turn, within the ceiling.
    fn held(&self, budget: &BudgetSpec, role: &RoleName) -> Result<u64, UnboundedHold> {
        let ceiling = self.ceiling(&budget.or(self.budget_of(role)));
        let tools = self.definition.roles.get(role).map(|role| &role.caps.tools);
        let call = self.calls.iter().find(|call| call.role == *role);
        let held = if tools.is_some_and(|tools| Builtin::STARTING.iter().any(|tool| tools.has(tool.as_str())))
        {
            Err(UnboundedHold::Spawns)
        } else {
            match call.map(|call| (call.cost, call.input, call.turns)) {
                Some((Some(cost), _, turns)) => Ok(cost.saturating_mul(u64::from(turns.unwrap_or(1)))),
                Some((None, None, _)) => Err(UnboundedHold::NoContext),
                Some((None, Some(_), _)) | None => Err(UnboundedHold::Unpriced),
            }
        };
        match (ceiling, held) {
            (Some(ceiling), Ok(held)) => Ok(held.min(ceiling)),
            (Some(ceiling), Err(_)) => Ok(ceiling),
            (None, held) => held,
        }
    }

    /// The most of the whole graph: summed up from its steps, or as many of its dearest run as there may be agents.
    fn in_all(&self, run: RunCost<'_>) -> Option<u64> {
        let summed = self.summed(run).and_then(|steps| steps.checked_add(self.undone(run)?));
        let dearest = self.graph.steps().try_fold(0, |most: u64, (_, node, step)| {
            let budget = node.budget.as_deref().cloned().unwrap_or_default();
            let undo = step.undo.as_ref().map(|undo| run(&budget, &undo.agent_id));
            Some(most.max(run(&budget, &step.agent_id)?).max(undo.unwrap_or(Some(0))?))
        });
        let counted = dearest.and_then(|dearest| dearest.checked_mul(self.agents()));
        summed.into_iter().chain(counted).min()
    }

    /// Members come after their group, so theirs are known first.
    fn summed(&self, run: RunCost<'_>) -> Option<u64> {
        let nodes = self.graph.nodes();
        let mut most: Vec<Option<u64>> = vec![Some(0); nodes.len()];
        for (ix, node) in nodes.iter().enumerate().rev() {
            let budget = node.budget.as_deref().cloned().unwrap_or_default();
            let inner = match &node.kind {
                NodeKind::Ask(_) => Some(0),
                NodeKind::Step(step) => run(&budget, &step.agent_id),
                kind => {
                    let members = node.members().into_iter().flat_map(|members| members.all());
                    let mut each = members.map(|member| most[member as usize]);
                    let once = if let NodeKind::Choose { .. } = kind {
                        each.try_fold(0, |most: u64, member| Some(most.max(member?)))
                    } else {
                        each.try_fold(0, |sum: u64, member| sum.checked_add(member?))
                    };
                    let times = self.factor(ix as NodeIx, node).map_or(Some(1), |factor| factor.number());
                    let all = if once == Some(0) { once } else { once.zip(times).and_then(product) };
                    // The first group's ceiling is the tree's.
                    let ceiling = if ix == 0 { None } else { self.ceiling(&budget) };
                    all.into_iter().chain(ceiling).min()
                }
            };
            most[ix] = inner.zip(Some(u64::from(node.retry) + 1)).and_then(product);
        }
        most.first().copied().flatten()
    }

    /// What takes effects back is outside of every group.
    fn undone(&self, run: RunCost<'_>) -> Option<u64> {
        self.graph.steps().try_fold(0, |sum: u64, (ix, node, step)| {
            let Some(undo) = &step.undo else { return Some(sum) };
            let budget = node.budget.as_deref().cloned().unwrap_or_default();
            let cost = run(&budget, &undo.agent_id)?.checked_mul(self.step(ix, node).runs)?;
            sum.checked_add(cost)
        })
    }
}

/// The length of a list that only the inputs decide.
fn items(over: &Expression, inputs: &BTreeMap<String, Value>) -> Option<u64> {
    if !over.names().all(|name| inputs.contains_key(name)) {
        return None;
    }
    over.value(inputs).ok()?.as_array().map(|items| items.len() as u64)
}

fn product((one, other): (u64, u64)) -> Option<u64> {
    one.checked_mul(other)
}
