//! Keeps the workspaces of a tree up to date: in the background while it runs here, and on request when it does not.
//! Step files are for people; an error is reported and never stops a tree.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use spinney::Tree;
use spinney::bus::{Tail, TracedEvent, Watch};
use spinney::tree::RecordedEvent;
use spinney_drivers::workspace::{StepWriter, WorkspaceFault, Workspaces};
use spinney_journal::{Blocking, Journal};
use spinney_kernel::words::{Seq, TreeId};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::hint::about;
use crate::terminal::out;

/// Events that wait to be written. Beyond that, they stay in the journal until there is room: a slow disk does not
/// hold the tree up, and memory stays bounded.
const WAITING_MAX: usize = 256;

/// Writes the step files of a tree that runs here, on its own thread.
pub(crate) struct WorkspaceWriter {
    home: PathBuf,
    tree: TreeId,
    writer: JoinHandle<Missing>,
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
        let again = about(home, "resume", tree, &[]);
        let others = if count > 1 { format!(" (and {} more)", count - 1) } else { String::new() };
        let folder = home.join("workspace");
        out::complain(&format!(
            "the step files in {} are incomplete: {fault}{others}. Once that is fixed, `{again}` writes them again",
            folder.display()
        ));
    }
}

impl WorkspaceWriter {
    /// Starts at the tree's first event. An earlier process may have written the files up to `past`.
    pub(crate) fn begin(home: &Path, journal: Arc<dyn Journal>, tree: &Tree, past: Seq) -> Self {
        let mut events = tree.watch(Watch { room: Some(WAITING_MAX), ..Watch::default() });
        let (home, tree) = (home.to_owned(), tree.id());
        let (folder, runtime) = (home.clone(), Handle::current());
        let writer = tokio::task::spawn_blocking(move || {
            // The caller that follows the tree reports an unreadable journal.
            let next = || runtime.block_on(events.next_event())?.ok();
            write(&folder, journal.as_ref(), tree, past, std::iter::from_fn(next))
        });
        Self { home, tree, writer }
    }

    /// Waits until everything is written. The tree is no longer run by then.
    pub(crate) async fn end(self) {
        match self.writer.await {
            Ok(missing) => missing.recorded(&self.home, self.tree),
            Err(error) => out::complain(&format!("writing step files failed: {error}")),
        }
    }
}

/// Updates the workspaces of a tree that is not running from its journal.
pub(crate) fn mend(home: &Path, journal: &dyn Journal, tree: TreeId) {
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
            let RecordedEvent { seq, at, event } = &traced.recorded;
            missing.note(step_writer.take(*seq, *at, event));
        }),
        Err(fault) => missing.note(Err(fault)),
    }
    missing
}
