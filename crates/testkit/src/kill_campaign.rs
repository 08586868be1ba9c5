//! The kill campaign: real processes, killed with SIGKILL at any moment, on a tree of fifty agents with keyed and unkeyed
//! effects, messages and questions. The process is `src/bin/campaign.rs`.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use spinney::rng::Rng;
use spinney::tree::verify;
use spinney_journal::{Blocking, Journal};
use spinney_kernel::budget::Resource;
use spinney_kernel::context::End;
use spinney_kernel::primitives::CallId;
use spinney_store::{Access, SqliteJournal};

use crate::sim::whole::{Audit, audit};

/// A call that is lost repeatedly is given up after eight times, so every process gets some time.
const LINES_MAX: u64 = 140;

/// What a campaign did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KillTally {
    /// Trees that were killed until they ended.
    pub trees: u64,
    /// Processes that were killed.
    pub kills: u64,
    /// Calls that were started again.
    pub resumed: u64,
    /// Calls that were lost for good.
    pub lost: u64,
    /// Nano-USD that no provider reported.
    pub presumed: u64,
}

impl KillTally {
    /// Adds another campaign.
    pub const fn add(&mut self, other: &Self) {
        self.trees += other.trees;
        self.kills += other.kills;
        self.resumed += other.resumed;
        self.lost += other.lost;
        self.presumed += other.presumed;
    }
}

/// Runs one tree undisturbed and again with its processes killed until it has ended, and compares the two. `program` is
/// the built `campaign`, `folder` an empty folder, and `draws` say when to kill.
///
/// # Errors
/// The first law that was broken, or why it could not be tried.
pub fn kill_one_tree(program: &Path, folder: &Path, seed: u64, draws: &mut Rng) -> Result<KillTally, String> {
    let broken = |law: String| format!("seed {seed}: {law}");
    let whole = Ground::new(program, folder.join("whole"), seed)?;
    if !whole.process(None).map_err(|error| error.to_string())? {
        return Err(broken("the undisturbed tree did not end".to_owned()));
    }
    let undisturbed = whole.judge().map_err(broken)?;
    let ground = Ground::new(program, folder.join("killed"), seed)?;
    let mut kills = 0;
    while !ground.process(Some(Kill::random(draws))).map_err(|error| error.to_string())? {
        kills += 1;
    }
    let audit = ground.compare(&undisturbed).map_err(broken)?;
    let (resumed, presumed) = (audit.resumed.values().sum(), audit.presumed.get(Resource::Cost));
    Ok(KillTally { trees: 1, kills, resumed, lost: audit.lost, presumed })
}

/// A tree's home and the world outside it.
struct Ground<'a> {
    program: &'a Path,
    folder: PathBuf,
    seed: u64,
}

/// When a process is killed.
#[derive(Clone, Copy)]
struct Kill {
    lines: usize,
    spins: u64,
}

impl Kill {
    fn random(draws: &mut Rng) -> Self {
        // Sometimes it dies during its start.
        let lines =
            if draws.next().is_multiple_of(12) { draws.next() % 2 } else { 1 + draws.next() % LINES_MAX };
        Self { lines: usize::try_from(lines).unwrap_or_default(), spins: draws.next() % 200_000 }
    }
}

