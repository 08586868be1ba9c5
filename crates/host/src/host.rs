//! A home that runs tree files: what a program embeds to run them with real models, its own tools, or in its tests with
//! models of its own.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spinney::bus::Watch;
use spinney::clock::{Clock as _, SystemClock};
use spinney::hooks::TreeHooks;
use spinney::tree::{ProgramRunner, RequestError, TreeSnapshot};
use spinney::{Drivers, Home, ResumeError, Shutdown, StartError, StartOptions, Tree};
use spinney_journal::{ChainHash, Head, Journal, JournalFault};
use spinney_kernel::definition::Definition;
use spinney_kernel::port::model::Model;
use spinney_kernel::port::tool::Tool;
use spinney_kernel::primitives::{Actor, ModelName, Seq, Time, ToolName, TreeId};
use spinney_kernel::record::Event;
use spinney_kernel::world::TreeState;
use spinney_view::result::{ResultFault, TreeResult};
use tokio::task::JoinHandle;

use crate::approved_drivers::ApprovedDrivers;
use crate::error_text::with_causes;
use crate::home::tree_copies::TreeSources;
use crate::home::workspaces::WorkspaceWriter;
use crate::home::{self, HomeError, output_files, tree_copies, working_copies};
use crate::inside;
use crate::off_workers::off_workers;
use crate::own_drivers::OwnDrivers;
use crate::prepared::{PrepareError, PreparedTree, StartRequest};
use crate::trust::allowed_hosts::AllowedHosts;
use crate::trust::boxes::{AllowedBoxes, BoxNeeds, BoxQuestion};
use crate::trust::egress::{self, Egress, EgressQuestion, InputValues};
use crate::trust::foreign_home::{self, HomeQuestion, OldTree, OldTreeTrust};
use crate::trust::known_homes::{self, HomeOrigin};
use crate::trust::{TrustError, tree_marks};
use crate::user::allowed_host::AllowedHost;
use crate::user::box_allowance::BoxAllowance;
use crate::user::configuration::{Configuration, ConfigurationError};
use crate::user::state_files::StateFileError;
use crate::user::variables::{Variables, VariablesError};

/// A home on disk that starts trees from files and resumes them. Each tree gets its own drivers, so trees of many files run
/// side by side. Keys come from the user's environment, settings from their configuration.
///
/// A file is a stranger's until the user says otherwise: what is not allowed yet, such as a key for another host than its
/// provider's, is an error that says so. A face with a person in front of it asks them instead.
pub struct Host {
    folder: PathBuf,
    home: Home,
    drivers: Arc<ApprovedDrivers>,
    own: OwnDrivers,
    origin: HostOrigin,
    /// Trees that it has run.
    hosted: Mutex<BTreeSet<TreeId>>,
}

/// Who knows where a home comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostOrigin {
    /// This process made it, or was given its journal by the program.
    Own,
    /// The user's own list.
    Listed,
}

/// What a file would send although the user has not allowed it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct RefusedEgress {
    what: String,
    /// The hosts that would have to be allowed.
    pub hosts: Vec<String>,
}

impl RefusedEgress {
    fn new(question: &EgressQuestion<'_>) -> Self {
        let hosts = question.hosts().into_iter().map(ToString::to_string).collect();
        Self { what: question.to_string(), hosts }
    }
}

/// What the boxes of a file's commands would be without although the user has not allowed it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct RefusedBox {
    what: String,
    /// What would have to be allowed.
    pub allowances: Vec<BoxAllowance>,
}

impl RefusedBox {
    fn new(question: &BoxQuestion) -> Self {
        Self { what: question.to_string(), allowances: question.refused().cloned().collect() }
    }
}

