//! How far a group is: which of its members may begin, and how it ends by its kind and policy.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use spinney_kernel::definition::{
    Graph, GraphNode, Members, NodeIx, NodeKind, OnMaxRounds, OnPartialSuccess,
};
use spinney_kernel::record::{FailureCode, NodeEnd, NodeStart, Skip, StartOf};

use super::super::law::{Law, hold};
use super::{BoundedValue, votes};

#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    of: StartOf,
    live: u32,
    /// Members, items or voters that began; in a loop, in this round.
    begun: Vec<NodeIx>,
    /// Members that ended for good.
    ended: BTreeSet<NodeIx>,
    /// Members that are to begin again, with the number of that attempt.
    again: BTreeMap<(NodeIx, u32), u32>,
    pub(super) round: u32,
    /// The code of the first failure that counts.
    failure: Option<String>,
    winner: Option<u32>,
    /// The value of the member that ended last, or of the winner.
    value: Option<BoundedValue>,
    /// The values of items and voters.
    collected: BTreeMap<u32, BoundedValue>,
    items: Vec<Value>,
}

/// How many members may run at once, if the group does not say so.
#[derive(Clone, Copy)]
pub(super) struct Room {
    pub(super) graph: Option<u32>,
    pub(super) tree: u32,
}

impl Progress {
    pub(super) fn new(start: &NodeStart) -> Self {
        let items = start.items.as_ref().and_then(|items| serde_json::from_str(items).ok());
        Self { of: start.of, items: items.unwrap_or_default(), ..Self::default() }
    }

    pub(super) fn item(&self, place: u32) -> BoundedValue {
        self.items.get(place as usize).cloned()
    }

    /// Whether it starts nothing more because of its own members.
    pub(super) fn stops(&self, node: &GraphNode, policy: OnPartialSuccess) -> bool {
        match &node.kind {
            NodeKind::Race { .. } => self.winner.is_some(),
            NodeKind::Vote { .. } => false,
            _ => self.failure.is_some() && policy == OnPartialSuccess::Fail,
        }
    }

    /// A member begins: it must be the one that is next.
    pub(super) fn begin(
        &mut self,
        graph: &Graph,
        node: &GraphNode,
        start: &NodeStart,
        room: Room,
        scope: &Map<String, Value>,
    ) -> Law {
        let name = &start.name;
        if start.attempt > 0 {
            let again = self.again.remove(&(start.node, start.place));
            hold(again == Some(start.attempt), || format!("{name} begins again out of turn"))?;
            self.live += 1;
            return Ok(());
        }
        let Some(members) = node.members() else { return Err(format!("{name} begins in no group")) };
        let most = |own: Option<u32>| own.or(room.graph).unwrap_or(room.tree).max(1);
        let count = self.begun.len() as u32;
        let (next, most) = match &node.kind {
            NodeKind::Map { max_parallel, .. } if self.of == StartOf::Node => {
                hold(start.of == StartOf::Item && start.place == count, || format!("{name} is not next"))?;
                (Some(start.node), most(*max_parallel))
            }
            NodeKind::Loop { until, max_rounds, .. } => {
                if count == members.count {
                    let goes_on = self.failure.is_none()
                        && self.round + 1 < *max_rounds
                        && until.holds(scope) == Ok(false);
                    hold(goes_on, || format!("{name} begins in a loop that is over"))?;
                    self.round += 1;
                    self.begun.clear();
                }
                hold(start.place == self.round, || format!("{name} is not in round {}", self.round))?;
                (members.at(self.begun.len() as u32), 1)
            }
            NodeKind::Sequence { .. } | NodeKind::Map { .. } => (members.at(count), 1),
            NodeKind::Parallel { max_parallel, .. } => {
                let member = graph.node(start.node);
                let waits = member.after.iter().find(|other| !self.ended.contains(other));
                hold(waits.is_none(), || format!("{name} begins before {waits:?}, whose output it reads"))?;
                hold(!self.begun.contains(&start.node), || format!("{name} begins twice"))?;
                (Some(start.node), most(*max_parallel))
            }
            NodeKind::Race { .. } => (members.at(count), u32::MAX),
            NodeKind::Vote { .. } => {
                hold(start.place == count, || format!("{name} votes out of turn"))?;
                (Some(members.first + count % members.count), u32::MAX)
            }
            NodeKind::Choose { on, cases, .. } => {
                hold(count == 0, || format!("{name} is a second case"))?;
                (case(members, on.value(scope).ok().as_ref(), cases), 1)
            }
            NodeKind::Step(_) | NodeKind::Ask(_) => (None, 0),
        };
        hold(next == Some(start.node), || format!("{name} begins instead of node {next:?}"))?;
        hold(self.live < most, || format!("{name} begins beside {} others", self.live))?;
        self.begun.push(start.node);
        self.live += 1;
        Ok(())
    }