impl<'a> Ground<'a> {
    fn new(program: &'a Path, folder: PathBuf, seed: u64) -> Result<Self, String> {
        for name in ["home", "outside"] {
            fs::create_dir_all(folder.join(name)).map_err(|error| error.to_string())?;
        }
        Ok(Self { program, folder, seed })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Runs one process until the tree has ended, or until it has printed this many lines and is killed.
    fn process(&self, kill: Option<Kill>) -> io::Result<bool> {
        let mut child = Command::new(self.program)
            .args([self.path("home"), self.path("outside")])
            .arg(self.seed.to_string())
            .stdout(Stdio::piped())
            .spawn()?;
        let out = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let mut lines = BufReader::new(out).lines().map_while(Result::ok);
        let ended = match kill {
            None => lines.any(|line| line == "ended"),
            Some(Kill { lines: after, spins }) => {
                let ended = lines.by_ref().take(after).any(|line| line == "ended");
                (0..spins).for_each(|_| std::hint::spin_loop());
                child.kill()?;
                // Its output before it died is read completely.
                ended || lines.any(|line| line == "ended")
            }
        };
        let status = child.wait()?;
        if kill.is_none() && !status.success() {
            return Err(io::Error::other("the process failed by itself"));
        }
        Ok(ended)
    }

    /// Checks everything that must hold once the tree has ended.
    fn judge(&self) -> Result<(End, Audit), String> {
        let journal =
            SqliteJournal::open(&self.path("home"), Access::ReadOnly).map_err(|error| error.to_string())?;
        let heads = journal.heads(&[]).wait().map_err(|fault| fault.to_string())?;
        let [head] = heads.as_slice() else { return Err(format!("there are {} trees", heads.len())) };
        let audit = audit(&journal, head.tree)?;
        let verified =
            verify(&journal, head.tree, Some(head.hash)).wait().map_err(|error| error.to_string())?;
        match verified.snapshot.end.clone().filter(|_| verified.decided) {
            Some(end) => Ok((end, audit)),
            None => Err("the journal does not replay to an end".to_owned()),
        }
    }

    /// Compares it with a tree that was not disturbed.
    fn compare(&self, (whole_end, whole): &(End, Audit)) -> Result<Audit, String> {
        let (end, audit) = self.judge()?;
        same("the end", &(&end.exit, &end.shown), &(&whole_end.exit, &whole_end.shown))?;
        // No agent, message or question is lost.
        let counts =
            |audit: &Audit| [audit.agents, audit.completed, audit.messages, audit.questions, audit.answers];
        same("what happened", &counts(&audit), &counts(whole))?;
        same("agents and messages", &[audit.agents, audit.completed, audit.messages], &[50, 50, 42])?;
        same("answers", &audit.answers, &audit.questions)?;
        // Every call is paid once; what a kill cut off is presumed spent and counted separately.
        let cost = |audit: &Audit| audit.spent.get(Resource::Cost) - audit.presumed.get(Resource::Cost);
        same("the cost", &cost(&audit), &cost(whole))?;
        // A keyed effect starts again only if that was decided; an unkeyed one never does.
        for ((tool, key), starts) in self.starts()? {
            let call = key.rsplit('/').next().and_then(|call| call.parse().ok());
            let resumed = call.and_then(|call| audit.resumed.get(&CallId(call)).copied()).unwrap_or_default();
            let most = if tool == "note" { 1 + resumed } else { 1 };
            if starts > most {
                return Err(format!("{key} began {starts} times, {most} at most are right"));
            }
        }
        same("keyed effects", &self.made("note-")?, &(42 * 2 + 7))?;
        let posts = self.made("post-")?;
        if posts > 42 || posts + audit.lost < 42 {
            return Err(format!("{posts} unkeyed effects of 42, {} lost", audit.lost));
        }
        Ok(audit)
    }

    /// How often each tool call began, by tool and key.
    fn starts(&self) -> Result<BTreeMap<(String, String), u64>, String> {
        let text =
            fs::read_to_string(self.path("outside").join("starts")).map_err(|error| error.to_string())?;
        let mut starts = BTreeMap::new();
        for line in text.lines() {
            let (tool, key) = line.split_once(' ').ok_or_else(|| format!("`{line}` is not a start"))?;
            *starts.entry((tool.to_owned(), key.to_owned())).or_insert(0) += 1;
        }
        Ok(starts)
    }

    /// How many effects of a kind there are outside.
    fn made(&self, kind: &str) -> Result<u64, String> {
        let files = fs::read_dir(self.path("outside")).map_err(|error| error.to_string())?;
        let is_one = |file: &fs::DirEntry| file.file_name().to_string_lossy().starts_with(kind);
        Ok(files.flatten().filter(is_one).count() as u64)
    }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, expected: &T) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{what}: {found:?}, undisturbed {expected:?}")) }
}
