//! The kill campaign: real processes, killed with SIGKILL at any moment, on a tree of fifty agents with keyed and
//! unkeyed effects, messages and questions.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use spinney::draw::Draws;
use spinney::tree::verify;
use spinney_journal::{Blocking, Journal};
use spinney_kernel::budget::Resource;
use spinney_kernel::context::End;
use spinney_kernel::words::CallId;
use spinney_store::{Access, SqliteJournal};
use spinney_testkit::sim::whole::{Audit, audit};

const KILLS: u32 = 200;
/// A call that is lost repeatedly is given up after eight times, so every process gets some time.
const LINES_MAX: u64 = 140;

/// A tree's home and the world outside it.
struct Ground {
    folder: tempfile::TempDir,
    seed: u64,
}

impl Ground {
    fn new(seed: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["home", "outside"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self { folder, seed }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    /// Runs one process until the tree has ended, or until it has printed this many lines and is killed.
    fn process(&self, kill: Option<Kill>) -> bool {
        let mut child = Command::new(env!("CARGO_BIN_EXE_campaign"))
            .args([self.path("home"), self.path("outside")])
            .arg(self.seed.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let ended = match kill {
            None => lines.any(|line| line == "ended"),
            Some(Kill { lines: after, spins }) => {
                let ended = lines.by_ref().take(after).any(|line| line == "ended");
                (0..spins).for_each(|_| std::hint::spin_loop());
                child.kill().unwrap();
                // Its output before it died is read completely.
                ended || lines.any(|line| line == "ended")
            }
        };
        let status = child.wait().unwrap();
        assert!(kill.is_some() || status.success(), "it failed by itself");
        ended
    }

    /// Checks everything that must hold once the tree has ended.
    fn judge(&self) -> (End, Audit) {
        let journal = SqliteJournal::open(&self.path("home"), Access::Look).unwrap();
        let heads = journal.heads(&[]).wait().unwrap();
        let [head] = heads.as_slice() else { panic!("there are {} trees", heads.len()) };
        let audit = audit(&journal, head.tree).unwrap_or_else(|law| panic!("seed {}: {law}", self.seed));
        let verified = verify(&journal, head.tree, Some(head.hash)).wait().unwrap();
        assert!(verified.decided);
        (verified.look.end.unwrap(), audit)
    }

    /// How often each tool call began, by tool and key.
    fn starts(&self) -> BTreeMap<(String, String), u64> {
        let mut starts = BTreeMap::new();
        for line in std::fs::read_to_string(self.path("outside").join("starts")).unwrap().lines() {
            let (tool, key) = line.split_once(' ').unwrap();
            *starts.entry((tool.to_owned(), key.to_owned())).or_insert(0) += 1;
        }
        starts
    }
}

#[derive(Clone, Copy)]
struct Kill {
    lines: usize,
    spins: u64,
}

fn random_kill(draws: &mut Draws) -> Kill {
    // Sometimes it dies during its start.
    let lines = if draws.next().is_multiple_of(12) { draws.next() % 2 } else { 1 + draws.next() % LINES_MAX };
    Kill { lines: usize::try_from(lines).unwrap(), spins: draws.next() % 200_000 }
}

/// Kills a tree's processes until it has ended, and returns the number of kills.
fn campaign(ground: &Ground, draws: &mut Draws) -> u32 {
    let mut kills = 0;
    while !ground.process(Some(random_kill(draws))) {
        kills += 1;
    }
    kills
}

/// Totals over all kills.
#[derive(Default)]
struct Traces {
    kills: u32,
    resumed: u64,
    lost: u64,
    presumed_nanos: u64,
}

impl Traces {
    fn add(&mut self, kills: u32, audit: &Audit) {
        self.kills += kills;
        self.resumed += audit.resumed.values().sum::<u64>();
        self.lost += audit.lost;
        self.presumed_nanos += audit.presumed.of(Resource::Cost);
    }
}

fn compare(ground: &Ground, whole_end: &End, whole_audit: &Audit) -> Audit {
    let (end, audit) = ground.judge();
    let seed = ground.seed;
    assert_eq!((&end.exit, &end.shown), (&whole_end.exit, &whole_end.shown), "seed {seed}");
    // No agent, message or question is lost.
    let counts =
        |audit: &Audit| [audit.agents, audit.completed, audit.messages, audit.questions, audit.answers];
    assert_eq!(counts(&audit), counts(whole_audit), "seed {seed}");
    assert_eq!([audit.agents, audit.completed, audit.messages], [50, 50, 42], "seed {seed}");
    assert_eq!(audit.questions, audit.answers, "seed {seed}");
    // Every call is paid once; what a kill cut off is presumed spent and counted separately.
    let cost = |audit: &Audit| audit.spent.of(Resource::Cost) - audit.presumed.of(Resource::Cost);
    assert_eq!(cost(&audit), cost(whole_audit), "seed {seed}");
    // A keyed effect starts again only if that was decided; an unkeyed one never does.
    for ((tool, key), starts) in ground.starts() {
        let call: u64 = key.rsplit('/').next().unwrap().parse().unwrap();
        let resumed = audit.resumed.get(&CallId(call)).copied().unwrap_or_default();
        let most = if tool == "note" { 1 + resumed } else { 1 };
        assert!(starts <= most, "seed {seed}: {key} began {starts} times, {most} at most are right");
    }
    let made = |name: &str| {
        let files = std::fs::read_dir(ground.path("outside")).unwrap();
        files.filter(|file| file.as_ref().unwrap().file_name().to_string_lossy().starts_with(name)).count()
    };
    assert_eq!(made("note-"), 42 * 2 + 7, "seed {seed}: every keyed effect is made once");
    assert!(made("post-") <= 42 && made("post-") as u64 + audit.lost >= 42, "seed {seed}");
    audit
}

/// X2: two hundred kills, and no agent, message or question is lost, no keyed effect happens twice, nothing is paid
/// twice, and every tree has the result of an undisturbed run.
#[test]
fn x2_two_hundred_kills_lose_nothing_and_repeat_nothing() {
    let run = |first: u64| {
        let mut draws = Draws::seeded(first);
        let mut traces = Traces::default();
        for seed in (first..).step_by(2) {
            let whole = Ground::new(seed);
            assert!(whole.process(None));
            let (whole_end, whole_audit) = whole.judge();
            let ground = Ground::new(seed);
            let kills = campaign(&ground, &mut draws);
            traces.add(kills, &compare(&ground, &whole_end, &whole_audit));
            if traces.kills >= KILLS / 2 {
                break;
            }
        }
        traces
    };
    let halves = std::thread::scope(|scope| {
        let odd = scope.spawn(|| run(1));
        [run(2), odd.join().unwrap()]
    });
    let sum = |of: fn(&Traces) -> u64| halves.iter().map(of).sum::<u64>();
    assert!(sum(|half| u64::from(half.kills)) >= u64::from(KILLS));
    // Calls of every kind were hit.
    assert!(
        sum(|half| half.resumed) > 100 && sum(|half| half.lost) > 0 && sum(|half| half.presumed_nanos) > 0
    );
    println!(
        "{} kills: {} calls resumed, {} lost, {} nano-USD presumed",
        sum(|half| u64::from(half.kills)),
        sum(|half| half.resumed),
        sum(|half| half.lost),
        sum(|half| half.presumed_nanos)
    );
}
