//! Which roles can be started, by whom, and why others never can. Rights are narrowed as the kernel narrows them. A role
//! counts as startable if any chain of parents allows it; whether it already is among its own ancestors is not followed,
//! except for the root and for itself, so a warning is never wrong.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use spinney_kernel::definition::{
    Allow, BudgetSpec, Builtin, Caps, Definition, FolderGrants, Graph, OnLow, Recursion, Refusal, Role,
    ValueAccess,
};
use spinney_kernel::primitives::{ModelName, RoleName, ToolName};

/// Most spawns that are tried. Files that people write need far fewer; beyond it every role counts as startable.
const TRIED_MAX: usize = 20_000;

/// Who can start whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// Every role that can be started, with the roles that its agents can spawn.
    pub spawns: BTreeMap<RoleName, BTreeSet<RoleName>>,
    /// The refusals that a role met where it could not be spawned, each with the role of the parent.
    pub refused: BTreeMap<RoleName, Vec<(RoleName, Refusal)>>,
    /// Whether everything was tried.
    pub is_whole: bool,
}

impl Reach {
    /// Starts at the root.
    #[must_use]
    pub fn new(definition: &Definition) -> Self {
        let mut reach = Self { is_whole: true, ..Self::default() };
        let mut waiting: VecDeque<(RoleName, Caps, u32)> = VecDeque::new();
        // A graph has every right except folders, and bounds the depth of its steps itself.
        let first: Vec<(&RoleName, u32)> = match definition.graph.as_deref() {
            Some(graph) => step_roles(graph).into_iter().map(|role| (role, 1)).collect(),
            None => vec![(&definition.entry, 0)],
        };
        for (name, depth) in first {
            match definition.roles.get(name) {
                Some(role) => {
                    let mut caps = role.caps.clone();
                    caps.depth_max = caps.depth_max.min(definition.limits.depth_max);
                    caps.folders = caps.folders.or_else(|| definition.folders.clone());
                    waiting.push_back((name.clone(), caps, depth));
                }
                None => reach.is_whole = false,
            }
        }
        let mut seen = BTreeSet::new();
        let mut tried = 0;
        while let Some((name, caps, depth)) = waiting.pop_front() {
            // The shortest way comes first, so a later one at the same rights allows nothing more.
            if !seen.insert((name.clone(), state(&caps))) {
                continue;
            }
            reach.spawns.entry(name.clone()).or_default();
            if !spawns(&caps.tools) {
                continue;
            }
            for (child, role) in &definition.roles {
                tried += 1;
                if tried > TRIED_MAX {
                    reach.is_whole = false;
                    return reach;
                }
                let is_above = *child == definition.entry || *child == name;
                if !caps.spawn.has(child) || (is_above && role.recursive == Recursion::Refused) {
                    continue;
                }
                let model = role.program.is_none().then_some(&role.model);
                match spawned(&caps, depth, &role.caps, model) {
                    Ok(narrowed) => {
                        reach.spawns.entry(name.clone()).or_default().insert(child.clone());
                        waiting.push_back((child.clone(), narrowed, depth + 1));
                    }
                    Err(refusal) => reach.refuse(child, &name, refusal),
                }
            }
        }
        reach
    }

    /// Whether agents of this role can be started.
    #[must_use]
    pub fn has(&self, role: &RoleName) -> bool {
        !self.is_whole || self.spawns.contains_key(role)
    }

