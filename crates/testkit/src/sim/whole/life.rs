//! One tree over several processes: each runs it until it crashes, and the next resumes it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use spinney::clock::Clock;
use spinney::rng::Rng;
use spinney::tree::{Stopped, TreeStatus, verify};
use spinney::{Home, ResumeError, Shutdown, Tree};
use spinney_journal::{Blocking, Journal, JournalFault};
use spinney_kernel::budget::Amounts;
use spinney_kernel::primitives::{AgentId, CallId, Seq, Time};
use spinney_kernel::record::{Event, Exit};
use spinney_kernel::world::AgentStatus;
use spinney_store::{Access, MemoryJournal, SqliteJournal};

use super::super::law::{Law, hold};
use super::super::policy::PolicyTally;
use super::crashing_journal::{Crash, Crashes, CrashingJournal, Disk, Fate};
use super::outside::Outside;
use super::people::People;
use super::player::Process;
use super::record::Record;
use super::sim_tree::{Mode, SimTree};
use crate::SteadyClock;

/// How often the other tasks of a process get their turn after it lost its tree.
const LINGERING: u32 = 100;

/// Where a tree is kept.
#[derive(Clone)]
pub(super) enum TreeStore {
    Memory(Arc<MemoryJournal>),
    Sqlite(PathBuf),
}

impl TreeStore {
    fn open(&self) -> Result<Arc<dyn Journal>, String> {
        match self {
            Self::Memory(journal) => Ok(Arc::<MemoryJournal>::clone(journal)),
            Self::Sqlite(home) => match SqliteJournal::open(home, Access::Write) {
                Ok(journal) => Ok(Arc::new(journal)),
                Err(fault) => Err(format!("the home could not be opened again: {fault}")),
            },
        }
    }
}

/// The outcome of a tree.
#[derive(Clone, Debug)]
pub(super) struct Life {
    pub(super) exit: Exit,
    pub(super) shown: String,
    pub(super) spent: Amounts,
    /// How each agent ended, and what it and all below it used.
    pub(super) agents: BTreeMap<AgentId, (String, Amounts)>,
    pub(super) batches: u64,
    pub(super) events: u64,
    pub(super) crashes: u64,
    /// Calls that were stopped while they ran.
    pub(super) stopped: u64,
    pub(super) calls: (u64, u64),
    pub(super) policy: PolicyTally,
    pub(super) seen: BTreeSet<&'static str>,
}

/// How one process ended.
enum Left {
    Over,
    Crashed,
}

struct SimProcess {
    plot: Arc<SimTree>,
    shelf: TreeStore,
    record: Arc<Record>,
    outside: Arc<Outside>,
    crashes: Crashes,
    /// Shared by all processes: time passes while none of them runs.
    clock: Arc<dyn Clock>,
}

