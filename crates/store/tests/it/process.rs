//! Two processes and one home: one writes, the other is refused with its id and may read. The other process is this
//! test binary, started again for one test.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use spinney_journal::{Append, Blocking, Journal};
use spinney_kernel::primitives::{Durability, Seq};
use spinney_store::{Access, OpenHomeError, SqliteJournal};
use spinney_testkit::conformance;

use super::{TREE, open};

/// The variable with the home of the other process. Unset in any other run.
const HOME: &str = "SPINNEY_TEST_HOME";

struct Other {
    child: Child,
    ask: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Other {
    fn start(home: &Path) -> std::io::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["--exact", "process::what_the_other_process_does", "--nocapture"])
            .env(HOME, home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let missing = || std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        let ask = child.stdin.take().ok_or_else(missing)?;
        let answers = BufReader::new(child.stdout.take().ok_or_else(missing)?).lines();
        let mut other = Self { child, ask, answers };
        other.hear("open")?;
        Ok(other)
    }

    /// Waits for a line with this end; the test harness may have written its beginning.
    fn hear(&mut self, word: &str) -> std::io::Result<()> {
        for line in self.answers.by_ref() {
            if line?.ends_with(word) {
                return Ok(());
            }
        }
        Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof))
    }

    /// Makes it append one batch, and waits for the confirmation.
    fn append(&mut self) -> std::io::Result<()> {
        writeln!(self.ask, "append")?;
        self.hear("appended")
    }
}

/// Opens the home, then appends one batch per line that it reads.
#[test]
#[expect(clippy::disallowed_methods, reason = "a process that starts itself again has to tell itself so")]
fn what_the_other_process_does() {
    let Some(home) = std::env::var_os(HOME) else { return };
    let journal = open(Path::new(&home));
    println!("open");
    let mut after = 0;
    for (batch, line) in conformance::batches().iter().zip(std::io::stdin().lines()) {
        assert_eq!(line.unwrap(), "append");
        conformance::append(&journal, conformance::append_for(TREE, Seq(after), batch)).unwrap();
        after += batch.events.len() as u64;
        println!("appended");
    }
}

#[test]
fn a_second_process_is_refused_with_the_pid_and_looks_while_the_first_writes() {
    let home = tempfile::tempdir().unwrap();
    let mut other = Other::start(home.path()).unwrap();
    let pid = other.child.id();
    let refused = || SqliteJournal::open(home.path(), Access::Write).err();
    assert_eq!(refused(), Some(OpenHomeError::Locked { pid }));
    let looker = SqliteJournal::open(home.path(), Access::ReadOnly).unwrap();
    assert_eq!(looker.heads(&[]).wait(), Ok(Vec::new()));
    for count in 1..=5 {
        other.append().unwrap();
        assert_eq!(looker.read(TREE, Seq(0), usize::MAX).wait().unwrap().len(), count);
        assert_eq!(refused(), Some(OpenHomeError::Locked { pid }));
    }
    // A killed process releases the lock, and what it confirmed is there.
    other.child.kill().unwrap();
    other.child.wait().unwrap();
    let read = open(home.path()).read(TREE, Seq(0), usize::MAX).wait().unwrap();
    let batches: Vec<_> = read.into_iter().map(|entry| entry.batch).collect();
    assert_eq!(batches, conformance::batches()[..5]);
}

/// The variable with the home for the child of the next test. Unset in any other run.
const KILLED_HOME: &str = "SPINNEY_TEST_KILLED_HOME";

/// Appends forever, sometimes more than SQLite keeps in memory, and prints how many are confirmed.
#[test]
#[expect(clippy::disallowed_methods, reason = "a process that starts itself again has to tell itself so")]
fn what_the_killed_process_does() {
    let Some(home) = std::env::var_os(KILLED_HOME) else { return };
    let journal = open(Path::new(&home));
    let batch = conformance::batches().swap_remove(3);
    let first = journal.head(TREE).wait().unwrap().map_or(0, |head| head.seq.0) / batch.events.len() as u64;
    for number in first.. {
        let blobs = if number % 16 == 7 { vec![vec![number as u8; 4_000_000]] } else { Vec::new() };
        let durability = if number % 3 == 0 { Durability::Full } else { Durability::Normal };
        let after = Seq(number * batch.events.len() as u64);
        let append = Append {
            durability,
            blobs: blobs.into(),
            catalog: Vec::new(),
            ..conformance::append_for(TREE, after, &batch)
        };
        conformance::append(&journal, append).unwrap();
        println!("confirmed {}", number + 1);
    }
}

/// G13 (the store's part): a kill at any moment loses nothing confirmed and is never reported as damage.
#[test]
fn g13_two_hundred_plain_kills_are_never_called_damage() {
    let home = tempfile::tempdir().unwrap();
    let mut confirmed = 0;
    for kill in 0..200 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "process::what_the_killed_process_does", "--nocapture"])
            .env(KILLED_HOME, home.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut lines =
            lines.filter_map(|line| line.rsplit_once("confirmed ").and_then(|(_, n)| n.parse().ok()));
        for _ in 0..1 + kill % 9 {
            confirmed = lines.next().unwrap_or_else(|| panic!("kill {kill}: it ended by itself"));
        }
        child.kill().unwrap();
        confirmed = lines.last().unwrap_or(confirmed);
        child.wait().unwrap();
        // Every other time the next process is the first to read.
        if kill % 2 == 0 {
            let journal = SqliteJournal::open(home.path(), Access::ReadOnly);
            let journal = journal.unwrap_or_else(|fault| panic!("kill {kill}: {fault}"));
            let events = conformance::batches()[3].events.len() as u64;
            assert!(journal.head(TREE).wait().unwrap().unwrap().seq.0 >= confirmed * events, "kill {kill}");
        }
    }
    assert!(confirmed > 200);
}
