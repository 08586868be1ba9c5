//! The tree of a run: started for a new one, or resumed with new options.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use spinney::bus::{Watch, WatchFault};
use spinney::clock::{Clock as _, SystemClock};
use spinney::rng::Rng;
use spinney::tree::{RequestError, Stopped};
use spinney::{Drivers, Home, ResumeError, Shutdown, StartError, StartOptions, Tree};
use spinney_host::defaults::{ExecCeilings, GivenCeilings, Sourced};
use spinney_host::exec::environment::UserEnvironment;
use spinney_host::exec::options::{RunOptions, RunOptionsError};
use spinney_host::exec::program::base_name;
use spinney_host::home::ids::{self, LAST, TreeNameError};
use spinney_host::home::side_journals::{self, JournalToStart, SideJournalError};
use spinney_host::home::{self, HomeError};
use spinney_host::trust::allowed_hosts::AllowedHosts;
use spinney_host::trust::foreign_home::{self, OldTree, OldTreeTrust};
use spinney_host::trust::{TrustError, tree_marks};
use spinney_host::user::low_policy::LowPolicy;
use spinney_journal::{Head, JournalFault};
use spinney_kernel::definition::{Refusal, Tags};
use spinney_kernel::primitives::{
    Actor, BlobHash, IdError, Seq, SourceFiles, SourceName, TraceParent, TreeId,
};
use spinney_kernel::record::ExitKind;
use spinney_kernel::rules::request::Adjust;
use spinney_store::SqliteJournal;
use spinney_view::RunLedger;
use spinney_view::wording::short_id;
use tokio::task::JoinHandle;

use crate::gateway::{ExecBudget, GatewayModel, PendingCalls, exec_definition};

