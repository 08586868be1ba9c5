//! Which names exist where: every value that is read must have been written before it, by exactly one step. Members of
//! a parallel group that read what other members write run after them.

use std::collections::{BTreeMap, BTreeSet};

use super::problem::Problems;
use super::{Graph, GraphPlaces, GraphSurroundings, InputSource, NodeIx, NodeKind, ProblemCode, StepInput};
use crate::primitives::{RoleName, ValueName, limit, nearest};

/// The tree's goal, in every expression.
pub(crate) const GOAL: &str = "goal";
/// The number of the round, from 1, inside a loop.
pub(crate) const ROUND: &str = "round";
/// The number of the item, from 0, inside a map.
pub(crate) const INDEX: &str = "index";

pub(super) fn check(
    graph: &mut Graph,
    places: &GraphPlaces,
    around: &GraphSurroundings<'_>,
    problems: &mut Problems,
) {
    roles(graph, places, around, problems);
    let mut flow = Flow {
        graph,
        places,
        problems,
        writers: BTreeMap::new(),
        given: around.given.iter().copied().collect(),
    };
    flow.writers();
    let edges = flow.reads();
    flow.shared_inputs(around);
    for (member, others) in edges {
        graph.nodes[member as usize].after = others.into_iter().collect();
    }
    cycles(graph, places, problems);
}

fn roles(graph: &Graph, places: &GraphPlaces, around: &GraphSurroundings<'_>, problems: &mut Problems) {
    let mut check = |ix: NodeIx, key: &str, role: &RoleName| {
        if !(around.roles)(role) {
            let help = nearest::help(role.as_str(), around.role_names.iter().copied(), "agents");
            let message = format!("unknown agent `{role}`");
            problems.add(ProblemCode::UnknownAgent, || places.path(ix, key), message, help);
        }
    };
    for (ix, _, step) in graph.steps() {
        check(ix, "agent_id", &step.agent_id);
        if let Some(undo) = step.undo.as_ref().filter(|undo| undo.agent_id != step.agent_id) {
            check(ix, "undo", &undo.agent_id);
        }
    }
}

/// What a name begins with that means a shared value.
const SHARED: &str = StepInput::SHARED_PREFIX;

struct Flow<'a, 'p> {
    graph: &'a Graph,
    places: &'a GraphPlaces,
    problems: &'p mut Problems,
    /// The nodes that write each name, by who can see it. There are several only in the cases of a `choose`.
    writers: BTreeMap<(&'a str, Option<NodeIx>), Vec<NodeIx>>,
    given: BTreeSet<&'a str>,
}

/// One use of a name.
struct Read<'a> {
    node: NodeIx,
    key: &'static str,
    name: &'a str,
    /// Whether nothing is wrong if it has no value.
    optional: bool,
    /// Whether an expression reads it, rather than an agent.
    in_expression: bool,
}

enum Availability {
    Yes,
    /// The first of the two members of a parallel group runs after the second.
    After(NodeIx, NodeIx),
    /// Only a step that comes later writes it.
    Later(NodeIx),
    /// The step itself, or a group around it, writes it.
    Itself,
    No,
}

