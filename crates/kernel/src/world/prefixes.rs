//! Prompt prefixes that several calls share: which call fills the provider's cache, and how long it is filled.

use std::collections::BTreeMap;

use crate::definition::Allow;
use crate::primitives::{CallId, ModelName, RoleName, Time, ToolName, limit};

/// What calls must have in common to share a prefix.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PrefixKey {
    pub(super) model: ModelName,
    pub(super) role: RoleName,
    pub(super) tools: Allow<ToolName>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Prefix {
    /// The running call that others wait for, and when it started.
    pub(crate) leader: Option<(CallId, Time)>,
    /// Until when the provider surely keeps it.
    pub(crate) cached_until: Option<Time>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Prefixes {
    known: BTreeMap<PrefixKey, Prefix>,
    leaders: BTreeMap<CallId, PrefixKey>,
}

impl Prefixes {
    pub(super) fn find(&self, key: &PrefixKey) -> Option<&Prefix> {
        self.known.get(key)
    }

    pub(super) fn is_leader(&self, call: CallId) -> bool {
        self.leaders.contains_key(&call)
    }

    /// A call started that others wait for.
    pub(super) fn lead(&mut self, call: CallId, key: PrefixKey, since: Time) {
        self.known.entry(key.clone()).or_default().leader = Some((call, since));
        self.leaders.insert(call, key);
    }

    /// The provider has cached the prompt of this call, if it leads.
    pub(super) fn cached(&mut self, call: CallId) {
        let Some(prefix) = self.leaders.get(&call).and_then(|key| self.known.get_mut(key)) else { return };
        let since = prefix.leader.map(|(_, since)| since);
        prefix.cached_until =
            since.map(|since| since.after_ms(limit::CACHE_KEPT_MS)).max(prefix.cached_until);
    }

    /// An attempt ended, so no call waits for it any more.
    pub(super) fn end(&mut self, call: CallId) {
        let Some(key) = self.leaders.remove(&call) else { return };
        if let Some(prefix) = self.known.get_mut(&key) {
            prefix.leader = None;
        }
    }
}
