//! Drivers: the models and tools of a tree, by name, and where a home gets them. A definition is completed from them before
//! its tree starts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, ready, try_join_all};
use spinney_kernel::definition::{Allow, Builtin, Definition, RedactionSpec, Role, TokenCounter};
use spinney_kernel::port::model::Model;
use spinney_kernel::port::program::ProgramStarter;
use spinney_kernel::port::tool::Tool;
use spinney_kernel::port::{FolderFiller, OfferedTool, ToolDiscovery, ToolSource};
use spinney_kernel::primitives::{
    Millis, ModelName, Part, RoleName, TokenCount, ToolName, TreeId, is_hostile, limit,
};
use spinney_kernel::rules::request::{Request, Verb};
use tokio::time::timeout;

use crate::redaction::Redactor;

/// Where a home gets the drivers of its trees. Each tree has its own, so trees whose models have the same names and
/// different drivers run side by side. [`Drivers`] themselves are a source: the same ones for every tree.
pub trait DriverSource: Send + Sync {
    /// The drivers of a tree that is about to start or to be resumed.
    ///
    /// # Errors
    /// Which driver is missing. Then the tree does not run.
    fn drivers<'a>(
        &'a self,
        tree: TreeId,
        definition: &'a Definition,
    ) -> BoxFuture<'a, Result<Drivers, NoDriver>>;

    /// Models that count the tokens of a request to a tree that is not running. None of them is called, so they need no
    /// keys. A request must be possible whatever became of the tree's files, so there is no error: without a model,
    /// bytes are counted, which is a bound.
    fn counters<'a>(&'a self, tree: TreeId, definition: &'a Definition) -> BoxFuture<'a, Drivers> {
        let _ = (tree, definition);
        ready(Drivers::new()).boxed()
    }
}

impl<S: DriverSource + ?Sized> DriverSource for Arc<S> {
    fn drivers<'a>(
        &'a self,
        tree: TreeId,
        definition: &'a Definition,
    ) -> BoxFuture<'a, Result<Drivers, NoDriver>> {
        (**self).drivers(tree, definition)
    }

    fn counters<'a>(&'a self, tree: TreeId, definition: &'a Definition) -> BoxFuture<'a, Drivers> {
        (**self).counters(tree, definition)
    }
}

impl DriverSource for Drivers {
    fn drivers<'a>(&'a self, _: TreeId, _: &'a Definition) -> BoxFuture<'a, Result<Drivers, NoDriver>> {
        ready(Ok(self.clone())).boxed()
    }

    fn counters<'a>(&'a self, _: TreeId, _: &'a Definition) -> BoxFuture<'a, Drivers> {
        ready(self.clone()).boxed()
    }
}

/// The models and tools that a tree may use. Clones share them.
#[derive(Clone, Default)]
pub struct Drivers {
    set: Arc<DriverSet>,
}