impl<'a> Flow<'a, '_> {
    fn writers(&mut self) {
        let mut count = 0;
        for (ix, node) in self.graph.nodes.iter().enumerate() {
            let ix = ix as NodeIx;
            let Some(name) = &node.output_to else { continue };
            count += 1;
            if !self.has_value(ix) {
                let (message, help) = match node.kind {
                    NodeKind::Parallel { .. } => {
                        ("a parallel group has no value of its own", "write `output_to` at its members")
                    }
                    _ => (
                        "its value would be that of a parallel group, which has none",
                        "write `output_to` at the members of that group",
                    ),
                };
                self.add(ProblemCode::BadValue, ix, "output_to", message, help);
            }
            if is_builtin(name.as_str()) || self.given.contains(name.as_str()) {
                let message = format!("`{name}` has a value already");
                self.add(ProblemCode::DuplicateOutput, ix, "output_to", message, "choose another name");
            }
            if self.item_above(ix, name) {
                let message = format!("`{name}` is the item of the map around it");
                self.add(ProblemCode::DuplicateOutput, ix, "output_to", message, "choose another name");
            }
            let key = (name.as_str(), self.scope(ix));
            let clash =
                self.writers.get(&key).into_iter().flatten().copied().find(|other| self.clash(*other, ix));
            match clash {
                Some(other) => {
                    let message = format!("`{name}` is the output of `{}`, too", self.graph.node(other).id);
                    self.add(ProblemCode::DuplicateOutput, ix, "output_to", message, "choose another name");
                }
                None => self.writers.entry(key).or_default().push(ix),
            }
        }
        if count > limit::VALUES_MAX {
            let message = format!("the graph has {count} outputs");
            let help = format!(
                "write at most {}; a step needs `output_to` only if something reads it",
                limit::VALUES_MAX
            );
            self.problems.add(ProblemCode::TooLarge, Vec::new, message, help);
        }
    }

    /// Whether a node that succeeds has a value: a parallel group has none, and neither has what ends with one.
    fn has_value(&self, ix: NodeIx) -> bool {
        let node = self.graph.node(ix);
        let is_parallel = |ix| matches!(self.graph.node(ix).kind, NodeKind::Parallel { .. });
        let members =
            || node.members().into_iter().flat_map(|members| members.first..members.first + members.count);
        match &node.kind {
            NodeKind::Step(_) | NodeKind::Ask(_) | NodeKind::Map { .. } => true,
            NodeKind::Parallel { .. } => false,
            NodeKind::Sequence { .. } | NodeKind::Loop { .. } => {
                members().fold(false, |has, member| self.has_value(member) || (has && !is_parallel(member)))
            }
            NodeKind::Race { .. } | NodeKind::Vote { .. } | NodeKind::Choose { .. } => {
                members().all(|member| self.has_value(member))
            }
        }
    }

    /// Whether two nodes that write the same name could both do it in one place.
    fn clash(&self, a: NodeIx, b: NodeIx) -> bool {
        let (around, ..) = self.meet(a, b);
        !matches!(self.graph.node(around).kind, NodeKind::Choose { .. })
    }

    fn item_above(&self, ix: NodeIx, name: &ValueName) -> bool {
        self.graph
            .up(ix)
            .skip(1)
            .any(|above| matches!(&self.graph.node(above).kind, NodeKind::Map { item, .. } if item == name))
    }

    /// The members of which map, race or vote can see what `ix` writes; none for everything.
    fn scope(&self, ix: NodeIx) -> Option<NodeIx> {
        let mut below = ix;
        for above in self.graph.up(ix).skip(1) {
            match &self.graph.node(above).kind {
                NodeKind::Map { .. } => return Some(above),
                NodeKind::Race { .. } | NodeKind::Vote { .. } => return Some(below),
                _ => below = above,
            }
        }
        None
    }

    /// Every scope whose values a node can see, the innermost first.
    fn scopes(&self, ix: NodeIx) -> Vec<Option<NodeIx>> {
        let inner = std::iter::successors(self.scope(ix), |scope| match &self.graph.node(*scope).kind {
            // The members of a map see what is around the map, unless that is the map itself: as a member of a race or
            // vote it is inside its own scope, like any other.
            NodeKind::Map { .. } if self.scope(*scope) != Some(*scope) => self.scope(*scope),
            _ => self.graph.node(*scope).parent.and_then(|parent| self.scope(parent)),
        });
        inner.map(Some).chain([None]).collect()
    }

    fn reads(&mut self) -> BTreeMap<NodeIx, BTreeSet<NodeIx>> {
        let mut edges: BTreeMap<NodeIx, BTreeSet<NodeIx>> = BTreeMap::new();
        let graph = self.graph;
        for ix in 0..graph.nodes.len() as NodeIx {
            for read in reads_of(graph, ix) {
                match self.find(&read) {
                    Availability::Yes => {}
                    Availability::After(member, other) => {
                        edges.entry(member).or_default().insert(other);
                    }
                    Availability::Later(writer) => self.later(&read, writer),
                    Availability::Itself => {
                        let message = format!("`{}` is not written yet here", read.name);
                        let help = "only what comes after it can read it";
                        self.add(ProblemCode::MissingInput, read.node, read.key, message, help);
                    }
                    Availability::No if read.optional => {}
                    Availability::No => self.missing(&read),
                }
            }
        }
        edges
    }

    /// Values that agents write, of which a graph only knows whether any of them can.
    fn shared_inputs(&mut self, around: &GraphSurroundings<'_>) {
        let Some(shared) = &around.shared else { return };
        let graph = self.graph;
        for (ix, node) in (0..).zip(&graph.nodes) {
            if let Some(name) = node.output_to.as_ref().filter(|name| name.as_str().starts_with(SHARED)) {
                let message = format!("`{name}` would be a value that agents write with `write_context`");
                let help = "choose a name that does not begin with `shared.`";
                self.add(ProblemCode::BadValue, ix, "output_to", message, help);
            }
        }
        for (ix, _, step) in graph.steps() {
            for input in step.inputs.iter().filter(|input| input.source == InputSource::Shared) {
                let StepInput { name, .. } = input;
                let (message, help) = if name.is_reserved() {
                    let message = format!("`{name}` cannot be an input");
                    (message, "it changes with every step; an agent reads it with `read_context`".to_owned())
                } else if self.writers.keys().any(|(output, _)| *output == name.as_str()) {
                    (
                        format!("`{name}` is an output of this graph"),
                        format!("write `{name}`, without `shared.`"),
                    )
                } else if !shared.is_known(name) {
                    let meant = nearest::nearest(name.as_str(), &shared.declared());
                    let help = match meant {
                        Some(meant) => format!("did you mean `shared.{meant}`?"),
                        None => shared.help.to_owned(),
                    };
                    (format!("unknown shared value `{name}`"), help)
                } else if !shared.access.may_read(&step.agent_id, name) {
                    let message = format!("`{}` may not read the shared value `{name}`", step.agent_id);
                    (message, "add it to `read` in the rule of that value".to_owned())
                } else if !shared.can_exist(name) {
                    let help = "give an agent that may write it the tool `write_context`".to_owned();
                    (format!("no agent can write the shared value `{name}`"), help)
                } else {
                    continue;
                };
                self.add(ProblemCode::MissingInput, ix, "input_from", message, help);
            }
        }
    }

    fn find(&self, read: &Read<'_>) -> Availability {
        if self.given.contains(read.name) || (read.in_expression && self.is_there(read)) {
            return Availability::Yes;
        }
        let mut best = Availability::No;
        if self.is_item(read) {
            return Availability::Yes;
        }
        let scopes = self.scopes(read.node);
        for writer in scopes.iter().filter_map(|scope| self.writers.get(&(read.name, *scope))).flatten() {
            match self.relation(*writer, read) {
                Availability::Yes => return Availability::Yes,
                found @ Availability::After(..) => best = found,
                found @ (Availability::Later(_) | Availability::Itself)
                    if matches!(best, Availability::No) =>
                {
                    best = found;
                }
                Availability::Later(_) | Availability::Itself | Availability::No => {}
            }
        }
        best
    }

    /// Whether a map around it, or the map itself for its members, names its item so.
    fn is_item(&self, read: &Read<'_>) -> bool {
        self.graph.up(read.node).skip(1).any(|above| match &self.graph.node(above).kind {
            NodeKind::Map { item, .. } => item.as_str() == read.name,
            _ => false,
        })
    }

    /// What every expression can read at its place.
    fn is_there(&self, read: &Read<'_>) -> bool {
        let inside = |of: fn(&NodeKind) -> bool| {
            // A loop's own condition is part of it.
            self.graph.up(read.node).any(|above| of(&self.graph.node(above).kind))
        };
        match read.name {
            GOAL => true,
            ROUND => inside(|kind| matches!(kind, NodeKind::Loop { .. })),
            INDEX => inside(|kind| matches!(kind, NodeKind::Map { .. })),
            _ => false,
        }
    }

    fn relation(&self, writer: NodeIx, read: &Read<'_>) -> Availability {
        if writer == read.node {
            return Availability::Itself;
        }
        let (around, w, r) = self.meet(writer, read.node);
        let is_looped =
            self.graph.up(around).any(|above| matches!(self.graph.node(above).kind, NodeKind::Loop { .. }));
        let may_be_late = is_looped && (read.optional || read.in_expression);
        if around == read.node {
            // A group reads what its members write: a loop after a round, the others before any of them.
            let is_after =
                matches!(self.graph.node(around).kind, NodeKind::Loop { .. }) && read.key == "until";
            return if is_after || may_be_late { Availability::Yes } else { Availability::Later(writer) };
        }
        if around == writer {
            return if may_be_late { Availability::Yes } else { Availability::Itself };
        }
        match &self.graph.node(around).kind {
            NodeKind::Parallel { .. } => Availability::After(r, w),
            NodeKind::Choose { .. } | NodeKind::Race { .. } | NodeKind::Vote { .. } => Availability::No,
            _ if w < r || may_be_late => Availability::Yes,
            _ => Availability::Later(writer),
        }
    }

    /// The innermost node that contains both, and the members of it on the way to each.
    fn meet(&self, a: NodeIx, b: NodeIx) -> (NodeIx, NodeIx, NodeIx) {
        let above: BTreeMap<NodeIx, NodeIx> = {
            let mut below = a;
            self.graph.up(a).map(|ix| (ix, std::mem::replace(&mut below, ix))).collect()
        };
        let mut below = b;
        for ix in self.graph.up(b) {
            if let Some(on_the_way) = above.get(&ix) {
                return (ix, *on_the_way, below);
            }
            below = ix;
        }
        unreachable!("all nodes are below the first")
    }

    fn later(&mut self, read: &Read<'_>, writer: NodeIx) {
        let reads_back = reads_of(self.graph, writer).iter().any(|back| {
            self.graph.node(read.node).output_to.as_ref().is_some_and(|name| name.as_str() == back.name)
        });
        let id = &self.graph.node(writer).id;
        if reads_back {
            let message =
                format!("a cycle: `{}` comes from `{id}`, which reads the output of this one", read.name);
            self.add(
                ProblemCode::Cycle,
                read.node,
                read.key,
                message,
                "let one of the two go first without the other's output",
            );
            return;
        }
        let message = format!("`{}` comes from `{id}`, which runs later", read.name);
        let is_looped =
            self.graph.up(writer).any(|above| matches!(self.graph.node(above).kind, NodeKind::Loop { .. }));
        let help = if is_looped {
            format!("write `{}?` to go without it in the first round", read.name)
        } else {
            format!("move `{id}` up")
        };
        self.add(ProblemCode::MissingInput, read.node, read.key, message, help);
    }

    fn missing(&mut self, read: &Read<'_>) {
        let hidden =
            self.writers.range((read.name, None)..).next().filter(|((name, _), _)| *name == read.name);
        let hidden = hidden.and_then(|(_, writers)| writers.first());
        let message = match hidden {
            Some(writer) => format!(
                "`{}` is an output of `{}`, which cannot be seen from here",
                read.name,
                self.graph.node(*writer).id
            ),
            None => format!("nothing writes `{}`", read.name),
        };
        let known = self.writers.keys().map(|(name, _)| *name).chain(self.given.iter().copied());
        let help = match hidden {
            Some(_) => "give the map, race or vote around it an `output_to`, and read that".to_owned(),
            None if read.name == "inputs" && !self.given.is_empty() => {
                let names = nearest::listed(self.given.iter().copied());
                format!("inputs have names of their own, without `inputs.`: {names}")
            }
            None => nearest::help(read.name, known, "outputs"),
        };
        self.add(ProblemCode::MissingInput, read.node, read.key, message, help);
    }

    fn add(
        &mut self,
        code: ProblemCode,
        ix: NodeIx,
        key: &str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        let places = self.places;
        self.problems.add(code, || places.path(ix, key), message, help);
    }
}

