//! Capabilities: which models and tools an agent may use and which roles it may spawn. They only shrink downwards,
//! and they are enforced here, not in the prompt.

use std::borrow::Borrow;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::definition::{Builtin, FolderGrants, HostRequests, Network, Refusal};
use crate::primitives::{ModelName, RoleName, ToolName};

/// A right to all or some items of a kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Allow<T: Ord> {
    All,
    Only(BTreeSet<T>),
}

impl<T: Ord + Clone> Allow<T> {
    /// An allowlist as people write it: an empty one allows everything.
    #[must_use]
    pub fn list(items: impl IntoIterator<Item = T>) -> Self {
        let set: BTreeSet<T> = items.into_iter().collect();
        if set.is_empty() { Self::All } else { Self::Only(set) }
    }

    /// Exactly these, even if there are none.
    #[must_use]
    pub fn only(items: impl IntoIterator<Item = T>) -> Self {
        Self::Only(items.into_iter().collect())
    }

    #[must_use]
    pub fn has<Q: Ord + ?Sized>(&self, item: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        match self {
            Self::All => true,
            Self::Only(set) => set.contains(item),
        }
    }

    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::All, set) | (set, Self::All) => set.clone(),
            (Self::Only(a), Self::Only(b)) => Self::Only(a.intersection(b).cloned().collect()),
        }
    }

    /// What `self` allows and `other` does not. Everything exceeds any list.
    fn beyond(&self, other: &Self) -> Beyond<T> {
        match (self, other) {
            (_, Self::All) => Beyond::Nothing,
            (Self::All, Self::Only(_)) => Beyond::Everything,
            (Self::Only(a), Self::Only(b)) => {
                let more: Vec<T> = a.difference(b).cloned().collect();
                if more.is_empty() { Beyond::Nothing } else { Beyond::These(more) }
            }
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::All => 0,
            Self::Only(set) => set.len(),
        }
    }

    fn listed(&self) -> Vec<T> {
        match self {
            Self::All => Vec::new(),
            Self::Only(set) => set.iter().cloned().collect(),
        }
    }
}

enum Beyond<T> {
    Nothing,
    These(Vec<T>),
    Everything,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Caps {
    pub models: Allow<ModelName>,
    /// The subset of those that agents below it may call.
    #[serde(default = "all_models", skip_serializing_if = "is_all")]
    pub below: Allow<ModelName>,
    /// Tools it may call and pass on.
    pub tools: Allow<ToolName>,
    pub spawn: Allow<RoleName>,
    #[serde(default)]
    pub network: Network,
    /// Whether it may ask a person for other hosts, which are then those of one call and never of an agent.
    #[serde(default, skip_serializing_if = "HostRequests::is_refused")]
    pub host_requests: HostRequests,
    /// Folders of the user that it may use and pass on. A role that lists none gets its parent's, and the root without a
    /// list has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folders: Option<FolderGrants>,
    /// How deep below the root its descendants may be.
    pub depth_max: u32,
}

const fn all_models() -> Allow<ModelName> {
    Allow::All
}

const fn is_all(models: &Allow<ModelName>) -> bool {
    matches!(models, Allow::All)
}

impl Caps {
    /// Everything, as far as a role can have it without a person: it may not ask for hosts.
    #[must_use]
    pub const fn all(depth_max: u32) -> Self {
        Self {
            models: Allow::All,
            below: Allow::All,
            tools: Allow::All,
            spawn: Allow::All,
            network: Network::Any,
            host_requests: HostRequests::Refused,
            folders: None,
            depth_max,
        }
    }

    /// The length of its longest list.
    pub(crate) fn len(&self) -> usize {
        let lists = [self.models.len(), self.below.len(), self.tools.len(), self.spawn.len()];
        lists.into_iter().max().unwrap_or_default()
    }