    /// A member ended.
    pub(super) fn member_ended(
        &mut self,
        (node, member): (&GraphNode, &GraphNode),
        start: &NodeStart,
        end: &NodeEnd,
        value: Option<BoundedValue>,
    ) {
        self.live = self.live.saturating_sub(1);
        if let NodeEnd::Failed { retried: true, .. } = end {
            self.again.insert((start.node, start.place), start.attempt + 1);
            return;
        }
        self.ended.insert(start.node);
        let is_race = matches!(node.kind, NodeKind::Race { .. });
        let collects = matches!(node.kind, NodeKind::Map { .. } | NodeKind::Vote { .. });
        if collects && self.of == StartOf::Node {
            self.collected.extend(value.map(|value| (start.place, value)));
        } else if end.is_success() && is_race && self.winner.is_none() {
            (self.winner, self.value) = (Some(start.place), value);
        } else if end.is_success() && !is_race {
            let keeps = !matches!(member.kind, NodeKind::Parallel { .. });
            self.value = value.or_else(|| self.value.take().filter(|_| keeps));
        }
        let counts = start.of == StartOf::Item || member.required || is_race;
        if let (NodeEnd::Failed { error, .. }, true) = (end, counts) {
            self.failure.get_or_insert_with(|| error.code.to_string());
        }
    }

    /// How it must end now.
    pub(super) fn end(
        &self,
        node: &GraphNode,
        is_stopped: bool,
        policy: OnPartialSuccess,
        scope: &Map<String, Value>,
    ) -> Result<NodeEnd, String> {
        hold(self.live == 0, || format!("ends with {} members that run", self.live))?;
        hold(self.again.is_empty(), || "ends and a member was to begin again".to_owned())?;
        let Some(members) = node.members() else { return Ok(NodeEnd::succeeded()) };
        let failed = |code: &str| NodeEnd::failed(FailureCode::from_text(code), "");
        let by_members = || self.failure.as_deref().map_or_else(NodeEnd::succeeded, failed);
        if is_stopped || self.stops(node, policy) {
            return Ok(match (&node.kind, self.winner, &self.failure) {
                (NodeKind::Race { .. }, Some(winner), _) => {
                    NodeEnd::Succeeded { winner: Some(winner), undo: None }
                }
                (_, _, Some(code)) => failed(code),
                _ => NodeEnd::Cancelled,
            });
        }
        let count = self.begun.len() as u32;
        let all = |wanted: u32| hold(count == wanted, || format!("ends after {count} of {wanted} members"));
        Ok(match &node.kind {
            NodeKind::Map { .. } if self.of == StartOf::Node => {
                all(self.items.len() as u32)?;
                by_members()
            }
            NodeKind::Sequence { .. } | NodeKind::Parallel { .. } | NodeKind::Map { .. } => {
                all(members.count)?;
                by_members()
            }
            NodeKind::Race { .. } => {
                all(members.count)?;
                failed(self.failure.as_deref().unwrap_or("nobody_won"))
            }
            NodeKind::Vote { rule, .. } => {
                all(members.count * rule.voters)?;
                votes::end(rule, members.count * rule.voters, &self.collected)
            }
            NodeKind::Loop { until, max_rounds, on_max_rounds, .. } => {
                all(members.count)?;
                match until.holds(scope) {
                    _ if self.failure.is_some() => by_members(),
                    Ok(true) => NodeEnd::succeeded(),
                    Ok(false) if self.round + 1 < *max_rounds => {
                        return Err(format!("ends after round {}", self.round));
                    }
                    Ok(false) if *on_max_rounds == OnMaxRounds::Continue => NodeEnd::succeeded(),
                    Ok(false) => failed("max_rounds"),
                    Err(_) => failed("bad_condition"),
                }
            }
            NodeKind::Choose { on, cases, .. } => match (on.value(scope), count) {
                (_, 1) => by_members(),
                (Err(_), _) => failed("bad_condition"),
                (Ok(value), _) => {
                    let case = case(members, Some(&value), cases);
                    hold(case.is_none(), || format!("ends without node {case:?}"))?;
                    NodeEnd::Skipped { why: Skip::NoCase }
                }
            },
            NodeKind::Step(_) | NodeKind::Ask(_) => NodeEnd::succeeded(),
        })
    }

    /// Its value, if it succeeded.
    pub(super) fn value(&self, node: &GraphNode, end: &NodeEnd) -> Option<BoundedValue> {
        match (&node.kind, end) {
            (NodeKind::Parallel { .. }, _) => None,
            (NodeKind::Map { .. }, _) if self.of == StartOf::Node => {
                let one = |place| match self.collected.get(&place) {
                    Some(known) => known.clone(),
                    None => Some(Value::Null),
                };
                Some((0..self.items.len() as u32).map(one).collect::<Option<Vec<_>>>().map(Value::Array))
            }
            (NodeKind::Vote { .. }, NodeEnd::Succeeded { winner: Some(winner), .. }) => {
                self.collected.get(winner).cloned()
            }
            _ => self.value.clone(),
        }
    }
}

/// The member that a value selects.
fn case(members: &Members, value: Option<&Value>, cases: &[String]) -> Option<NodeIx> {
    let text = match value? {
        Value::String(text) => text.trim().to_owned(),
        other => other.to_string(),
    };
    let found = cases.iter().position(|case| case.trim() == text);
    let place = found.or_else(|| (members.count as usize > cases.len()).then_some(cases.len()))?;
    members.at(place as u32)
}