pub(super) fn is_builtin(name: &str) -> bool {
    matches!(name, GOAL | ROUND | INDEX)
}

/// Every name that a node reads itself; its members read their own.
fn reads_of(graph: &Graph, ix: NodeIx) -> Vec<Read<'_>> {
    let node = graph.node(ix);
    let mut reads = Vec::new();
    let mut expression = |key: &'static str, name| {
        reads.push(Read { node: ix, key, name, optional: false, in_expression: true });
    };
    node.when.iter().flat_map(|when| when.names()).for_each(|name| expression("when", name));
    match &node.kind {
        NodeKind::Step(step) => {
            step.task.names().for_each(|name| expression("task_description", name));
            if let Some(undo) = &step.undo {
                // It runs when the step has succeeded, so its own output is there.
                let own = node.output_to.as_ref().map(ValueName::as_str);
                undo.task.names().filter(|name| Some(*name) != own).for_each(|name| expression("undo", name));
            }
            let outputs = step.inputs.iter().filter(|input| input.source == InputSource::Output);
            reads.extend(outputs.map(|input| {
                let (name, optional) = (input.name.as_str(), input.optional);
                Read { node: ix, key: "input_from", name, optional, in_expression: false }
            }));
        }
        NodeKind::Ask(ask) => ask.question.names().for_each(|name| expression("ask", name)),
        NodeKind::Map { over, .. } => over.names().for_each(|name| expression("over", name)),
        NodeKind::Loop { until, .. } => until.names().for_each(|name| expression("until", name)),
        NodeKind::Choose { on, .. } => on.names().for_each(|name| expression("on", name)),
        NodeKind::Sequence { .. }
        | NodeKind::Parallel { .. }
        | NodeKind::Race { .. }
        | NodeKind::Vote { .. } => {}
    }
    reads
}

