//! A stage: a home with scripted models and tools, for tests of whole trees.

use std::path::Path;
use std::sync::Arc;

use spinney::bus::RecordedEvent;
use spinney::bus::Watch;
use spinney::clock::{Clock, SystemClock};
use spinney::rng::Rng;
use spinney::tree::TreeSnapshot;
use spinney::{Drivers, Home, Tree};
use spinney_drivers::files::{FileTool, Files};
use spinney_journal::Journal;
use spinney_kernel::definition::Definition;
use spinney_kernel::port::tool::Tool;
use spinney_kernel::primitives::ToolName;
use spinney_store::MemoryJournal;

use crate::fixture::{self, parse};
use crate::recorder::Recorder;
use crate::scripted::{Script, ScriptedModel};

/// A home whose models and tools play a script. Every model of a fixture is the same scripted one.
pub struct TestHome {
    journal: Arc<dyn Journal>,
    model: Arc<Recorder<ScriptedModel>>,
    drivers: Drivers,
    /// One for all homes, so time passes between them.
    clock: Arc<SystemClock>,
    seed: u64,
}

impl TestHome {
    /// A stage with a journal in memory.
    ///
    /// # Panics
    /// If the script is invalid.
    #[must_use]
    pub fn new(script: &str) -> Self {
        Self::on(Arc::new(MemoryJournal::new()), script)
    }

    /// A stage on a journal.
    ///
    /// # Panics
    /// If the script is invalid.
    #[must_use]
    pub fn on(journal: Arc<dyn Journal>, script: &str) -> Self {
        let script = Script::parse("script.yaml", script).unwrap_or_else(|error| panic!("{error}"));
        let model = Arc::new(Recorder::new(script.model()));
        let mut drivers = Drivers::new();
        for name in ["m", "cheap", "free"] {
            drivers = drivers.with_model(parse(name), Arc::<Recorder<ScriptedModel>>::clone(&model));
        }
        for (name, tool) in script.tools() {
            drivers = drivers.with_tool(name, Arc::new(tool));
        }
        Self { journal, model, drivers, clock: Arc::new(SystemClock::new()), seed: 1 }
    }

    /// This, with one more tool.
    #[must_use]
    pub fn with_tool(mut self, name: &str, tool: impl Tool + 'static) -> Self {
        let name: ToolName = parse(name);
        self.drivers = self.drivers.with_tool(name, Arc::new(tool));
        self
    }

    /// This, with the file tools, whose workspaces are below a folder.
    #[must_use]
    pub fn with_files(mut self, folder: &Path) -> Self {
        let files = Files::default();
        for tool in FileTool::ALL {
            self.drivers = self.drivers.with_tool(tool.name(), files.tool(tool));
        }
        self.drivers =
            self.drivers.with_workspaces(folder.join("workspace")).with_folder_filler(Arc::new(files));
        self
    }

    /// This, with other draws.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Its journal.
    #[must_use]
    pub fn journal(&self) -> &Arc<dyn Journal> {
        &self.journal
    }

    /// Its model, and what that was asked.
    #[must_use]
    pub fn model(&self) -> &Recorder<ScriptedModel> {
        &self.model
    }

    /// A home on this stage; opening another one is what a restart is.
    #[must_use]
    pub fn home(&self) -> Home {
        self.home_on(Arc::<SystemClock>::clone(&self.clock))
    }

    /// A home on this stage whose drivers are changed first: a model more, say.
    #[must_use]
    pub fn home_with(&self, change: impl FnOnce(Drivers) -> Drivers) -> Home {
        let (drivers, clock) = (change(self.drivers.clone()), Arc::<SystemClock>::clone(&self.clock));
        Home::open_with(Arc::clone(&self.journal), drivers, clock, Rng::seeded(self.seed))
    }

    /// A home on this stage, with a clock of the caller's own.
    #[must_use]
    pub fn home_on(&self, clock: Arc<dyn Clock>) -> Home {
        Home::open_with(Arc::clone(&self.journal), self.drivers.clone(), clock, Rng::seeded(self.seed))
    }

    /// Starts the tree of a fixture in a home.
    ///
    /// # Panics
    /// If it is refused.
    pub async fn start(&self, home: &Home, fixture: &str) -> Tree {
        home.start(definition(fixture)).await.unwrap_or_else(|error| panic!("{error}"))
    }
}

/// Runs a tree until it cannot continue on its own, and returns its view.
///
/// # Panics
/// If the tree is no longer run.
pub async fn settled(tree: &Tree) -> TreeSnapshot {
    tree.settled().await;
    tree.snapshot().await.unwrap_or_else(|error| panic!("{error}"))
}

/// Every event of a tree that has ended or is no longer run.
///
/// # Panics
/// If the journal cannot be read.
pub async fn recorded(tree: &Tree) -> Vec<RecordedEvent> {
    let mut events = tree.watch(Watch::default());
    let mut all = Vec::new();
    while let Some(traced) = events.next_event().await {
        all.push(traced.unwrap_or_else(|fault| panic!("{fault}")).recorded.clone());
    }
    all
}

/// The definition of a fixture without its own tools: the script has those.
#[must_use]
pub fn definition(fixture: &str) -> Definition {
    Definition { tools: Default::default(), ..fixture::definition(&fixture::plants(fixture)) }
}