/// Why a tree file did not start. Then nothing runs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostStartError {
    /// The file cannot be used.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// The user has not allowed what it would send.
    #[error(transparent)]
    NotAllowed(#[from] RefusedEgress),
    /// The user has not allowed what its boxes are without.
    #[error(transparent)]
    BoxNotAllowed(#[from] RefusedBox),
    /// The home is a stranger's. To trust it, [`accept`](HomeQuestion::accept) the question and start again.
    #[error("{0}")]
    ForeignHome(Box<HomeQuestion>),
    /// What the user allowed cannot be read.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The home did not start it.
    #[error(transparent)]
    Start(#[from] StartError),
}

/// Why a tree was not resumed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostResumeError {
    /// Its files cannot be used.
    #[error(transparent)]
    Copy(#[from] tree_copies::UnreadCopy),
    /// A model that its provider answers cannot be called.
    #[error(transparent)]
    Drivers(#[from] tree_copies::StoredDriversError),
    /// The user's configuration cannot be used.
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    /// The user's variables cannot be read.
    #[error(transparent)]
    Variables(#[from] VariablesError),
    /// The user has not allowed what it would send.
    #[error(transparent)]
    NotAllowed(#[from] RefusedEgress),
    /// The user has not allowed what its boxes are without.
    #[error(transparent)]
    BoxNotAllowed(#[from] RefusedBox),
    /// It is not as this user left it. To trust it, [`accept`](HomeQuestion::accept) the question and resume again.
    #[error("{0}")]
    ForeignHome(Box<HomeQuestion>),
    /// What is recorded of it cannot be read.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The home did not resume it.
    #[error(transparent)]
    Resume(#[from] ResumeError),
}

impl From<StateFileError> for HostStartError {
    fn from(error: StateFileError) -> Self {
        Self::Trust(error.into())
    }
}

impl From<StateFileError> for HostResumeError {
    fn from(error: StateFileError) -> Self {
        Self::Trust(error.into())
    }
}

impl Host {
    /// Opens a home on disk, and makes it if it does not exist. One process has it open at a time.
    ///
    /// # Errors
    /// If it is not a home, another process has it open, or this process must not change it.
    pub async fn open(folder: impl AsRef<Path>) -> Result<Self, HomeError> {
        let folder = folder.as_ref();
        inside::check_self(folder)?;
        let origin = match known_homes::make(folder) {
            HomeOrigin::New { unlisted } => {
                if let Some(error) = unlisted {
                    tracing::warn!(
                        "this home could not be added to your list of homes: {}",
                        with_causes(&error)
                    );
                }
                HostOrigin::Own
            }
            HomeOrigin::Known | HomeOrigin::Foreign => HostOrigin::Listed,
        };
        let host = Self::on(folder, Arc::new(home::open_writable_to_start(folder).await?));
        Ok(Self { origin, ..host })
    }

    /// Runs trees on a journal of the program, such as one in memory, which it vouches for. Files of trees, such as their
    /// workspaces, are in the folder.
    #[must_use]
    pub fn on(folder: &Path, journal: Arc<dyn Journal>) -> Self {
        let drivers = Arc::new(ApprovedDrivers::default());
        Self {
            folder: folder.to_owned(),
            home: Home::open(journal, Arc::clone(&drivers)),
            drivers,
            own: OwnDrivers::default(),
            origin: HostOrigin::Own,
            hosted: Mutex::default(),
        }
    }

    /// Adds a tool of the program, which tree files may name.
    #[must_use]
    pub fn with_tool(mut self, name: ToolName, tool: Arc<dyn Tool>) -> Self {
        self.own = self.own.with_tool(name, tool);
        self
    }

    /// Answers for a model of tree files in its provider's place, as tests do.
    #[must_use]
    pub fn with_model(mut self, name: ModelName, model: Arc<dyn Model>) -> Self {
        self.own = self.own.with_model(name, model);
        self
    }

    /// Adds hooks around every model and tool call of its trees.
    #[must_use]
    pub fn with_hooks(mut self, hooks: Arc<dyn TreeHooks>) -> Self {
        self.home = self.home.with_hooks(hooks);
        self
    }

    /// Sets who runs the programs that are agents of its trees. Without it, no tree with such agents starts here.
    #[must_use]
    pub fn with_programs(mut self, runner: Arc<dyn ProgramRunner>) -> Self {
        self.home = self.home.with_programs(runner);
        self
    }

    /// Says who asks for what is started and resumed here; a program without a name otherwise.
    #[must_use]
    pub fn with_actor(mut self, actor: Actor) -> Self {
        self.home = self.home.with_actor(actor);
        self
    }

    /// Starts a tree from a file.
    ///
    /// # Errors
    /// What is wrong with the file, or not allowed.
    pub async fn start(&self, file: impl AsRef<Path>) -> Result<HostedTree, HostStartError> {
        self.start_with(&StartRequest::new(file.as_ref())).await
    }

    /// The same with values for its inputs, hosts that it may send keys to, and so on.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn start_with(&self, request: &StartRequest<'_>) -> Result<HostedTree, HostStartError> {
        let id = self.home.draw_id();
        let trace = request.trace;
        let (definition, drivers, sources) = self.check(id, request).await?;
        let _approved = self.drivers.approve(id, drivers);
        let start = StartOptions::default().with_id(id).with_trace(trace).with_sources(sources.files);
        let started = self.home.start_with(definition, start).await;
        if started.is_err() {
            let folder = self.folder.clone();
            off_workers(async move || tree_marks::forget(&folder, id)).await;
        }
        Ok(self.hosted(started?, Seq(0)).await)
    }

    /// Reads and checks a file, and records what the tree is started from.
    async fn check(
        &self,
        id: TreeId,
        request: &StartRequest<'_>,
    ) -> Result<(Definition, Drivers, TreeSources), HostStartError> {
        let (folder, origin, own) = (self.folder.clone(), self.origin, self.own.clone());
        let (file, hosts, given) = (request.file.to_owned(), request.hosts.to_vec(), request.given.clone());
        let boxes = request.boxes.to_vec();
        let (scripts, setting, trace) = (request.scripts, request.setting, request.trace);
        off_workers(async move || {
            let request =
                StartRequest { file: &file, given, scripts, hosts: &hosts, boxes: &boxes, trace, setting };
            let now = Time(SystemClock::new().now_ms());
            let mut prepared = PreparedTree::read(&folder, &request, &own, now)?;
            let text = &prepared.source.text;
            if let Some(question) = EgressQuestion::about(text, &prepared.egress, &prepared.allowed)? {
                return Err(RefusedEgress::new(&question).into());
            }
            if let Some(question) = BoxQuestion::about(text, &prepared.box_needs, &prepared.allowed_boxes)? {
                return Err(RefusedBox::new(&question).into());
            }
            if origin == HostOrigin::Listed
                && let Some(question) = foreign_home::for_new_tree(&folder, &prepared.does()).await?
            {
                return Err(HostStartError::ForeignHome(Box::new(question)));
            }
            prepared.permit_boxes();
            prepared.source.boxed.prepare(&folder, prepared.permissions().clone());
            let PreparedTree { source, definition, allowed, sources, .. } = prepared;
            tree_marks::starting(&folder, id, &sources.fingerprint, &allowed);
            Ok((definition, source.drivers, sources))
        })
        .await
    }

    /// Resumes a tree where its journal ends, with the files that it was started with.
    ///
    /// # Errors
    /// If it has ended or runs already, or its files are not what they were.
    pub async fn resume(&self, tree: TreeId) -> Result<HostedTree, HostResumeError> {
        let journal = Arc::clone(self.home.journal());
        let head = journal.head(tree).await.map_err(ResumeError::Journal)?;
        let head = head.ok_or(ResumeError::Journal(JournalFault::UnknownTree { tree }))?;
        if let TreeState::Ended(state) = head.state {
            return Err(ResumeError::Ended { tree, state }.into());
        }
        let past = head.seq;
        let (folder, origin, own) = (self.folder.clone(), self.origin, self.own.clone());
        let drivers = off_workers(async move || {
            kept_drivers(&folder, origin, &own, &[], journal.as_ref(), &head).await
        });
        let drivers = drivers.await?;
        let _approved = self.drivers.approve(tree, drivers);
        let resumed = self.home.resume(tree).await?;
        Ok(self.hosted(resumed, past).await)
    }

    async fn hosted(&self, tree: Tree, past: Seq) -> HostedTree {
        let journal = Arc::clone(self.home.journal());
        self.trees().insert(tree.id());
        HostedTree::begin(&self.folder, journal, tree, past).await
    }

    fn trees(&self) -> MutexGuard<'_, BTreeSet<TreeId>> {
        self.hosted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The home itself, for everything else: finding, steering and removing trees. It starts and resumes none of them: what
    /// a file may do is checked here.
    #[must_use]
    pub const fn home(&self) -> &Home {
        &self.home
    }

    /// Stops all trees cleanly. They can be resumed.
    pub async fn close(self) {
        self.home.shutdown(Shutdown::Stop).await;
        let trees: Vec<TreeId> = self.trees().iter().copied().collect();
        for tree in trees {
            let (folder, journal) = (self.folder.clone(), Arc::clone(self.home.journal()));
            TreeMarks { folder, journal, tree }.update().await;
        }
    }
}

/// The result of a tree that is not run any more, with the files of its agents and the models that answered from scripts.
/// The faults say which texts could not be read.
pub async fn stored_result(
    home: &Path,
    journal: &dyn Journal,
    tree: TreeId,
    snapshot: &TreeSnapshot,
    hash: Option<ChainHash>,
) -> (TreeResult, Vec<ResultFault>) {
    let (mut result, faults) = TreeResult::read(snapshot, hash, journal, tree).await;
    let files = output_files::list(home, tree).into_iter();
    result.files = files.map(|file| file.path.display().to_string()).collect();
    result.branches = working_copies::branches(home, tree);
    result.scripted = scripted_models(home, journal, tree).await;
    (result, faults)
}

/// Which models of a stored tree answer from a file, as far as that is known.
pub async fn scripted_models(home: &Path, journal: &dyn Journal, tree: TreeId) -> Vec<ModelName> {
    let scripted = tree_copies::scripted(home, journal, tree).await;
    scripted.map(|scripted| scripted.models().to_vec()).unwrap_or_default()
}

/// The drivers of a stored tree, if it is as this user left it and the user allows what it sends.
pub(crate) async fn kept_drivers(
    folder: &Path,
    origin: HostOrigin,
    own: &OwnDrivers,
    hosts: &[AllowedHost],
    journal: &dyn Journal,
    head: &Head,
) -> Result<Drivers, HostResumeError> {
    let kept = tree_copies::read(folder, journal, head.tree).await?;
    let configuration = Configuration::read()?;
    let user = Variables::read(&configuration)?;
    let needs = BoxNeeds::of_stored(journal, head.tree).await.map_err(TrustError::from)?;
    if kept.called.is_some() || !needs.is_empty() {
        let egress = kept.called.as_ref().map(|called| {
            let models: Vec<ModelName> =
                called.models.iter().filter(|model| !own.has_model(model)).cloned().collect();
            Egress::all(&called.file, &models, InputValues::Known)
        });
        let egress = egress.unwrap_or_default();
        let does: Vec<String> = egress::sent(&egress).into_iter().chain(needs.lines()).collect();
        let old = OldTree { home: folder, journal, head, source: kept.source.clone() };
        let mark = match (origin, does.is_empty()) {
            (HostOrigin::Own, _) | (HostOrigin::Listed, true) => foreign_home::mark_of(&old).await?,
            (HostOrigin::Listed, false) => match foreign_home::for_old_tree(&old, &does).await? {
                OldTreeTrust::AsLeft(mark) => mark,
                OldTreeTrust::Ask(question) => return Err(HostResumeError::ForeignHome(question)),
            },
        };
        let mut allowed = AllowedHosts::new(hosts, &configuration, &user);
        allowed.add_remembered(mark.as_ref());
        if let Some(question) = EgressQuestion::about(&kept.text, &egress, &allowed)? {
            return Err(RefusedEgress::new(&question).into());
        }
        let boxes = AllowedBoxes::new(&[], &configuration).with_hosts(&allowed);
        if let Some(question) = BoxQuestion::about(&kept.text, &needs, &boxes)? {
            return Err(RefusedBox::new(&question).into());
        }
    }
    let boxes = AllowedBoxes::new(&[], &configuration);
    kept.boxed.prepare(folder, needs.permissions(&user, &boxes));
    Ok(own.over(kept.drivers_beside(&user, own)?))
}

/// What the user's state folder records of a tree.
#[derive(Clone)]
struct TreeMarks {
    folder: PathBuf,
    journal: Arc<dyn Journal>,
    tree: TreeId,
}

impl TreeMarks {
    async fn update(&self) {
        let Self { folder, journal, tree } = self.clone();
        off_workers(async move || tree_marks::update(&folder, journal.as_ref(), tree).await).await;
    }

    /// Records raises while the tree runs: one that is not recorded is asked about when the tree is resumed.
    async fn follow(self, tree: Tree) {
        let mut events = tree.watch(Watch::after(tree.status().seq));
        while let Some(Ok(traced)) = events.next_event().await {
            if matches!(traced.recorded.event, Event::LimitRaised { .. } | Event::TreeAdjusted(_)) {
                self.update().await;
            }
        }
    }
}

/// A tree that a [`Host`] runs.
pub struct HostedTree {
    tree: Tree,
    marks: TreeMarks,
    raises: JoinHandle<()>,
    writer: tokio::sync::Mutex<Option<WorkspaceWriter>>,
}

impl HostedTree {
    /// Writes what it does into its workspaces and records its raises from now on.
    pub(crate) async fn begin(folder: &Path, journal: Arc<dyn Journal>, tree: Tree, past: Seq) -> Self {
        let writer = WorkspaceWriter::begin(folder, Arc::clone(&journal), &tree, past);
        let marks = TreeMarks { folder: folder.to_owned(), journal, tree: tree.id() };
        marks.update().await;
        let raises = tokio::spawn(marks.clone().follow(tree.clone()));
        Self { tree, marks, raises, writer: tokio::sync::Mutex::new(Some(writer)) }
    }

    /// Finishes both for a tree that no longer runs.
    pub(crate) async fn end(self) {
        if let Some(writer) = self.writer.lock().await.take() {
            writer.end().await;
        }
        self.marks.update().await;
    }

    /// The tree: to watch it, look at it and steer it.
    #[must_use]
    pub const fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Waits until the tree has ended, or can only continue with a person: it is halted at a ceiling, or asks something.
    /// After a raise or an answer it can be waited for again.
    ///
    /// # Errors
    /// If the journal failed, or the home was shut down.
    pub async fn result(&self) -> Result<TreeResult, RequestError> {
        self.tree.settled().await;
        let snapshot = self.tree.snapshot().await?;
        let (tree, journal) = (self.tree.id(), Arc::clone(&self.marks.journal));
        let hash = self.tree.status().hash;
        if snapshot.end.is_some()
            && let Some(writer) = self.writer.lock().await.take()
        {
            writer.end().await;
        }
        let folder = self.marks.folder.clone();
        let (result, faults) =
            off_workers(async move || stored_result(&folder, journal.as_ref(), tree, &snapshot, hash).await)
                .await;
        for fault in faults {
            tracing::warn!("{}", with_causes(&fault));
        }
        self.marks.update().await;
        Ok(result)
    }
}

impl Drop for HostedTree {
    fn drop(&mut self) {
        // The tree may run on; what is raised then is recorded when the host is closed.
        self.raises.abort();
    }
}
