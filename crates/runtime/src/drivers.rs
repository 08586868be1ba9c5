//! Drivers: the models and tools of a home, by name. A definition is fitted to them before its tree starts.

use std::collections::BTreeMap;
use std::sync::Arc;

use spinney_kernel::definition::Definition;
use spinney_kernel::id::{ModelName, ToolName};
use spinney_kernel::port::model::Model;
use spinney_kernel::port::tool::Tool;

/// The models and tools that trees may use.
#[derive(Clone, Default)]
pub struct Drivers {
    models: BTreeMap<ModelName, Arc<dyn Model>>,
    tools: BTreeMap<ToolName, Arc<dyn Tool>>,
}

/// A model of a definition that no driver serves.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no driver for model `{model}`: register one under that name")]
pub struct NoDriver {
    /// Which model.
    pub model: ModelName,
}

impl Drivers {
    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// These, and a model.
    #[must_use]
    pub fn with_model(mut self, name: ModelName, model: Arc<dyn Model>) -> Self {
        self.models.insert(name, model);
        self
    }

    /// These, and a tool.
    #[must_use]
    pub fn with_tool(mut self, name: ToolName, tool: Arc<dyn Tool>) -> Self {
        self.tools.insert(name, tool);
        self
    }

    /// The names of all tools.
    pub fn tool_names(&self) -> impl Iterator<Item = &ToolName> {
        self.tools.keys()
    }

    pub(crate) fn model(&self, name: &ModelName) -> Option<&Arc<dyn Model>> {
        self.models.get(name)
    }

    pub(crate) fn tool(&self, name: &ToolName) -> Option<&Arc<dyn Tool>> {
        self.tools.get(name)
    }

    /// How many tokens a text has at most, whichever model reads it: a child's answer is read by its parent's model, and
    /// a call may go to another model on its way. Bytes are a bound for every tokenizer.
    pub(crate) fn tokens(&self, text: &str) -> u64 {
        let bytes = text.len() as u64;
        self.models.values().map(|model| model.tokens(text)).max().unwrap_or(bytes).min(bytes)
    }

    /// Writes into a definition what only drivers know: what becomes of a lost call, how long a prompt is, and what
    /// the tools are that its roles may call.
    pub(crate) fn fit(&self, mut definition: Definition) -> Result<Definition, NoDriver> {
        for (name, model) in &mut definition.models {
            let driver = self.models.get(name).ok_or_else(|| NoDriver { model: name.clone() })?;
            model.lost = driver.lost();
        }
        for role in definition.roles.values_mut() {
            if let Some(turns) = &mut role.turns {
                turns.prompt.tokens = Some(self.tokens(&turns.prompt.text));
            }
        }
        for (name, tool) in &self.tools {
            if definition.roles.values().any(|role| role.caps.tools.has(name)) {
                definition.tools.insert(name.clone(), tool.spec());
            }
        }
        Ok(definition)
    }

    /// Whether everything that a stored definition needs is here.
    pub(crate) fn check(&self, definition: &Definition) -> Result<(), NoDriver> {
        match definition.models.keys().find(|name| !self.models.contains_key(*name)) {
            Some(model) => Err(NoDriver { model: model.clone() }),
            None => Ok(()),
        }
    }
}
