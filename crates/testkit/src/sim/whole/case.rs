//! A case: one seed, run once without a crash and then repeatedly with crashes at chosen positions.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use spinney_store::MemoryJournal;

use super::super::dice::Dice;
use super::crashing_journal::{Crash, CrashKind};
use super::life::{Life, Same, TreeStore, live};
use super::sim_tree::{Mode, SimTree};
use super::{RunTally, RunViolation};

/// The longest that a simulated tree may take, in its own time: beyond every timeout of a plot.
const LIFE_MAX: Duration = Duration::from_secs(100 * 24 * 60 * 60);

/// Where the trees of a case are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaseStore {
    /// In memory.
    Memory,
    /// In SQLite, in their own folder below this one.
    Sqlite(PathBuf),
}

/// Which crashes a case tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashChoice {
    /// One crash at every position of the journal, before and after the batch is written.
    Every,
    /// Another owner claims the tree at every position of the journal but the first.
    Takeover,
    /// This many runs with several crashes each, anywhere.
    Random(u64),
}

/// One seed and how it is run.
pub struct Case {
    /// The seed.
    pub seed: u64,
    /// What may happen.
    pub mode: Mode,
    /// Where it is kept.
    pub place: CaseStore,
}

impl Case {
    /// Whether its tree runs a graph instead of an agent that decides.
    #[must_use]
    pub fn is_graph(&self) -> bool {
        SimTree::new(self.seed, self.mode).is_graph()
    }

    /// Runs the case without a crash, and then with the chosen crashes.
    ///
    /// # Errors
    /// The broken law, and how to reproduce it.
    pub fn run(&self, tries: CrashChoice) -> Result<RunTally, RunViolation> {
        let whole = self.live(&[])?;
        let mut tally = RunTally { cases: 1, ..RunTally::default() };
        tally.count(&whole);
        match tries {
            CrashChoice::Every => {
                for at in 1..=whole.batches {
                    for blow in [CrashKind::Before, CrashKind::After] {
                        self.at(&whole, Crash { at, blow }, &mut tally)?;
                    }
                }
            }
            CrashChoice::Takeover => {
                for at in 2..=whole.batches {
                    self.at(&whole, Crash { at, blow: CrashKind::TakenOver }, &mut tally)?;
                }
            }
            CrashChoice::Random(lives) => {
                let mut dice = Dice::new(self.seed ^ 0xC4A5_4ED0);
                let plot = SimTree::new(self.seed, self.mode);
                for _ in 0..lives {
                    let crashes = crashes(&mut dice, whole.batches, &plot);
                    self.again(&whole, &crashes, &mut tally)?;
                }
            }
        }
        Ok(tally)
    }

    /// One crash at one position, which must happen.
    fn at(&self, whole: &Life, crash: Crash, tally: &mut RunTally) -> Result<(), RunViolation> {
        let before = tally.crashes;
        self.again(whole, &[crash], tally)?;
        if tally.crashes != before + 1 {
            return Err(self.broken(&[crash], "it did not crash".to_owned()));
        }
        tally.positions += 1;
        Ok(())
    }

    fn again(&self, whole: &Life, crashes: &[Crash], tally: &mut RunTally) -> Result<(), RunViolation> {
        let life = self.live(crashes)?;
        tally.count(&life);
        if self.mode.is_exact() {
            let plot = SimTree::new(self.seed, self.mode);
            match life.same_as(whole, &plot) {
                Same::Yes => tally.equal += 1,
                Same::Excused => tally.excused += 1,
                Same::No(law) => return Err(self.broken(crashes, law)),
            }
        }
        Ok(())
    }

    fn live(&self, crashes: &[Crash]) -> Result<Life, RunViolation> {
        let broken = |law| self.broken(crashes, law);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.map_err(|error| broken(error.to_string()))?;
        let folder = match &self.place {
            CaseStore::Memory => None,
            CaseStore::Sqlite(folder) => Some(folder.join(format!("whole-{}-{:?}", self.seed, self.mode))),
        };
        let shelf = folder
            .clone()
            .map_or_else(|| TreeStore::Memory(Arc::new(MemoryJournal::new())), TreeStore::Sqlite);
        let plot = SimTree::new(self.seed, self.mode);
        let life = runtime
            .block_on(async { tokio::time::timeout(LIFE_MAX, live(plot, shelf, crashes.to_vec())).await });
        drop(runtime);
        if let Some(folder) = folder {
            clear(&folder).map_err(broken)?;
        }
        life.unwrap_or_else(|_| Err("the tree did not come to its end".to_owned())).map_err(broken)
    }

    fn broken(&self, crashes: &[Crash], law: String) -> RunViolation {
        RunViolation { seed: self.seed, mode: self.mode, crashes: crashes.to_vec(), law }
    }
}

fn clear(folder: &Path) -> Result<(), String> {
    std::fs::remove_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))
}

/// Several crashes in order, some close together.
fn crashes(dice: &mut Dice, batches: u64, plot: &SimTree) -> Vec<Crash> {
    // A person who stops a running call is too late if it may end during the shutdown.
    let put_away = match plot.mode {
        Mode::Serial => false,
        Mode::Parallel => !plot.meddling,
        Mode::Wild => true,
    };
    // Nor does a person come in time if it ends while the journal is away.
    let away = plot.mode == Mode::Wild || !plot.meddling;
    let mut at = 0;
    let count = dice.between(1, 6);
    (0..count)
        .map(|_| {
            let far = if dice.once_in(2) { 3 } else { batches.div_ceil(count).max(1) };
            at += dice.between(1, far);
            let blow = match dice.below(8) {
                0 if put_away => CrashKind::Stop,
                1 | 2 => CrashKind::After,
                3 if away => CrashKind::Away,
                4 if away => CrashKind::AwayWritten,
                5 => CrashKind::TakenOver,
                _ => CrashKind::Before,
            };
            Crash { at, blow }
        })
        .collect()
}