    /// The models that agents may choose for those that they spawn, each with the role of the agent that chooses: any model
    /// that it allows below it.
    pub(super) fn chosen<'d>(
        &self,
        definition: &'d Definition,
    ) -> impl Iterator<Item = (&'d Role, &'d ModelName)> {
        let choosers = definition.roles.iter().filter(|(name, role)| {
            spawns(&role.caps.tools) && role.caps.spawn != Allow::only([]) && self.has(name)
        });
        choosers.flat_map(|(_, role)| {
            let models = definition.models.keys().filter(|model| role.caps.below.has(*model));
            models.map(move |model| (role, model))
        })
    }

    /// Models that no agent can use and that nothing in the definition names.
    #[must_use]
    pub fn unused_models<'d>(&self, definition: &'d Definition) -> Vec<&'d ModelName> {
        if !self.is_whole {
            return Vec::new();
        }
        let mut used: BTreeSet<&ModelName> = BTreeSet::new();
        used.extend(downgrade(&definition.budget));
        used.extend(step_budgets(definition).filter_map(downgrade));
        for role in definition.roles.values() {
            // The model of a role that can never start is named with the role.
            used.insert(&role.model);
            used.extend(downgrade(&role.budget));
        }
        used.extend(self.chosen(definition).map(|(_, model)| model));
        let mut left: Vec<&ModelName> = used.iter().copied().collect();
        while let Some(name) = left.pop() {
            let fallback = definition.models.get(name).map_or(&[][..], |model| &model.fallback);
            left.extend(fallback.iter().filter(|model| used.insert(model)));
        }
        definition.models.keys().filter(|model| !used.contains(model)).collect()
    }

    /// The definition without models that no agent can use, and without the roles that can never start and need one of them.
    /// A tree of it needs no key for them. Other roles stay: a refusal to start one says why.
    #[must_use]
    pub fn pruned(&self, mut definition: Definition) -> Definition {
        let mut started = definition.clone();
        started.roles.retain(|name, _| self.has(name));
        let unused: Vec<ModelName> = self.unused_models(&started).into_iter().cloned().collect();
        let needs_one = |role: &Role| {
            [Some(&role.model), downgrade(&role.budget)]
                .into_iter()
                .flatten()
                .any(|model| unused.contains(model))
        };
        definition.roles.retain(|name, role| self.has(name) || !needs_one(role));
        let roles = definition.roles.keys().cloned().collect::<BTreeSet<_>>();
        let kept = |listed: &Option<BTreeSet<RoleName>>| {
            Some(listed.as_ref()?.intersection(&roles).cloned().collect())
        };
        let rules = definition.shared.rules();
        let rules = rules.map(|(name, access)| {
            let access = ValueAccess { read: kept(&access.read), write: kept(&access.write) };
            (name.clone(), access)
        });
        definition.shared = rules.collect();
        definition.models.retain(|name, _| !unused.contains(name));
        definition
    }

    fn refuse(&mut self, child: &RoleName, parent: &RoleName, refusal: Refusal) {
        let refused = self.refused.entry(child.clone()).or_default();
        if !refused.iter().any(|(known, _)| known == parent) {
            refused.push((parent.clone(), refusal));
        }
    }
}

/// The roles that the steps of a graph name.
pub(super) fn step_roles(graph: &Graph) -> BTreeSet<&RoleName> {
    let roles = graph.steps().flat_map(|(_, _, step)| {
        std::iter::once(&step.agent_id).chain(step.undo.as_ref().map(|undo| &undo.agent_id))
    });
    roles.collect()
}

/// The budgets of steps and groups.
pub(super) fn step_budgets(definition: &Definition) -> impl Iterator<Item = &BudgetSpec> {
    let nodes = definition.graph.iter().flat_map(|graph| graph.nodes());
    nodes.filter_map(|node| node.budget.as_deref())
}

/// The model that agents with this budget use when it is low.
pub(super) const fn downgrade(budget: &BudgetSpec) -> Option<&ModelName> {
    match &budget.on_low {
        Some(OnLow::Downgrade(model)) => Some(model),
        Some(OnLow::Halt | OnLow::Shrink) | None => None,
    }
}

/// Whether agents with these tools can start others.
pub(super) fn spawns(tools: &Allow<ToolName>) -> bool {
    Builtin::STARTING.iter().any(|tool| tools.has(tool.as_str()))
}

/// The rights of a child, in the order in which the kernel checks them.
fn spawned(parent: &Caps, depth: u32, wanted: &Caps, model: Option<&ModelName>) -> Result<Caps, Refusal> {
    if depth >= parent.depth_max {
        return Err(Refusal::DepthLimit { depth, depth_max: parent.depth_max });
    }
    model.map_or(Ok(()), |model| parent.check_child_model(wanted, model))?;
    parent.narrowed(wanted)
}

type CapsState = (Allow<ModelName>, Allow<ModelName>, Allow<RoleName>, Option<FolderGrants>, u32);

/// What differs between two agents of one role. Its tools never do.
fn state(caps: &Caps) -> CapsState {
    (caps.models.clone(), caps.below.clone(), caps.spawn.clone(), caps.folders.clone(), caps.depth_max)
}
