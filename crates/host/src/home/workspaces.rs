//! Keeps the workspaces of a tree up to date: in the background while it runs here, and on request when it does not.
//! Step files are for people; an error is reported and never stops a tree.

use std::path::Path;
use std::sync::Arc;

use spinney::Tree;

use spinney::bus::{RecordedEvent, Tail, TracedEvent, Watch, Watcher};
use spinney_drivers::workspace::{StepWriter, WorkspaceFault, Workspaces};
use spinney_journal::{Blocking, Journal};
use spinney_kernel::words::{Seq, TreeId};
use spinney_store::layout::WORKSPACES;
use spinney_view::wording::short_id;
use tokio::task::{JoinError, JoinHandle, spawn_blocking};

/// Events that wait to be written. Beyond that, they stay in the journal until there is room: a slow disk does not
/// hold the tree up, and memory stays bounded.
const WAITING_MAX: usize = 256;

/// Writes the step files of a tree that runs here, on its own thread.
pub struct WorkspaceWriter(JoinHandle<()>);

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
        let (home, tree) = (home.to_owned(), tree.id());
        Self(tokio::spawn(async move {
            match follow(&home, journal, tree, past, events).await {
                Ok(missing) => missing.recorded(&home, tree),
                Err(error) => tracing::warn!("writing step files failed: {error}"),
            }
        }))
    }

    /// Waits until everything is written. The tree is no longer run by then.
    pub async fn end(self) {
        // It has reported what went wrong.
        let _ = self.0.await;
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
    let folder = home.to_owned();
    let opened = spawn_blocking(move || Workspaces::open(&folder, tree)).await?;
    let mut missing = Missing::default();
    let mut writer = match opened {
        Ok(workspaces) => StepWriter::new(workspaces, past, move |blob| journal.blob(blob).wait()),
        Err(fault) => {
            missing.note(Err(fault));
            return Ok(missing);
        }
    };
    // Whoever follows the tree reports an unreadable journal.
    while let Some(Ok(traced)) = events.next_event().await {
        (writer, missing) = spawn_blocking(move || {
            let RecordedEvent { seq, at, event, .. } = &traced.recorded;
            missing.note(writer.take(*seq, *at, event));
            (writer, missing)
        })
        .await?;
    }
    Ok(missing)
}

/// Updates the workspaces of a tree that is not running from its journal.
pub fn mend(home: &Path, journal: &dyn Journal, tree: TreeId) {
    let past = match journal.head(tree).wait() {
        Ok(head) => head.map_or(Seq(0), |head| head.seq),
        Err(_) => return,
    };
    let mut tail = Tail::new(journal, tree);
    // The caller reports an unreadable journal.
    let next = || tail.next().wait().ok().flatten().map(Arc::new);
    write(home, journal, tree, past, std::iter::from_fn(next)).recorded(home, tree);
}

fn write(
    home: &Path,
    journal: &dyn Journal,
    tree: TreeId,
    past: Seq,
    events: impl Iterator<Item = Arc<TracedEvent>>,
) -> Missing {
    let mut missing = Missing::default();
    let step_writer = |workspaces| StepWriter::new(workspaces, past, |blob| journal.blob(blob).wait());
    match Workspaces::open(home, tree).map(step_writer) {
        Ok(mut step_writer) => events.for_each(|traced| {
            let RecordedEvent { seq, at, event, .. } = &traced.recorded;
            missing.note(step_writer.take(*seq, *at, event));
        }),
        Err(fault) => missing.note(Err(fault)),
    }
    missing
}
