//! The hosts that the user allows: by name for one start, in their configuration and environment, and when the tree was
//! started.

use spinney_drivers::http::HostName;
use spinney_kernel::primitives::HostRule;

use super::tree_marks::TreeMark;
use crate::user::allowed_host::AllowedHost;
use crate::user::configuration::Configuration;
use crate::user::variables::Variables;

/// Hosts that the user allows.
#[derive(Clone, Debug, Default)]
pub struct AllowedHosts {
    /// By name now, or when the tree was started.
    named: Vec<AllowedHost>,
    /// In the user's configuration.
    configured: Vec<AllowedHost>,
    /// Where the user's own environment sends the keys of these providers.
    open_ai_base_url: Option<String>,
    anthropic_base_url: Option<String>,
}

impl AllowedHosts {
    /// With hosts that are named now.
    pub fn new(named: &[AllowedHost], configuration: &Configuration, user: &Variables) -> Self {
        Self {
            named: named.to_vec(),
            configured: configuration.allow_hosts().to_vec(),
            open_ai_base_url: user.get("OPENAI_BASE_URL"),
            anthropic_base_url: user.get("ANTHROPIC_BASE_URL"),
        }
    }

    pub(super) fn open_ai_base_url(&self) -> Option<&str> {
        self.open_ai_base_url.as_deref()
    }

    pub(super) fn anthropic_base_url(&self) -> Option<&str> {
        self.anthropic_base_url.as_deref()
    }

    /// Adds those that were allowed when a tree was started.
    pub fn add_remembered(&mut self, mark: Option<&TreeMark>) {
        let remembered = mark.into_iter().flat_map(|mark| &mark.hosts);
        self.named.extend(remembered.filter_map(|host| host.parse().ok()));
    }

    /// As they are recorded for a tree.
    pub(super) fn names(&self) -> Vec<String> {
        self.named.iter().map(ToString::to_string).collect()
    }

    /// Whether they have everything that a rule has.
    pub(super) fn cover(&self, rule: &HostRule) -> bool {
        self.named.iter().chain(&self.configured).any(|allowed| allowed.covers(rule))
    }

    pub(super) fn allow(&self, host: &HostName) -> bool {
        self.named.iter().chain(&self.configured).any(|allowed| allowed.allows(host))
    }
}
