//! Models and tools that a program brings itself, in place of what a tree file names or beside it.

use std::collections::BTreeMap;
use std::sync::Arc;

use spinney::Drivers;
use spinney_kernel::port::model::Model;
use spinney_kernel::port::tool::Tool;
use spinney_kernel::primitives::{ModelName, ToolName};

/// Models and tools of the program that runs the trees, by name. Clones share them.
#[derive(Clone, Default)]
pub struct OwnDrivers {
    models: BTreeMap<ModelName, Arc<dyn Model>>,
    tools: BTreeMap<ToolName, Arc<dyn Tool>>,
}

impl OwnDrivers {
    /// Adds a model. A tree file that names it needs neither its key nor its script.
    #[must_use]
    pub fn with_model(mut self, name: ModelName, model: Arc<dyn Model>) -> Self {
        self.models.insert(name, model);
        self
    }

    /// Adds a tool, which tree files may name.
    #[must_use]
    pub fn with_tool(mut self, name: ToolName, tool: Arc<dyn Tool>) -> Self {
        self.tools.insert(name, tool);
        self
    }

    /// Whether it has a model of this name.
    #[must_use]
    pub fn has_model(&self, name: &ModelName) -> bool {
        self.models.contains_key(name)
    }

    /// The names of its tools.
    pub fn tool_names(&self) -> impl Iterator<Item = &ToolName> {
        self.tools.keys()
    }

    /// Puts them in place of those of a tree file.
    #[must_use]
    pub fn over(&self, drivers: Drivers) -> Drivers {
        let models = self.models.iter();
        let drivers =
            models.fold(drivers, |all, (name, model)| all.with_model(name.clone(), Arc::clone(model)));
        let tools = self.tools.iter();
        tools.fold(drivers, |all, (name, tool)| all.with_tool(name.clone(), Arc::clone(tool)))
    }
}