/// Runs a tree from its start to its end.
pub(super) async fn live(plot: SimTree, shelf: TreeStore, crashes: Vec<Crash>) -> Result<Life, String> {
    let record = Arc::new(Record::new());
    let stage = SimProcess {
        outside: Arc::new(Outside::new(Arc::clone(&record))),
        plot: Arc::new(plot),
        shelf,
        record,
        crashes: Arc::new(Mutex::new(VecDeque::from(crashes))),
        clock: Arc::new(SteadyClock::new()),
    };
    let mut lives = 0;
    while let Left::Crashed = stage.process(lives).await? {
        lives += 1;
        stage.record.verdict()?;
        if stage.plot.mode == Mode::Wild {
            let ms = stage.plot.dice(&format!("down/{lives}")).below(3_000);
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
    }
    stage.record.verdict()?;
    stage.judge(lives)
}

impl SimProcess {
    /// One process, from its start to its crash or the tree's end.
    async fn process(&self, number: u64) -> Result<Left, String> {
        let fate = Fate::default();
        let process = Process {
            plot: Arc::clone(&self.plot),
            outside: Arc::clone(&self.outside),
            record: Arc::clone(&self.record),
            crashed: fate.crashed.clone(),
        };
        let (record, crashes) = (Arc::clone(&self.record), Arc::clone(&self.crashes));
        let mut crashing =
            CrashingJournal::new(self.shelf.open()?, record, crashes, fate.clone(), Arc::clone(&self.clock));
        if self.plot.mode == Mode::Wild && self.plot.dice("disk").once_in(2) {
            crashing = crashing.on(Disk::new(self.plot.dice(&format!("disk/{number}"))));
        }
        let crashing = Arc::new(crashing);
        let draws = Rng::seeded(self.plot.dice(&format!("draws/{number}")).next());
        let journal: Arc<dyn Journal> = Arc::<CrashingJournal>::clone(&crashing);
        let home = Home::open_with(journal, process.drivers(), Arc::clone(&self.clock), draws);
        self.record.opened(Time(self.clock.now_ms()));
        let left = tokio::select! {
            biased;
            () = fate.crashed.cancelled() => Ok(Left::Crashed),
            () = crashing.turn() => Ok(Left::Crashed),
            left = self.run(&home, &fate) => left,
        };
        home.shutdown(Shutdown::Kill).await;
        left
    }

    async fn run(&self, home: &Home, fate: &Fate) -> Result<Left, String> {
        let before = (self.record.questions(), Time(self.clock.now_ms()));
        let tree = match self.record.tree() {
            None => {
                let tree = home.start(self.plot.definition()).await.map_err(|error| error.to_string())?;
                hold(self.record.tree() == Some(tree.id()), || {
                    "it was started and is not durable".to_owned()
                })?;
                tree
            }
            Some(id) => match home.resume(id).await {
                Ok(tree) => tree,
                Err(ResumeError::Ended { .. }) => return Ok(Left::Over),
                Err(error) => return Err(format!("the tree cannot be resumed: {error}")),
            },
        };
        let left = self.follow(home, fate, &tree, before).await;
        if fate.taken.is_cancelled() {
            self.give_up(&tree).await?;
            return Ok(Left::Crashed);
        }
        left
    }

    /// The tree has another owner: it stops here on its own, and nothing more leaves.
    async fn give_up(&self, tree: &Tree) -> Law {
        let status = tree.ended().await;
        let is_owned = matches!(&status.stopped, Some(Stopped::Journal(JournalFault::Owned { .. })));
        hold(is_owned, || format!("another owner has the tree, and it stopped for {:?}", status.stopped))?;
        self.record.lost();
        if self.plot.mode == Mode::Wild {
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
        for _ in 0..LINGERING {
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    async fn follow(
        &self,
        home: &Home,
        fate: &Fate,
        tree: &Tree,
        (questions, opened): (Vec<(CallId, AgentId, Time)>, Time),
    ) -> Result<Left, String> {
        let snapshot = tree.snapshot().await.map_err(|error| format!("nobody can look: {error}"))?;
        self.record.judge_look(&snapshot)?;
        let looked = Time(self.clock.now_ms());
        for (question, agent, until) in questions {
            let open = snapshot.questions.iter().any(|open| open.question == question);
            let ends = snapshot.agents.iter().any(|view| {
                view.agent == agent && matches!(view.status, AgentStatus::Ending | AgentStatus::Ended(_))
            });
            let stops = |event: &Event| matches!(event, Event::WrapUpStarted { agent: who, stops: true } if *who == agent);
            let is_short = self.record.events(Seq(0), snapshot.seq).iter().any(stops);
            let may_be_over = until <= looked || is_short || (ends && !self.plot.mode.is_exact());
            hold(open || may_be_over, || format!("{question} of {agent} is gone"))?;
            hold(!open || until > opened, || {
                format!("{question} of {agent} is open, and its time was over")
            })?;
        }
        let mut people = People::new(Arc::clone(&self.plot), Arc::clone(&self.clock));
        tokio::select! {
            biased;
            () = fate.stop.cancelled() => {
                home.shutdown(Shutdown::Stop).await;
                Ok(Left::Crashed)
            }
            () = people.attend(tree, &self.record) => Ok(Left::Crashed),
            status = tree.ended() => self.ended(tree, &status).await,
        }
    }

    async fn ended(&self, tree: &Tree, status: &TreeStatus) -> Result<Left, String> {
        hold(status.stopped.is_none(), || format!("the tree stopped: {:?}", status.stopped))?;
        let snapshot = tree.snapshot().await.map_err(|error| format!("nobody can look: {error}"))?;
        self.record.judge_look(&snapshot)?;
        Ok(Left::Over)
    }

    /// Checks everything that must hold for an ended tree.
    fn judge(&self, crashes: u64) -> Result<Life, String> {
        self.record.check_over()?;
        let Some(snapshot) = self.record.snapshot() else { return Err("there is no tree".to_owned()) };
        let Some(id) = self.record.tree() else { return Err("there is no tree".to_owned()) };
        let journal = self.shelf.open()?;
        let head = journal.head(id).wait().map_err(|fault| fault.to_string())?;
        let Some(head) = head else { return Err("the tree is not in the journal".to_owned()) };
        hold(head.seq == snapshot.seq, || {
            format!("the journal is at {:?}, the tree at {:?}", head.seq, snapshot.seq)
        })?;
        hold(snapshot.state.is_over() && head.state == snapshot.state, || {
            format!("the head says {}, the tree is {:?}", head.state, snapshot.state)
        })?;
        let heads = journal.heads(&[]).wait().map_err(|fault| fault.to_string())?.len();
        hold(heads == 1, || format!("there are {heads} trees"))?;
        let verified =
            verify(journal.as_ref(), id, Some(head.hash)).wait().map_err(|error| error.to_string())?;
        hold(verified.decided, || "the journal was not decided again".to_owned())?;
        hold(verified.snapshot == snapshot, || {
            format!("a replay gives {:?}, seen was {snapshot:?}", verified.snapshot)
        })?;
        let Some(end) = snapshot.end else { return Err("the tree has no end".to_owned()) };
        let agents =
            snapshot.agents.into_iter().map(|view| (view.agent, (view.status.to_string(), view.spent)));
        Ok(Life {
            exit: end.exit,
            shown: end.shown.text,
            spent: end.spent,
            agents: agents.collect(),
            batches: self.record.batches(),
            events: snapshot.seq.0,
            crashes,
            stopped: self.record.stopped(),
            calls: self.outside.calls(),
            policy: self.record.policy(),
            seen: self.record.seen(),
        })
    }
}

/// Compares a tree with its run without a crash.
pub(super) enum Same {
    Yes,
    /// A crash during the stop of a call: that is billed in full, and under a ceiling more may follow.
    Excused,
    No(String),
}

impl Life {
    /// Whether the crashes changed nothing that they must not change.
    pub(super) fn same_as(&self, whole: &Self, plot: &SimTree) -> Same {
        let stopped = self.stopped + whole.stopped > 0;
        // Which of several failures comes first depends on timing.
        let is_first = plot.is_graph() && plot.mode == Mode::Parallel;
        let exit =
            |life: &Self| if is_first { life.exit.as_str().to_owned() } else { format!("{:?}", life.exit) };
        let exits = (exit(self), exit(whole));
        match self.compare(whole, stopped, &exits) {
            Ok(()) => Same::Yes,
            Err(_) if stopped && plot.mode == Mode::Serial => Same::Excused,
            Err(law) => Same::No(law),
        }
    }

    fn compare(&self, whole: &Self, stopped: bool, exits: &(String, String)) -> Law {
        let same = |what: &str, holds: bool| {
            hold(holds, || format!("{what} differs from an uninterrupted run: {self:?}, not {whole:?}"))
        };
        same("the exit", exits.0 == exits.1)?;
        same("the result", self.shown == whole.shown)?;
        let ends = |life: &Self| -> Vec<(AgentId, String)> {
            life.agents.iter().map(|(id, (word, _))| (id.clone(), word.clone())).collect()
        };
        same("the end of an agent", ends(self) == ends(whole))?;
        same("what was spent", stopped || (self.spent == whole.spent && self.agents == whole.agents))
    }
}
