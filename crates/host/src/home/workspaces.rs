//! Keeps the workspaces of a tree up to date: in the background while it runs here, and on request when it does not.
//! Step files are for people; an error is reported and never stops a tree.

use std::path::Path;
use std::sync::Arc;

use spinney::Tree;

use spinney::bus::{RecordedEvent, Tail, TracedEvent, Watch, Watcher};
use spinney_drivers::workspace::{StepWriter, WorkspaceFault, Workspaces};
use spinney_journal::Journal;
use spinney_kernel::primitives::{BlobRef, Seq, TreeId};
use spinney_kernel::record::Event;
use spinney_store::layout::WORKSPACES;
use spinney_view::wording::short_id;
use tokio::runtime::Handle;
use tokio::task::{JoinError, JoinHandle, spawn_blocking};

use super::working_copies::{AgentEnd, CopyKeeper, HomeCopies};

/// Events that wait to be written. Beyond that, they stay in the journal until there is room: a slow disk does not
/// hold the tree up, and memory stays bounded.
const WAITING_MAX: usize = 256;

/// Writes the step files of a tree that runs here, on its own thread, and takes over the working copies of agents that end.
pub struct WorkspaceWriter {
    steps: JoinHandle<()>,
    copies: CopyKeeper,
}

#[derive(Default)]
struct Missing {
    first: Option<WorkspaceFault>,
    count: u64,
}

impl Missing {
    fn note(&mut self, done: Result<(), WorkspaceFault>) {
        if let Err(fault) = done {
            self.count += 1;
            self.first.get_or_insert(fault);
        }
    }

    /// Reports what is missing, if anything, and what to do about it.
    fn recorded(self, home: &Path, tree: TreeId) {
        let Self { first: Some(fault), count } = self else { return };
        let others = if count > 1 { format!(" (and {} more)", count - 1) } else { String::new() };
        let folder = home.join(WORKSPACES);
        tracing::warn!(
            "the step files in {} are incomplete: {fault}{others}. Once that is fixed, resuming tree {} writes them again",
            folder.display(),
            short_id(tree)
        );
    }
}

impl WorkspaceWriter {
    /// Starts at the tree's first event. An earlier process may have written the files up to `past`. A thread is taken only
    /// while there is something to write.
    pub fn begin(home: &Path, journal: Arc<dyn Journal>, tree: &Tree, past: Seq) -> Self {
        let events = tree.watch(Watch { room: Some(WAITING_MAX), ..Watch::default() });
        let copies = CopyKeeper::begin(home, tree, past);
        let (home, tree) = (home.to_owned(), tree.id());
        let steps = tokio::spawn(async move {
            match follow(&home, journal, tree, past, events).await {
                Ok(missing) => missing.recorded(&home, tree),
                Err(error) => tracing::warn!("writing step files failed: {error}"),
            }
        });
        Self { steps, copies }
    }

    /// Waits until everything is written. Then the tree is no longer run by.
    pub async fn end(self) {
        // It has reported what went wrong.
        let _ = self.steps.await;
        self.copies.end().await;
    }
}

/// Writes what has come, until no more comes.
async fn follow(
    home: &Path,
    journal: Arc<dyn Journal>,
    tree: TreeId,
    past: Seq,
    mut events: Watcher,
) -> Result<Missing, JoinError> {
    let mut writing = Writing::begin(home, journal, tree, past).await?;
    // The tree's follower reports an unreadable journal.
    while let Some(Ok(traced)) = events.next_event().await {
        writing = writing.take(traced).await?;
    }
    Ok(writing.missing)
}

/// Updates the workspaces of a tree that is not running from its journal.
pub async fn mend(home: &Path, journal: Arc<dyn Journal>, tree: TreeId) {
    match mended(home, journal, tree).await {
        Ok(missing) => missing.recorded(home, tree),
        Err(error) => tracing::warn!("writing step files failed: {error}"),
    }
}

async fn mended(home: &Path, journal: Arc<dyn Journal>, tree: TreeId) -> Result<Missing, JoinError> {
    // The caller reports an unreadable journal.
    let Ok(Some(head)) = journal.head(tree).await else { return Ok(Missing::default()) };
    let mut writing = Writing::begin(home, Arc::clone(&journal), tree, head.seq).await?;
    let mut tail = Tail::new(journal.as_ref(), tree);
    let (copies, mut ended) = (HomeCopies::new(home), Vec::new());
    while let Ok(Some(traced)) = tail.next().await {
        match &traced.recorded.event {
            // What ended before belongs to the tree that this one continues.
            Event::TreeBranched(branched) if branched.continuation.is_some() => ended.clear(),
            Event::AgentEnded { agent, .. } => ended.push(agent.clone()),
            _ => {}
        }
        writing = writing.take(Arc::new(traced)).await?;
    }
    for agent in ended {
        copies.ended(tree, &agent, AgentEnd::Earlier).await;
    }
    Ok(writing.fill_all().await?.missing)
}

/// Step files on their way to the disk, on a thread that may wait for it.
struct Writing {
    /// None if the folders cannot be opened.
    writer: Option<StepWriter<'static>>,
    missing: Missing,
}

impl Writing {
    async fn begin(
        home: &Path,
        journal: Arc<dyn Journal>,
        tree: TreeId,
        past: Seq,
    ) -> Result<Self, JoinError> {
        let (home, handle) = (home.to_owned(), Handle::current());
        spawn_blocking(move || {
            let mut missing = Missing::default();
            let bytes = move |blob: &BlobRef| handle.block_on(journal.blob(blob));
            let opened = Workspaces::open(&home, tree).map(|all| StepWriter::new(all, past, bytes));
            let writer = opened.map_err(|fault| missing.note(Err(fault))).ok();
            Self { writer, missing }
        })
        .await
    }

    async fn take(self, traced: Arc<TracedEvent>) -> Result<Self, JoinError> {
        let RecordedEvent { seq, at, .. } = traced.recorded;
        self.with(move |writer| writer.take(seq, at, &traced.recorded.event)).await
    }

    async fn fill_all(self) -> Result<Self, JoinError> {
        self.with(|writer| writer.fill_all()).await
    }

    async fn with(
        mut self,
        write: impl FnOnce(&mut StepWriter<'static>) -> Result<(), WorkspaceFault> + Send + 'static,
    ) -> Result<Self, JoinError> {
        spawn_blocking(move || {
            if let Some(writer) = &mut self.writer {
                self.missing.note(write(writer));
            }
            self
        })
        .await
    }
}