    /// Refuses a model that these rights do not cover.
    ///
    /// # Errors
    /// Names the model and the ones that are allowed.
    pub fn check_model(&self, model: &ModelName) -> Result<(), Refusal> {
        if self.models.has(model) {
            return Ok(());
        }
        Err(Refusal::ModelNotAllowed { model: model.clone(), allowed: self.models.listed() })
    }

    /// Refuses a model that a child with `wanted` rights could not call under this parent.
    ///
    /// # Errors
    /// Names the model and the ones that both allow.
    pub fn check_child_model(&self, wanted: &Self, model: &ModelName) -> Result<(), Refusal> {
        let allowed = self.child_models(wanted);
        if allowed.has(model) {
            return Ok(());
        }
        let allowed = allowed.listed();
        Err(Refusal::ModelNotAllowed { model: model.clone(), allowed })
    }

    /// Refuses a tool that these rights do not cover.
    ///
    /// # Errors
    /// Names the tool and the ones that are allowed.
    pub fn check_tool(&self, tool: &ToolName) -> Result<(), Refusal> {
        if self.tools.has(tool) {
            return Ok(());
        }
        Err(Refusal::ToolNotAllowed { tools: vec![tool.clone()], allowed: self.tools.listed() })
    }

    /// Refuses a role that these rights do not let an agent spawn.
    ///
    /// # Errors
    /// Names the role and the ones that are allowed.
    pub fn check_role(&self, role: &RoleName) -> Result<(), Refusal> {
        if self.spawn.has(role) {
            return Ok(());
        }
        Err(Refusal::RoleNotAllowed { role: role.clone(), allowed: self.spawn.listed() })
    }

    /// The rights of a child with `wanted` under this parent: allowlists of models and roles shrink to what both
    /// allow; if the parent lacks the tools, the network or the folders, the spawn is refused.
    ///
    /// # Errors
    /// Names what the parent lacks.
    pub fn narrowed(&self, wanted: &Self) -> Result<Self, Refusal> {
        let tools = match wanted.tools.beyond(&self.tools) {
            Beyond::Nothing => wanted.tools.clone(),
            // It gives an agent nothing but the end of its own part, so the one above need not have it.
            Beyond::These(tools) if tools.iter().all(|tool| tool.as_str() == Builtin::HandBack.as_str()) => {
                wanted.tools.clone()
            }
            // A role that lists no tools gets its parent's.
            Beyond::Everything => self.tools.clone(),
            Beyond::These(tools) => {
                return Err(Refusal::ToolNotAllowed { tools, allowed: self.tools.listed() });
            }
        };
        self.check_network(&wanted.network)?;
        if wanted.host_requests > self.host_requests {
            return Err(Refusal::HostRequestsNotAllowed);
        }
        let folders = match &wanted.folders {
            Some(folders) => {
                self.check_folders(folders)?;
                Some(folders.clone())
            }
            None => self.folders.clone(),
        };
        Ok(Self {
            models: self.child_models(wanted),
            below: self.below.and(&wanted.below),
            tools,
            spawn: self.spawn.and(&wanted.spawn),
            network: wanted.network.clone(),
            host_requests: wanted.host_requests,
            folders,
            depth_max: self.depth_max.min(wanted.depth_max),
        })
    }

    fn check_network(&self, wanted: &Network) -> Result<(), Refusal> {
        match wanted.beyond(&self.network) {
            Network::Any => Err(Refusal::NetworkNotAllowed),
            hosts if hosts.is_denied() => Ok(()),
            hosts => Err(Refusal::HostNotAllowed { hosts, allowed: self.network.clone() }),
        }
    }

    fn check_folders(&self, wanted: &FolderGrants) -> Result<(), Refusal> {
        let allowed = self.folders.clone().unwrap_or_default();
        let folders = wanted.beyond(&allowed);
        if folders.is_empty() { Ok(()) } else { Err(Refusal::FolderNotAllowed { folders, allowed }) }
    }

    fn child_models(&self, wanted: &Self) -> Allow<ModelName> {
        self.models.and(&self.below).and(&wanted.models)
    }
}
