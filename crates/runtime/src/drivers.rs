//! Drivers: the models and tools of a home, by name. A definition is completed from them before its tree starts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use spinney_kernel::definition::{Allow, Builtin, Definition, Role, TokenCounter};
use spinney_kernel::port::model::Model;
use spinney_kernel::port::tool::Tool;
use spinney_kernel::rules::request::{Request, Verb};
use spinney_kernel::words::{ModelName, Part, RoleName, TokenCount, ToolName};

use crate::call_limits::CallLimits;
use crate::hooks::TreeHooks;

/// The models and tools that trees may use.
#[derive(Clone, Default)]
pub struct Drivers {
    models: BTreeMap<ModelName, Arc<dyn Model>>,
    /// For every model without its own.
    any: Option<Arc<dyn Model>>,
    /// One model for each tokenizer.
    counters: Vec<Arc<dyn Model>>,
    tools: BTreeMap<ToolName, Arc<dyn Tool>>,
    hooks: Option<Arc<dyn TreeHooks>>,
    /// Shared by all trees that use these drivers, and by clones.
    limits: Arc<CallLimits>,
}

/// A model or tool that a definition needs and no driver provides.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoDriver {
    /// A model.
    #[error("no driver for model `{model}`: register one under that name")]
    Model {
        /// Its name in the definition.
        model: ModelName,
    },
    /// A tool that a role may call.
    #[error(
        "role `{role}` may call tool `{tool}`, and no such tool is registered: register it, or take it from the role"
    )]
    Tool {
        /// The role that names it.
        role: RoleName,
        /// Its name.
        tool: ToolName,
    },
}

impl Drivers {
    /// No drivers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a model.
    #[must_use]
    pub fn with_model(mut self, name: ModelName, model: Arc<dyn Model>) -> Self {
        self.models.insert(name, model);
        let mut known = BTreeSet::new();
        let models = self.models.values();
        let first = models.filter(|model| model.tokenizer().is_none_or(|name| known.insert(name)));
        self.counters = first.cloned().collect();
        self
    }

    /// Sets the driver of every model that has none of its own: for trees whose models are added while they run.
    #[must_use]
    pub fn with_any_model(mut self, model: Arc<dyn Model>) -> Self {
        self.any = Some(model);
        self
    }

    /// Adds a tool.
    #[must_use]
    pub fn with_tool(mut self, name: ToolName, tool: Arc<dyn Tool>) -> Self {
        self.tools.insert(name, tool);
        self
    }

    /// Adds hooks around every model and tool call.
    #[must_use]
    pub fn with_hooks(mut self, hooks: Arc<dyn TreeHooks>) -> Self {
        self.hooks = Some(hooks);
        self
    }

    /// The names of all tools.
    pub fn tool_names(&self) -> impl Iterator<Item = &ToolName> {
        self.tools.keys()
    }

    pub(crate) const fn hooks(&self) -> Option<&Arc<dyn TreeHooks>> {
        self.hooks.as_ref()
    }

    pub(crate) const fn limits(&self) -> &Arc<CallLimits> {
        &self.limits
    }

    pub(crate) fn model(&self, name: &ModelName) -> Option<&Arc<dyn Model>> {
        self.models.get(name).or(self.any.as_ref())
    }

    pub(crate) fn tool(&self, name: &ToolName) -> Option<&Arc<dyn Tool>> {
        self.tools.get(name)
    }

    /// A text's tokens for every model: a child's answer is read by its parent's model, and a call may use a fallback.
    /// Each tokenizer counts once, however many models share it. Bytes are a bound for every tokenizer.
    pub(crate) fn tokens(&self, text: &str) -> TokenCount {
        let bytes = text.len() as u64;
        let count = |model: &Arc<dyn Model>| {
            let bound = model.tokens(text);
            TokenCount::new(bound, model.estimate(text).unwrap_or(bound))
        };
        let most = self.counters.iter().map(count).reduce(TokenCount::max);
        most.unwrap_or(TokenCount::exact(bytes)).at_most(bytes)
    }

    /// Counts what models will read of a request, once, where it arrives. The journal stores the counts.
    pub(crate) fn count(&self, request: &mut Request) {
        request.count(&|text| self.tokens(text));
    }

    /// Counts an image or a file by its bytes, for every model.
    pub(crate) fn count_part(&self, part: &mut Part, bytes: &[u8]) {
        let Some(bound) = self.counters.iter().map(|model| model.part_tokens(part, bytes)).max() else {
            return;
        };
        let estimate = match (part.is_image(), std::str::from_utf8(bytes)) {
            (false, Ok(text)) => self.tokens(text).estimate(),
            (true, _) | (false, Err(_)) => bound,
        };
        part.count(TokenCount::new(bound, estimate));
    }

    /// Fills in what only drivers know: how to treat lost calls, the tools that roles may call, and all token counts.
    pub(crate) fn fit(&self, mut definition: Definition) -> Result<Definition, NoDriver> {
        for (name, model) in &mut definition.models {
            let driver = self.model(name).ok_or_else(|| NoDriver::Model { model: name.clone() })?;
            model.lost = driver.lost();
            model.counter = match driver.estimate("") {
                Some(_) => TokenCounter::Estimate,
                None => TokenCounter::Exact,
            };
        }
        self.check_tools(&definition)?;
        for (name, tool) in &self.tools {
            if definition.roles.values().any(|role| role.caps.tools.has(name)) {
                definition.tools.insert(name.clone(), tool.spec());
            }
        }
        definition.count(&|text| self.tokens(text));
        Ok(definition)
    }

    /// Whether all drivers of a stored definition exist.
    pub(crate) fn check(&self, definition: &Definition) -> Result<(), NoDriver> {
        match definition.models.keys().find(|name| self.model(name).is_none()) {
            Some(model) => Err(NoDriver::Model { model: model.clone() }),
            None => self.check_tools(definition),
        }
    }

    /// Every tool that a role names must be registered or built in.
    fn check_tools(&self, definition: &Definition) -> Result<(), NoDriver> {
        let is_builtin = |tool: &ToolName| Builtin::ALL.iter().any(|builtin| builtin.word() == tool.as_str());
        for (role, Role { caps, .. }) in &definition.roles {
            let Allow::Only(tools) = &caps.tools else { continue };
            let missing = tools.iter().find(|tool| !is_builtin(tool) && !self.tools.contains_key(*tool));
            if let Some(tool) = missing {
                return Err(NoDriver::Tool { role: role.clone(), tool: tool.clone() });
            }
        }
        Ok(())
    }
}