/// Members of a parallel group that wait for each other in a circle.
fn cycles(graph: &Graph, places: &GraphPlaces, problems: &mut Problems) {
    for node in &graph.nodes {
        let NodeKind::Parallel { members, .. } = &node.kind else { continue };
        if members.all().all(|member| graph.node(member).after.is_empty()) {
            continue;
        }
        let mut waits: BTreeMap<NodeIx, usize> = BTreeMap::new();
        let mut followers: BTreeMap<NodeIx, Vec<NodeIx>> = BTreeMap::new();
        for member in members.all() {
            let after = &graph.node(member).after;
            waits.insert(member, after.len());
            after.iter().for_each(|other| followers.entry(*other).or_default().push(member));
        }
        let mut free: Vec<NodeIx> =
            waits.iter().filter(|(_, count)| **count == 0).map(|(ix, _)| *ix).collect();
        while let Some(member) = free.pop() {
            waits.remove(&member);
            for follower in followers.remove(&member).unwrap_or_default() {
                if let Some(count) = waits.get_mut(&follower) {
                    *count -= 1;
                    if *count == 0 {
                        free.push(follower);
                    }
                }
            }
        }
        if let Some(first) = waits.keys().next() {
            let ids: Vec<String> =
                waits.keys().take(8).map(|ix| format!("`{}`", graph.node(*ix).id)).collect();
            let message = format!("a cycle: {} wait for each other's outputs", ids.join(", "));
            let help = "let one of them go first without the others' output";
            // A group waits for what its members read.
            let reads = graph.node(*first).step().is_some_and(|step| !step.inputs.is_empty());
            let key = if reads { "input_from" } else { "" };
            problems.add(ProblemCode::Cycle, || places.path(*first, key), message, help);
        }
    }
}
