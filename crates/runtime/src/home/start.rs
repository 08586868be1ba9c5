//! Starts trees, once every model and tool of their definition has a driver.

use spinney_journal::JournalFault;
use spinney_kernel::definition::{Definition, Refusal};
use spinney_kernel::primitives::{SourceFiles, SourceName, TraceParent, TreeId};
use spinney_kernel::rules::request::{Request, Start};

use super::Home;
use crate::drivers::NoDriver;
use crate::output_schema;
use crate::tree::{Stopped, Tree, begin};

/// What a tree can start with besides its definition.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct StartOptions {
    /// Its id; a new one if `None`.
    pub id: Option<TreeId>,
    /// The trace that its caller belongs to.
    pub trace: Option<TraceParent>,
    /// Files that it is resumed from, with their bytes.
    pub sources: Vec<(SourceName, Vec<u8>)>,
}

impl StartOptions {
    /// Starts the tree under an id from [`Home::draw_id`], for callers that prepare something for it first.
    #[must_use]
    pub const fn with_id(mut self, id: TreeId) -> Self {
        self.id = Some(id);
        self
    }

    /// Records the trace of the caller, if there is one: the `traceparent` of W3C Trace Context.
    #[must_use]
    pub const fn with_trace(mut self, trace: Option<TraceParent>) -> Self {
        self.trace = trace;
        self
    }

    /// Keeps files in the tree's journal that it is resumed from, such as the file that its definition was read from.
    /// They hold no secrets: a journal may be copied and shown.
    #[must_use]
    pub fn with_sources(mut self, sources: Vec<(SourceName, Vec<u8>)>) -> Self {
        self.sources = sources;
        self
    }
}

/// Why a tree could not be started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Its definition is invalid.
    #[error(transparent)]
    Refused(Refusal),
    /// A driver is missing.
    #[error(transparent)]
    NoDriver(NoDriver),
    /// The journal failed.
    #[error(transparent)]
    Journal(JournalFault),
    /// The home is being shut down.
    #[error("the home is being shut down: open it again to start trees")]
    Shutdown,
}

impl Home {
    /// Starts a tree. It is durable when this returns, so its id stays valid after a crash.
    ///
    /// # Errors
    /// What is wrong with the definition, which driver is missing, or the journal's fault. Then nothing runs.
    pub async fn start(&self, definition: Definition) -> Result<Tree, StartError> {
        self.start_with(definition, StartOptions::default()).await
    }

    /// An id for a tree that is about to start.
    #[must_use]
    pub fn draw_id(&self) -> TreeId {
        self.rng().tree_id(self.clock.now_ms())
    }

    /// Starts a tree with more than its definition.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn start_with(
        &self,
        definition: Definition,
        options: StartOptions,
    ) -> Result<Tree, StartError> {
        let StartOptions { id, trace, sources } = options;
        let (sources, blobs) =
            SourceFiles::enclose(sources).map_err(|error| StartError::Refused(error.into()))?;
        let id = id.unwrap_or_else(|| self.draw_id());
        let starting = self.starting.read().await;
        let lock = self.lock_tree(id).await;
        if self.stop.is_cancelled() {
            return Err(StartError::Shutdown);
        }
        self.check_programs(&definition).map_err(StartError::NoDriver)?;
        let drivers = self.drivers(id, &definition).await.ok_or(StartError::Shutdown)?;
        let drivers = drivers.map_err(StartError::NoDriver)?;
        let definition = drivers.fit(definition).map_err(StartError::NoDriver)?;
        let stop = self.stop.child_token();
        let seed = begin(self.begin(id, &stop)).await.map_err(StartError::Journal)?;
        let mut start = Request::Start(Start { trace, sources, ..Start::new(definition) });
        output_schema::check_request(&start).map_err(StartError::Refused)?;
        drivers.count(&mut start);
        let mut prepared = seed.with(drivers);
        prepared.ask(start, blobs).map_err(StartError::Refused)?;
        tracing::info!(tree = %id, "tree started");
        let (tree, task) = prepared.spawn();
        let tree = self.keep(tree, stop, task);
        drop((lock, starting));
        match tree.begun().await {
            Ok(()) => Ok(tree),
            Err(Stopped::Journal(fault)) => Err(StartError::Journal(fault)),
            Err(Stopped::Shutdown | Stopped::Bug) => Err(StartError::Shutdown),
        }
    }
}
