//! Workspaces and tokens, with whole trees from scripts and real folders; scripts and wire formats on their own; programs
//! as real processes, guarded and in boxes.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod agent_files;
mod bad_script;
#[cfg(all(feature = "processes", target_os = "linux"))]
mod boxed_folders;
#[cfg(all(feature = "processes", target_os = "linux"))]
mod boxes;
#[cfg(all(feature = "processes", target_os = "linux"))]
mod commands;
mod corpus;
mod escapes;
mod expressions;
#[cfg(feature = "http")]
mod fetch;
mod files;
mod folders;
mod golden;
#[cfg(feature = "http")]
mod http;
mod isolation;
mod killed;
#[cfg(all(feature = "mcp", target_os = "linux"))]
mod mcp;
#[cfg(all(feature = "processes", target_os = "linux"))]
mod network;
mod offload;
mod outputs;
mod plants;
mod prices;
#[cfg(all(feature = "processes", target_os = "linux"))]
mod processes;
mod scene;
mod scripted;
mod scripted_docs;
mod scripted_tool;
mod steps;
mod tokens;
mod wire;
#[cfg(all(feature = "processes", target_os = "linux"))]
mod working_copies;
mod writing;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use spinney_drivers::workspace::{Step, StepChange, StepWriter, Steps, WorkspaceFault, Workspaces};
use spinney_journal::{Blocking, Journal};
use spinney_kernel::context::offload::name;
use spinney_kernel::primitives::{AgentId, BlobRef, Seq, TreeId};
use spinney_testkit::spinney::bus::RecordedEvent;
use spinney_testkit::spinney::{Shutdown, Tree};
use spinney_testkit::{SteadyClock, TestHome, recorded};

/// A tree that ran until it moved no more on its own, and its events.
pub(crate) struct Ran {
    pub(crate) tree: TreeId,
    pub(crate) recorded: Vec<RecordedEvent>,
    /// Where its blobs are.
    pub(crate) journal: Arc<dyn Journal>,
}

impl Ran {
    /// A tree of a stage that no process runs any more.
    pub(crate) async fn from_tree(stage: &TestHome, tree: &Tree) -> Self {
        Self { tree: tree.id(), recorded: recorded(tree).await, journal: Arc::clone(stage.journal()) }
    }

    /// Its first events.
    pub(crate) fn begun(&self, events: usize) -> Self {
        let (recorded, journal) = (self.recorded[..events].to_vec(), Arc::clone(&self.journal));
        Self { tree: self.tree, recorded, journal }
    }

    /// Plays a fixture. Time stands still but for what the script takes, so the same script gives the same events.
    pub(crate) async fn play(stage: &TestHome, fixture: &str) -> Self {
        let home = stage.home_on(Arc::new(SteadyClock::new()));
        let tree = stage.start(&home, fixture).await;
        tree.settled().await;
        home.shutdown(Shutdown::Stop).await;
        Self::from_tree(stage, &tree).await
    }

    /// Its last event.
    pub(crate) fn last(&self) -> Seq {
        self.recorded.last().map_or(Seq(0), |recorded| recorded.seq)
    }

    /// Writes its workspaces into a home, as a process does that runs the tree from its first event.
    pub(crate) fn write(&self, home: &Path) {
        self.write_after(home, Seq(0)).unwrap_or_else(|fault| panic!("{fault}"));
    }

    /// Writes them as a process does that takes the tree up.
    pub(crate) fn mend(&self, home: &Path) -> Result<(), WorkspaceFault> {
        self.write_after(home, self.last())
    }

    pub(crate) fn write_after(&self, home: &Path, past: Seq) -> Result<(), WorkspaceFault> {
        let workspaces = Workspaces::open(home, self.tree)?;
        let mut step_writer = StepWriter::new(workspaces, past, |blob| self.journal.blob(blob).wait());
        let take = |recorded: &RecordedEvent| step_writer.take(recorded.seq, recorded.at, &recorded.event);
        self.recorded.iter().map(take).fold(Ok(()), Result::and)
    }

    /// The folder of an agent in a home.
    pub(crate) fn agent(&self, home: &Path, agent: &str) -> PathBuf {
        home.join("workspace").join(self.tree.to_string()).join(agent)
    }

    /// The steps of each agent, folded from the first `events` events.
    pub(crate) fn steps(&self, events: usize) -> BTreeMap<String, Vec<Step>> {
        let mut steps = Steps::new(self.tree);
        let mut by_agent = BTreeMap::new();
        for recorded in &self.recorded[..events] {
            for change in steps.take(recorded.seq, recorded.at, &recorded.event) {
                match change {
                    StepChange::Born { agent } => drop(by_agent.insert(agent.to_string(), Vec::new())),
                    StepChange::Did { agent, number, step } => {
                        let steps =
                            by_agent.get_mut(agent.as_str()).unwrap_or_else(|| panic!("{agent} is not born"));
                        steps.push(*step);
                        assert_eq!(steps.len(), number as usize);
                    }
                    StepChange::Gone { agent, steps, .. } => {
                        assert_eq!(by_agent[agent.as_str()].len(), steps as usize);
                    }
                    StepChange::Wrote { .. } | StepChange::Removed { .. } | StepChange::Offloaded { .. } => {}
                }
            }
        }
        by_agent
    }

    /// The steps of each agent.
    pub(crate) fn all_steps(&self) -> BTreeMap<String, Vec<Step>> {
        self.steps(self.recorded.len())
    }

    /// Every file that the workspaces of this tree should have.
    pub(crate) fn files(&self, home: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        for (agent, steps) in self.all_steps() {
            let history = self.agent(home, &agent).join("history");
            files.extend(steps.iter().map(|step| (history.join(format!("{}.json", step.id)), step.bytes())));
        }
        files.extend(self.offloads().into_iter().map(|(agent, blob)| {
            let bytes =
                self.journal.blob(&blob).wait().ok().flatten().unwrap_or_else(|| panic!("{}", blob.hash));
            (self.agent(home, agent.as_str()).join("offload").join(name(&blob.hash)), bytes)
        }));
        files
    }

    /// The long outputs of each agent.
    pub(crate) fn offloads(&self) -> Vec<(AgentId, BlobRef)> {
        let mut steps = Steps::new(self.tree);
        let changes =
            self.recorded.iter().flat_map(|recorded| steps.take(recorded.seq, recorded.at, &recorded.event));
        let offloaded = |change| match change {
            StepChange::Offloaded { agent, blob } => Some((agent, blob)),
            StepChange::Born { .. }
            | StepChange::Wrote { .. }
            | StepChange::Removed { .. }
            | StepChange::Did { .. }
            | StepChange::Gone { .. } => None,
        };
        changes.filter_map(offloaded).collect()
    }
}

/// Every file below a folder, with what is in it. Links are not followed.
pub(crate) fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.unwrap_or_else(|error| panic!("{error}")).path();
        if path.is_dir() && !path.is_symlink() {
            found.extend(files(&path));
        } else {
            let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            found.insert(path, bytes);
        }
    }
    found
}

/// The names in a folder, in order.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