/// Why a run was not started or resumed.
#[derive(Debug, thiserror::Error)]
pub enum RunTreeError {
    /// Its home cannot be made.
    #[error(transparent)]
    SideJournal(#[from] SideJournalError),
    /// Its home cannot be opened.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// There is no such run.
    #[error(transparent)]
    Unknown(#[from] TreeNameError),
    /// The tree was started from a tree file.
    #[error("`{id}` is not a run of a program")]
    NotARun {
        /// As it was asked for.
        id: String,
    },
    /// Its options cannot be used here.
    #[error(transparent)]
    Options(#[from] RunOptionsError),
    /// Its definition has an invalid name.
    #[error(transparent)]
    Name(#[from] IdError),
    /// Its journal failed.
    #[error(transparent)]
    Journal(#[from] JournalFault),
    /// It was not started.
    #[error(transparent)]
    Start(StartError),
    /// Another process ended it just now.
    #[error("run {} has ended ({state})", short_id(*tree))]
    Ended {
        tree: TreeId,
        /// How it ended.
        state: ExitKind,
    },
    /// It was not resumed.
    #[error(transparent)]
    Resume(ResumeError),
    /// The new options were refused.
    #[error(transparent)]
    Refused(Refusal),
    /// The new options did not reach it.
    #[error(transparent)]
    Request(RequestError),
}

/// A new run.
pub struct StartRun<'a> {
    /// The home that people name.
    pub home: &'a Path,
    /// The program and its arguments.
    pub program: &'a [OsString],
    /// What it is continued with.
    pub options: &'a RunOptions,
    /// Whose keys are hidden in what the journal says was started.
    pub user: &'a UserEnvironment,
    pub ceilings: ExecCeilings,
    /// Most calls at the same time.
    pub parallel: Option<u32>,
    /// The user's own labels.
    pub tags: Tags,
    /// The trace that its caller belongs to.
    pub trace: Option<TraceParent>,
}

/// A tree that is ready for its program.
pub struct RunTree {
    /// The home that people name.
    pub home: PathBuf,
    /// The home of the run, below it.
    pub path: PathBuf,
    /// The same home, open.
    pub opened: Arc<Home>,
    pub tree: Tree,
    /// The last event of an earlier process.
    pub past: Seq,
    /// Where its calls and their connections meet.
    pub pending_calls: Arc<PendingCalls>,
}

impl RunTree {
    /// Starts the tree of a new run.
    ///
    /// # Errors
    /// If its home cannot be made or written.
    pub async fn start(run: StartRun<'_>) -> Result<Self, RunTreeError> {
        let StartRun { home, program, options, user, ceilings, parallel, tags, trace } = run;
        let tree = Rng::fresh().tree_id(SystemClock::new().now_ms());
        let JournalToStart { folder: path, journal } = side_journals::make(home, tree).await?;
        let (opened, pending_calls) = open(journal);
        let most = |ceiling: Option<Sourced<u64>>| ceiling.map(|ceiling| ceiling.value);
        let budget = ExecBudget {
            cost_nanos: most(ceilings.cost_nanos),
            tokens: most(ceilings.tokens),
            steps: most(ceilings.steps),
            timeout_ms: most(ceilings.timeout_ms),
            parallel,
            on_low: ceilings.on_low.value.on_low(),
            tags,
        };
        let source = options.source_file();
        tree_marks::starting(&path, tree, &BlobHash::digest(&source.1), &AllowedHosts::default());
        let name = program.first().map(|program| base_name(program)).unwrap_or_default();
        let definition = exec_definition(&name, &goal(program, user), &budget)?;
        let start = StartOptions::default().with_id(tree).with_trace(trace).with_sources(vec![source]);
        let tree = match opened.start_with(definition, start).await {
            Ok(tree) => tree,
            Err(error) => {
                tree_marks::forget(&path, tree);
                return Err(match error {
                    StartError::Journal(fault) => fault.into(),
                    other => RunTreeError::Start(other),
                });
            }
        };
        tree_marks::update(&path, opened.journal().as_ref(), tree.id()).await;
        Ok(Self { home: home.to_owned(), path, opened, tree, past: Seq(0), pending_calls })
    }

    /// Stops the tree. Returns why its journal cannot be trusted, if it cannot; otherwise it is recorded how far it is.
    ///
    /// # Errors
    /// If the journal failed.
    pub async fn close(&self) -> Result<(), Stopped> {
        let was_broken = self.fault();
        self.opened.shutdown(Shutdown::Stop).await;
        match was_broken.or_else(|| self.fault()) {
            Some(fault) => Err(fault),
            None => {
                tree_marks::update(&self.path, self.opened.journal().as_ref(), self.tree.id()).await;
                Ok(())
            }
        }
    }

    fn fault(&self) -> Option<Stopped> {
        let stopped = self.tree.status().stopped;
        stopped.filter(|stopped| matches!(stopped, Stopped::Journal(_) | Stopped::Bug))
    }
}

/// The run of an earlier process, before it is resumed.
pub struct StoredRun {
    path: PathBuf,
    journal: SqliteJournal,
    head: Head,
}

impl StoredRun {
    /// Opens the home of a run for reading.
    ///
    /// # Errors
    /// If there is no such home, or it has no tree.
    pub async fn read(path: PathBuf) -> Result<Self, RunTreeError> {
        let journal = home::open_read_only(&path)?;
        let head = ids::find(&path, &journal, LAST).await?;
        Ok(Self { path, journal, head })
    }

    /// What it kept of its options.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn options(&self) -> Result<RunOptions, RunOptionsError> {
        RunOptions::read(&self.path, &self.journal, self.head.tree).await
    }

    /// Whether it is as this user left it, or what to ask before it is resumed. `starts` says what it would start.
    ///
    /// # Errors
    /// If what is recorded of it cannot be read.
    pub async fn trust(&self, options: &RunOptions, starts: &[String]) -> Result<OldTreeTrust, TrustError> {
        let Self { path, journal, head } = self;
        foreign_home::for_old_tree(
            &OldTree { home: path, journal, head, source: options.source.clone() },
            starts,
        )
        .await
    }

    /// Continues its tree, with new ceilings.
    ///
    /// # Errors
    /// If it cannot run here or has ended, or a ceiling is refused.
    pub async fn resume(
        self,
        options: &RunOptions,
        given: &GivenCeilings,
        parallel: Option<u32>,
    ) -> Result<RunTree, RunTreeError> {
        let Self { path, journal, head } = self;
        options.check_folder(side_journals::above(&path))?;
        drop(journal);
        let (opened, pending_calls) = open(home::open_writable(&path).await?);
        let past = head.seq;
        let tree = match opened.resume(head.tree).await {
            Ok(tree) => tree,
            Err(ResumeError::Journal(fault)) => return Err(fault.into()),
            Err(ResumeError::Ended { tree, state }) => return Err(RunTreeError::Ended { tree, state }),
            Err(error) => return Err(RunTreeError::Resume(error)),
        };
        let source = options.source_file();
        let hash = BlobHash::digest(&source.1);
        let changed = (options.source.as_ref() != Some(&hash)).then_some(source);
        let is_changed = changed.is_some();
        if let Err(error) = adjust(&tree, given, parallel, changed).await {
            opened.shutdown(Shutdown::Stop).await;
            return Err(error);
        }
        if is_changed {
            tree_marks::source_changed(&path, head.tree, &hash);
        }
        tree_marks::update(&path, opened.journal().as_ref(), head.tree).await;
        let home = side_journals::above(&path).to_owned();
        Ok(RunTree { home, path, opened, tree, past, pending_calls })
    }
}

/// The home of an earlier run.
///
/// # Errors
/// If there is no such tree, or it is not a run of a program.
pub async fn home_of_run(home: &Path, id: &str) -> Result<PathBuf, RunTreeError> {
    let path = side_journals::find(home, id).await?;
    if !side_journals::is_of_exec(&path).await {
        ids::find(&path, &home::open_read_only(&path)?, id).await?;
        return Err(RunTreeError::NotARun { id: id.to_owned() });
    }
    Ok(path)
}

/// Folds what a running tree books. The ledger is complete when the tree is no longer run.
#[must_use]
pub fn follow_ledger(tree: &Tree) -> JoinHandle<RunLedger> {
    let (tree, mut ledger) = (tree.clone(), RunLedger::new(tree.id()));
    let mut events = tree.watch(Watch::default());
    tokio::spawn(async move {
        loop {
            match events.next_event().await {
                Some(Ok(traced)) => ledger.apply(&traced.recorded.event, traced.recorded.at),
                Some(Err(WatchFault::TooSlow { seen })) => events = tree.watch(Watch::after(seen)),
                // The tree stops at the same fault.
                Some(Err(WatchFault::Journal(_))) | None => return ledger,
            }
        }
    })
}

/// Changes what the tree itself records.
async fn adjust(
    tree: &Tree,
    given: &GivenCeilings,
    parallel_max: Option<u32>,
    options: Option<(SourceName, Vec<u8>)>,
) -> Result<(), RunTreeError> {
    let (sources, bytes) = SourceFiles::enclose(options.into_iter().collect())
        .map_err(|error| RunTreeError::Refused(error.into()))?;
    let adjust = Adjust {
        limit: given.limit(),
        parallel_max,
        on_low: given.on_low.map(LowPolicy::on_low),
        timeout_ms: given.timeout_ms,
        sources,
    };
    match tree.request_with(Actor::PERSON, adjust, bytes).await {
        // Nothing that is given is about it.
        Ok(_) | Err(RequestError::Refused(Refusal::AdjustsNothing)) => Ok(()),
        Err(RequestError::Refused(refusal)) => Err(RunTreeError::Refused(refusal)),
        Err(error) => Err(RunTreeError::Request(error)),
    }
}

fn open(journal: SqliteJournal) -> (Arc<Home>, Arc<PendingCalls>) {
    let pending_calls = Arc::new(PendingCalls::new());
    let driver = Arc::new(GatewayModel::new(Arc::clone(&pending_calls)));
    let opened =
        Home::open(Arc::new(journal), Drivers::new().with_any_model(driver)).with_actor(Actor::PERSON);
    (Arc::new(opened), pending_calls)
}

/// What was started, for people. A key of the user in it is hidden.
fn goal(program: &[OsString], user: &UserEnvironment) -> String {
    const GOAL_CHARS_MAX: usize = 2_000;
    let words: Vec<String> = program.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    user.hidden_in(&words.join(" ")).chars().take(GOAL_CHARS_MAX).collect()
}