#[derive(Clone, Default)]
struct DriverSet {
    models: BTreeMap<ModelName, Arc<dyn Model>>,
    /// For every model without its own.
    any: Option<Arc<dyn Model>>,
    /// One model for each tokenizer.
    counters: Vec<Arc<dyn Model>>,
    tools: BTreeMap<ToolName, Arc<dyn Tool>>,
    /// Those that were not asked yet.
    tool_sources: Vec<Arc<dyn ToolSource>>,
    workspaces: Option<Arc<Path>>,
    filler: Option<Arc<dyn FolderFiller>>,
    program_starter: Option<Arc<dyn ProgramStarter>>,
    redactor: Option<Redactor>,
    redacts_journal: bool,
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
        "role `{role}` may call tool `{tool}`, but no such tool is registered: register it, or remove it from the role"
    )]
    Tool {
        /// The role that names it.
        role: RoleName,
        /// Its name.
        tool: ToolName,
    },
    /// The program of a role.
    #[error("agents of role `{role}` are programs, and nothing here runs programs")]
    Program {
        /// The role.
        role: RoleName,
    },
    /// A source of tools failed, or took too long.
    #[error("`{source_name}` cannot be used: {message}")]
    Discovery {
        /// Its name.
        source_name: String,
        /// The reason.
        message: String,
    },
    /// A source offers a tool whose name is taken: built in, registered, or offered by another source.
    #[error(
        "`{source_name}` offers tool `{tool}`, but there is already one with that name: rename one of them"
    )]
    ToolTwice {
        /// The name of the source.
        source_name: String,
        /// The tool.
        tool: ToolName,
    },
    /// The source cannot make the drivers of this tree.
    #[error("{message}")]
    Source {
        /// Why, and what to do.
        message: String,
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
        let set = Arc::make_mut(&mut self.set);
        set.models.insert(name, model);
        let mut known = BTreeSet::new();
        let models = set.models.values();
        let first = models.filter(|model| model.tokenizer().is_none_or(|name| known.insert(name)));
        set.counters = first.cloned().collect();
        self
    }

    /// Sets the driver of every model that has none of its own: for trees whose models are added while they run.
    #[must_use]
    pub fn with_any_model(mut self, model: Arc<dyn Model>) -> Self {
        Arc::make_mut(&mut self.set).any = Some(model);
        self
    }

    /// Adds a tool.
    #[must_use]
    pub fn with_tool(mut self, name: ToolName, tool: Arc<dyn Tool>) -> Self {
        Arc::make_mut(&mut self.set).tools.insert(name, tool);
        self
    }

    /// Adds a source of tools, which is asked for them when a tree starts or is resumed.
    #[must_use]
    pub fn with_tool_source(mut self, source: Arc<dyn ToolSource>) -> Self {
        Arc::make_mut(&mut self.set).tool_sources.push(source);
        self
    }

    /// Gives each agent a folder, `ROOT/TREE/AGENT`, which comes with each of its calls
    /// ([`ToolAttempt::workspace`](spinney_kernel::port::tool::ToolAttempt::workspace)). The drivers that use the folders
    /// create them.
    #[must_use]
    pub fn with_workspaces(mut self, root: impl AsRef<Path>) -> Self {
        Arc::make_mut(&mut self.set).workspaces = Some(root.as_ref().into());
        self
    }

    /// Fills the folders of agents from the journal when their tree is resumed. Without it, they keep what is in them.
    #[must_use]
    pub fn with_folder_filler(mut self, filler: Arc<dyn FolderFiller>) -> Self {
        Arc::make_mut(&mut self.set).filler = Some(filler);
        self
    }

    /// Sets who starts the programs that are agents. A tree with such agents also needs a home that runs them
    /// ([`Home::with_programs`](crate::Home::with_programs)).
    #[must_use]
    pub fn with_program_starter(mut self, starter: Arc<dyn ProgramStarter>) -> Self {
        Arc::make_mut(&mut self.set).program_starter = Some(starter);
        self
    }

    /// Redacts what the models and tools of a tree stream. Its events are as they were recorded: who shows them redacts them.
    #[must_use]
    pub fn with_redactor(mut self, redactor: Redactor) -> Self {
        Arc::make_mut(&mut self.set).redactor = Some(redactor);
        self
    }

    /// Redacts what the definition of their tree says.
    pub(crate) fn redacting(mut self, spec: &RedactionSpec) -> Self {
        if spec.journal {
            let set = Arc::make_mut(&mut self.set);
            set.redactor.get_or_insert_default();
            set.redacts_journal = true;
        }
        self
    }

    /// The names of all tools.
    pub fn tool_names(&self) -> impl Iterator<Item = &ToolName> {
        self.set.tools.keys()
    }

    pub(crate) fn model(&self, name: &ModelName) -> Option<&Arc<dyn Model>> {
        self.set.models.get(name).or(self.set.any.as_ref())
    }

    pub(crate) fn workspaces(&self) -> Option<&Arc<Path>> {
        self.set.workspaces.as_ref()
    }

    pub(crate) fn filler(&self) -> Option<&Arc<dyn FolderFiller>> {
        self.set.filler.as_ref()
    }

    pub(crate) fn program_starter(&self) -> Option<&Arc<dyn ProgramStarter>> {
        self.set.program_starter.as_ref()
    }

    pub(crate) fn redactor(&self) -> Option<&Redactor> {
        self.set.redactor.as_ref()
    }

    /// What redacts answers and outputs before they are reported, if the journal of the tree has no secrets.
    pub(crate) fn journal_redactor(&self) -> Option<&Redactor> {
        self.set.redactor.as_ref().filter(|_| self.set.redacts_journal)
    }

    pub(crate) fn tool(&self, name: &ToolName) -> Option<&Arc<dyn Tool>> {
        self.set.tools.get(name)
    }

    /// A text's tokens for every model: a child's answer is read by its parent's model, and a call may use a fallback.
    /// Each tokenizer counts once, however many models share it. Bytes are a bound for every tokenizer.
    pub(crate) fn tokens(&self, text: &str) -> TokenCount {
        let bytes = text.len() as u64;
        let count = |model: &Arc<dyn Model>| {
            let bound = model.tokens(text);
            TokenCount::new(bound, model.estimate(text).unwrap_or(bound))
        };
        let most = self.set.counters.iter().map(count).reduce(TokenCount::max);
        most.unwrap_or(TokenCount::exact(bytes)).at_most(bytes)
    }

    /// Counts what models will read of a request, once, where it arrives. The journal stores the counts.
    pub(crate) fn count(&self, request: &mut Request) {
        request.count(&|text| self.tokens(text));
    }

    /// Counts an image or a file by its bytes, for every model.
    pub(crate) fn count_part(&self, part: &mut Part, bytes: &[u8]) {
        let Some(bound) = self.set.counters.iter().map(|model| model.part_tokens(part, bytes)).max() else {
            return;
        };
        let estimate = match (part.is_image(), std::str::from_utf8(bytes)) {
            (false, Ok(text)) => self.tokens(text).estimate(),
            (true, _) | (false, Err(_)) => bound,
        };
        part.count(TokenCount::new(bound, estimate));
    }

    /// These, with the tools that their sources offer to a tree in place of the sources. All are asked at the same time. A
    /// home does this itself; [`first_call`](Self::first_call) needs it before.
    ///
    /// # Errors
    /// If a source fails or takes too long, or a name is taken.
    pub async fn discovered(mut self, tree: TreeId, definition: &Definition) -> Result<Self, NoDriver> {
        if self.set.tool_sources.is_empty() {
            return Ok(self);
        }
        let set = Arc::make_mut(&mut self.set);
        let mut discovery = ToolDiscovery::new(tree, Arc::new(definition.clone()));
        discovery.workspaces = set.workspaces.clone();
        let sources = std::mem::take(&mut set.tool_sources);
        let offers = sources.iter().map(|source| offered(source.as_ref(), discovery.clone()));
        for (source, offers) in sources.iter().zip(try_join_all(offers).await?) {
            for OfferedTool { name, tool, .. } in offers {
                if is_builtin(&name) || set.tools.contains_key(&name) {
                    return Err(NoDriver::ToolTwice { source_name: source.name().to_owned(), tool: name });
                }
                set.tools.insert(name, tool);
            }
        }
        Ok(self)
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
        self.check_programs(&definition)?;
        for (name, tool) in &self.set.tools {
            if definition.roles.values().any(|role| role.caps.tools.has(name)) {
                definition.tools.insert(name.clone(), tool.spec());
            }
        }
        definition.count(&|text| self.tokens(text));
        Ok(definition)
    }

    /// Whether all drivers of a stored definition exist.
    pub(crate) fn check(&self, definition: &Definition) -> Result<(), NoDriver> {
        self.check_programs(definition)?;
        // Programs name models as they call them: the tree has some that its file does not have.
        let calls_others = definition.programs().next().is_some();
        match definition.models.keys().find(|name| !calls_others && self.model(name).is_none()) {
            Some(model) => Err(NoDriver::Model { model: model.clone() }),
            None => self.check_tools(definition),
        }
    }

    fn check_programs(&self, definition: &Definition) -> Result<(), NoDriver> {
        match definition.programs().next() {
            Some((role, ..)) if self.set.program_starter.is_none() => {
                Err(NoDriver::Program { role: role.clone() })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Every tool that a role names must be registered or built in.
    fn check_tools(&self, definition: &Definition) -> Result<(), NoDriver> {
        for (role, Role { caps, .. }) in &definition.roles {
            let Allow::Only(tools) = &caps.tools else { continue };
            let missing = tools.iter().find(|tool| !is_builtin(tool) && !self.set.tools.contains_key(*tool));
            if let Some(tool) = missing {
                return Err(NoDriver::Tool { role: role.clone(), tool: tool.clone() });
            }
        }
        Ok(())
    }
}

async fn offered(source: &dyn ToolSource, discovery: ToolDiscovery) -> Result<Vec<OfferedTool>, NoDriver> {
    let most = limit::TOOL_DISCOVERY_MS_MAX;
    let message = match timeout(Duration::from_millis(most), source.tools(discovery)).await {
        Ok(Ok(tools)) => return Ok(tools),
        Ok(Err(fault)) if fault.message.is_empty() => fault.kind.as_str().to_owned(),
        Ok(Err(fault)) => {
            let shown = fault.message.chars().take(limit::NOTE_BYTES_MAX);
            shown.map(|c| if is_hostile(c) || c == '\n' { ' ' } else { c }).collect()
        }
        Err(_) => format!("it did not answer within {}", Millis(most)),
    };
    Err(NoDriver::Discovery { source_name: source.name().to_owned(), message })
}

fn is_builtin(tool: &ToolName) -> bool {
    Builtin::ALL.iter().any(|builtin| builtin.as_str() == tool.as_str())
}
