//! Git that reads what an agent could write: in a box, with a git directory that we made, and with nothing to write but that.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::git::{ENVIRONMENT, SETTINGS, said};
use super::own_git;
use super::record::copy_folder;
use crate::off_worker::off_worker;
use crate::sandbox::{
    BoxLauncher, BoxLimits, BoxRefusal, BoxTierChoice, BoxedCommand, BoxedEnd, BoxedExit, Confinement,
};

const TIMEOUT: Duration = Duration::from_secs(600);
/// What taking over may use; a copy that needs more stays where it is.
const LIMITS: BoxLimits = BoxLimits { processes: 64, memory_bytes: 2 << 30, disk_bytes: DISK_BYTES_MAX };
pub(super) const DISK_BYTES_MAX: u64 = 2 << 30;
/// How much of what git prints is kept, unless more is asked for.
const KEPT_BYTES: usize = 4_096;

/// Why git in a box did not do what it should.
#[derive(Debug, thiserror::Error)]
pub enum BoxedGitError {
    #[error("git cannot run in a box here")]
    Refused(#[from] BoxRefusal),
    #[error("git in a box failed: {said}")]
    Failed { said: String },
    #[error("git in a box was ended: {}", exit_text(*exit))]
    Ended { exit: BoxedExit },
    #[error("the folder of the copy cannot be used")]
    Folder(#[from] io::Error),
}

fn exit_text(exit: BoxedExit) -> String {
    match exit {
        BoxedExit::TimedOut => format!("it took longer than {} s", TIMEOUT.as_secs()),
        BoxedExit::PastLimit(limit) => format!("past its limit ({limit:?})"),
        other => format!("{other:?}"),
    }
}

/// What makes boxes, and of which kind.
#[derive(Clone, Copy)]
pub(super) struct Boxes<'a> {
    pub(super) launcher: &'a BoxLauncher,
    pub(super) tier: BoxTierChoice,
}

/// A folder in which git works once, and the box around it.
pub(super) struct BoxedGit<'a> {
    launcher: &'a BoxLauncher,
    /// Ours alone.
    place: PathBuf,
    /// Where it begins.
    folder: PathBuf,
    confinement: Confinement,
}

impl<'a> BoxedGit<'a> {
    /// For a copy, which it may read: its files and its objects, and those of its repository.
    pub(super) async fn with_copy(
        boxes: Boxes<'a>,
        agent: &Path,
        place: &str,
        objects: &Path,
        is_sha256: bool,
    ) -> io::Result<Self> {
        let copy = copy_folder(agent);
        let own = copy.join(".git/objects");
        let is_folder = |path: &Path| path.symlink_metadata().is_ok_and(|found| found.is_dir());
        let has_own = is_folder(&copy.join(".git")) && is_folder(&own);
        let borrowed: Vec<PathBuf> = has_own.then_some(own).into_iter().chain([objects.to_owned()]).collect();
        let read = vec![copy.clone(), objects.to_owned()];
        Self::make(boxes, agent.join(place), copy, borrowed, read, is_sha256).await
    }

    /// For a repository alone, of which it may read the objects.
    pub(super) async fn with_objects(
        boxes: Boxes<'a>,
        agent: &Path,
        place: &str,
        objects: &Path,
        is_sha256: bool,
    ) -> io::Result<Self> {
        let (place, read) = (agent.join(place), vec![objects.to_owned()]);
        Self::make(boxes, place.clone(), place.join("git"), read.clone(), read, is_sha256).await
    }

    async fn make(
        boxes: Boxes<'a>,
        place: PathBuf,
        folder: PathBuf,
        borrowed: Vec<PathBuf>,
        read: Vec<PathBuf>,
        is_sha256: bool,
    ) -> io::Result<Self> {
        let (git_dir, lists) = (place.join("git"), place.join("lists"));
        let (made, git, names) = (place.clone(), git_dir.clone(), lists.clone());
        let make = move || -> io::Result<()> {
            own_git::remove(&made)?;
            fs::create_dir_all(&names)?;
            own_git::make(&git, &borrowed, is_sha256)
        };
        off_worker(make).await?;
        let mut confinement = Confinement::new(git_dir.clone());
        confinement.read = read;
        confinement.read.push(lists);
        confinement.limits = LIMITS;
        confinement.tier = boxes.tier;
        let mut set = |name: &str, value: &Path| {
            confinement.environment.push((name.into(), value.as_os_str().to_owned()));
        };
        set("GIT_DIR", &git_dir);
        set("GIT_WORK_TREE", &folder);
        set("GIT_INDEX_FILE", &git_dir.join("index"));
        ENVIRONMENT.into_iter().for_each(|(name, value)| set(name, Path::new(value)));
        set("GIT_CONFIG_COUNT", Path::new(&SETTINGS.len().to_string()));
        for (index, setting) in SETTINGS.iter().enumerate() {
            let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
            set(&format!("GIT_CONFIG_KEY_{index}"), Path::new(key));
            set(&format!("GIT_CONFIG_VALUE_{index}"), Path::new(value));
        }
        Ok(Self { launcher: boxes.launcher, place, folder, confinement })
    }

    /// With another variable.
    pub(super) fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.confinement.environment.push((name.into(), value.into()));
    }

    /// Where git writes.
    pub(super) fn written(&self, name: &str) -> PathBuf {
        self.place.join("git").join(name)
    }

    /// Where it reads what we write.
    pub(super) fn lists(&self) -> PathBuf {
        self.place.join("lists")
    }

    /// Runs a script of ours with these words.
    pub(super) async fn run(&self, script: &str, words: &[&str]) -> Result<(), BoxedGitError> {
        self.start(script, words, KEPT_BYTES).await.map(drop)
    }

    /// The same, with more of what it prints.
    pub(super) async fn start(
        &self,
        script: &str,
        words: &[&str],
        kept_bytes: usize,
    ) -> Result<BoxedEnd, BoxedGitError> {
        let mut command = BoxedCommand::new(["sh", "-c", script, "spinney"].iter().chain(words).copied());
        command.folder = Some(self.folder.clone());
        command.timeout = TIMEOUT;
        command.kept_bytes = kept_bytes;
        let mut running = self.launcher.start(&self.confinement, &command)?;
        let end = running.finish(&mut |_, _| ()).await?;
        match end.exit {
            BoxedExit::Exited(0) => Ok(end),
            BoxedExit::Exited(_) => {
                let printed = [end.stderr.head(), &end.stderr.tail()].concat();
                Err(BoxedGitError::Failed { said: said(&printed) })
            }
            exit => Err(BoxedGitError::Ended { exit }),
        }
    }

    /// Removes everything that it wrote.
    pub(super) async fn clean(&self) -> io::Result<()> {
        let place = self.place.clone();
        off_worker(move || own_git::remove(&place)).await
    }
}
