//! Whether a process runs inside a run of `spinney exec`, or was started by an agent of a tree, with a box or without. Such a process may look at the trees of the run's home and start
//! new ones, and changes none: neither over the socket of a process that has them open, nor by opening them itself.
//!
//! A process is inside if one of its ancestors is the guard of a run or of a command in the home, which the guard's command line says, or
//! the process of the run, which holds the lock of its own home. What a program leaves behind becomes a child of its guard.
//! A program can remove the lock, but not the guard from its ancestors: only in a namespace of processes of its own does it
//! not see them, and there a lock that is gone counts as held.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use spinney_drivers::sandbox::HELPER_NAME;
use spinney_store::layout::LOCK;
use tokio::net::UnixStream;

use crate::side_folders;
use crate::system::files;
use crate::system::private_files::{self, Links};
use crate::system::processes::ProcessHandle;

/// The hidden command that guards a program.
pub const GUARD: &str = "exec-guard";
/// The program of this process.
pub const OURSELVES: &str = "/proc/self/exe";
/// The option of the guard that names the home of its run.
pub const HOME_OPTION: &str = "--of-home";
/// Most ancestors that are followed.
const ANCESTORS_MAX: usize = 1_024;
/// The inode of the namespace of processes that a machine starts with. Who is in it sees all processes.
const FIRST_NAMESPACE: u64 = 0xEFFF_FFFC;
/// How often the ancestors are read again if one of them ends meanwhile.
const TRIES_MAX: usize = 8;
/// The beginning of a guard's command line has its mark.
const MARK_BYTES_MAX: u64 = 256;

/// Why a process may not change the trees of a home.
#[derive(Debug)]
pub enum ChangeDenied {
    /// It runs inside a run of that home.
    Inside,
    /// It is unknown whether the process is inside, and it may be.
    Unknown(io::Error),
}

impl fmt::Display for ChangeDenied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inside => f.write_str(
                "this process runs inside a run of `exec` or of an agent, and cannot change the trees in its home: use another terminal",
            ),
            Self::Unknown(error) => write!(
                f,
                "it is unknown whether this process runs inside a run of `exec`, because its parents cannot be read ({error}): use another terminal"
            ),
        }
    }
}

impl std::error::Error for ChangeDenied {}

/// Fails if this process must not change the trees of a home.
pub fn check_self(home: &Path) -> Result<(), ChangeDenied> {
    match ProtectedHome::new(home) {
        Ok(home) => match ancestry(std::process::id()).and_then(|ancestry| home.has_run_in(&ancestry)) {
            // It cannot be inside a run if there is none.
            Err(_) if !home.has_live_run() => Ok(()),
            is_inside => denied(is_inside),
        },
        // A home that does not exist has no runs.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(ChangeDenied::Unknown(error)),
    }
}

/// Whether this process is known to run inside a run of `exec`, in whatever home.
pub fn is_inside_any() -> bool {
    ancestry(std::process::id()).is_ok_and(|ancestry| ancestry.iter().any(|process| process.guards.is_some()))
}

/// A home with the homes of its runs.
pub struct ProtectedHome {
    path: PathBuf,
    inode: HomeInode,
}

impl ProtectedHome {
    /// A home, also by the path of one of its runs.
    pub fn new(home: &Path) -> io::Result<Self> {
        let path = side_folders::above(&fs::canonicalize(home)?).to_owned();
        let inode = HomeInode::read(&path)?;
        Ok(Self { path, inode })
    }

    /// The home that people name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Fails if another process must not change its trees. One that cannot be read must not: it may have left its end of the
    /// socket to another one.
    pub fn check_peer(&self, peer: io::Result<PeerProcess>) -> Result<(), ChangeDenied> {
        denied(peer.and_then(|peer| {
            let ancestry = ancestry(peer.pid)?;
            if ancestry.first().is_none_or(|first| first.started != peer.started) || !peer.is_there()? {
                return Err(ended());
            }
            // Nothing that this process started changes what it has open.
            let own = std::process::id();
            Ok(ancestry.iter().any(|process| process.pid == own)
                || self.has_run_in(&ancestry)?
                || is_boxed_apart(&ancestry)?)
        }))
    }

    /// Whether one of these processes belongs to a run.
    fn has_run_in(&self, ancestry: &[Process]) -> io::Result<bool> {
        let is_guarded = ancestry.iter().any(|process| process.guards == Some(self.inode));
        Ok(is_guarded || self.is_run_by(ancestry)?)
    }

    /// Whether one of these processes has the home of a run open.
    fn is_run_by(&self, ancestry: &[Process]) -> io::Result<bool> {
        let locks = fs::read_to_string("/proc/locks")?;
        let locks: Vec<FileLock> = locks.lines().filter_map(FileLock::read).collect();
        let sees_all = files::identity(&fs::metadata("/proc/self/ns/pid")?).1 == FIRST_NAMESPACE;
        for path in self.locks() {
            let inode = fs::symlink_metadata(&path).map(|about| files::identity(&about).1).ok();
            let mut holders = locks.iter().filter(|lock| Some(lock.inode) == inode).peekable();
            // Neither the locks nor the ancestors in a namespace above are listed.
            if !sees_all && holders.peek().is_none() && is_locked(&path) {
                return Err(io::Error::other("a run of this home is in another namespace"));
            }
            if holders.any(|lock| ancestry.iter().any(|process| process.pid == lock.pid)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether some process has the home of a run open.
    fn has_live_run(&self) -> bool {
        self.locks().any(|lock| is_locked(&lock))
    }

    /// The lock of each run's home.
    fn locks(&self) -> impl Iterator<Item = PathBuf> {
        side_folders::folders(&self.path).into_iter().map(|side| side.folder.join(LOCK))
    }
}

/// Whether some process holds the lock of a run's home, or may do so. One that is gone may be held: a run makes it before its
/// journal, and nothing of ours removes it alone.
fn is_locked(lock: &Path) -> bool {
    match private_files::plain(lock, Links::Refuse).as_ref().map(File::try_lock_shared) {
        Ok(Ok(())) => false,
        Ok(Err(TryLockError::WouldBlock | TryLockError::Error(_))) => true,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            lock.parent().is_some_and(side_folders::has_journal)
        }
        Err(_) => true,
    }
}

/// Whether a process is in a box, of whatever home, that this process is not in. A box is no place to steer trees from: a
/// folder that it may read can have the socket of any home.
fn is_boxed_apart(ancestry: &[Process]) -> io::Result<bool> {
    let mut guards = ancestry.iter().filter(|process| process.is_box_guard).peekable();
    if guards.peek().is_none() {
        return Ok(false);
    }
    let above = self::ancestry(std::process::id())?;
    Ok(guards.any(|guard| !above.contains(guard)))
}

fn denied(is_inside: io::Result<bool>) -> Result<(), ChangeDenied> {
    match is_inside {
        Ok(false) => Ok(()),
        Ok(true) => Err(ChangeDenied::Inside),
        Err(error) => Err(ChangeDenied::Unknown(error)),
    }
}

/// The process at the other end of a socket, as it was when it connected: its number may be given to another process.
pub struct PeerProcess {
    pid: u32,
    started: u64,
    /// None on kernels before 6.5.
    handle: Option<ProcessHandle>,
}

impl PeerProcess {
    /// The process at the other end.
    pub fn from_stream(stream: &UnixStream) -> io::Result<Self> {
        let handle = ProcessHandle::from_peer(stream)?;
        let pid = match &handle {
            Some(handle) => handle.pid()?,
            None => stream.peer_cred()?.pid().and_then(|pid| u32::try_from(pid).ok()),
        };
        let Process { pid, started, .. } = Process::read(pid.unwrap_or(0))?;
        Ok(Self { pid, started, handle })
    }

    /// Whether its number is still its own, so what was read with it is about this process.
    fn is_there(&self) -> io::Result<bool> {
        self.handle.as_ref().map_or(Ok(true), |handle| Ok(handle.pid()? == Some(self.pid)))
    }
}

/// A home by its folder, however its path is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HomeInode {
    device: u64,
    inode: u64,
}

impl HomeInode {
    /// The home that people name, also for the home of a run.
    pub fn read(home: &Path) -> io::Result<Self> {
        let about = fs::metadata(side_folders::above(&fs::canonicalize(home)?))?;
        let (device, inode) = files::identity(&about);
        Ok(Self { device, inode })
    }
}

impl fmt::Display for HomeInode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.device, self.inode)
    }
}

impl FromStr for HomeInode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once(':').and_then(|(device, inode)| {
            Some(Self { device: device.parse().ok()?, inode: inode.parse().ok()? })
        });
        numbers.ok_or_else(|| "write a device and an inode, such as 66306:1234".to_owned())
    }
}

/// A process at one moment.
#[derive(Debug, PartialEq, Eq)]
struct Process {
    pid: u32,
    parent: u32,
    /// In ticks since the machine started. With its number it names one process.
    started: u64,
    /// The home of the run that it guards.
    guards: Option<HomeInode>,
    /// Whether it guards a box, of whatever home.
    is_box_guard: bool,
}

impl Process {
    /// Fails for 0, which is the number of a process in another namespace.
    fn read(pid: u32) -> io::Result<Self> {
        let stat = fs::read(format!("/proc/{pid}/stat")).map_err(|error| of_process(pid, &error))?;
        let (parent, started) = parent_and_start(&String::from_utf8_lossy(&stat))
            .ok_or_else(|| of_process(pid, &ErrorKind::InvalidData.into()))?;
        let mut line = Vec::new();
        let read = File::open(format!("/proc/{pid}/cmdline"))
            .and_then(|file| file.take(MARK_BYTES_MAX).read_to_end(&mut line));
        read.map_err(|error| of_process(pid, &error))?;
        let is_box_guard = line.split(|byte| *byte == 0).next() == Some(HELPER_NAME.as_bytes());
        Ok(Self { pid, parent, started, guards: guarded(&line), is_box_guard })
    }
}

/// A process and its ancestors. Reads them twice: a number that another process got meanwhile would lead astray.
fn ancestry(pid: u32) -> io::Result<Vec<Process>> {
    // A `/proc` of another namespace has other numbers.
    if fs::read_link("/proc/self")? != Path::new(&std::process::id().to_string()) {
        return Err(io::Error::other("/proc belongs to another namespace"));
    }
    let mut last = Err(ended());
    for _ in 0..TRIES_MAX {
        let now = read_ancestry(pid);
        match (&last, &now) {
            (Ok(before), Ok(now)) if before == now => break,
            _ => last = now,
        }
    }
    last
}

fn read_ancestry(pid: u32) -> io::Result<Vec<Process>> {
    let mut ancestry = Vec::new();
    let mut next = pid;
    while ancestry.is_empty() || next != 0 {
        if ancestry.len() == ANCESTORS_MAX {
            return Err(io::Error::other(format!("it has more than {ANCESTORS_MAX} ancestors")));
        }
        let process = Process::read(next)?;
        next = process.parent;
        ancestry.push(process);
    }
    Ok(ancestry)
}

fn ended() -> io::Error {
    io::Error::other("a process ended meanwhile")
}

fn of_process(pid: u32, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("process {pid}: {error}"))
}

/// The parent and the start in `/proc/PID/stat`. The name of the program comes before them and may contain anything.
fn parent_and_start(stat: &str) -> Option<(u32, u64)> {
    const STATE: usize = 3;
    const PARENT: usize = 4;
    const START: usize = 22;
    let (_, after_name) = stat.rsplit_once(')')?;
    let field = |number: usize| after_name.split_whitespace().nth(number - STATE);
    Some((field(PARENT)?.parse().ok()?, field(START)?.parse().ok()?))
}

/// The home in the command line of a guard: of a program, or of a command of an agent.
fn guarded(line: &[u8]) -> Option<HomeInode> {
    let mut words = line.split(|byte| *byte == 0);
    let mut next = || words.next().and_then(|word| std::str::from_utf8(word).ok());
    let is_guard = match next() {
        Some(OURSELVES) => next() == Some(GUARD),
        Some(HELPER_NAME) => true,
        Some(_) | None => false,
    };
    if is_guard && next() == Some(HOME_OPTION) { next()?.parse().ok() } else { None }
}

/// The words on the command line of the guard of a command that an agent of this home runs.
pub fn command_mark(home: &Path) -> io::Result<Vec<OsString>> {
    Ok(vec![HOME_OPTION.into(), HomeInode::read(home)?.to_string().into()])
}

/// A line of `/proc/locks`.
#[derive(Debug, PartialEq, Eq)]
struct FileLock {
    pid: u32,
    inode: u64,
}

impl FileLock {
    /// Only locks on whole files, as a home has one.
    fn read(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        words.nth(1).filter(|kind| *kind == "FLOCK")?;
        let pid = words.nth(2)?.parse().ok()?;
        let inode = words.next()?.rsplit(':').next()?.parse().ok()?;
        Some(Self { pid, inode })
    }
}

#[cfg(test)]
mod tests {
    use spinney_store::layout::JOURNAL;

    use super::*;

    #[test]
    fn a_parent_is_found_behind_any_name() {
        let fields = "0 0 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1000";
        for name in ["sh", "a b", "a) S 99 (b", ")", "x)\n7 (y) R 1"] {
            let stat = format!("123 ({name}) S 45 {fields}");
            assert_eq!(parent_and_start(&stat), Some((45, 98_765)), "{stat}");
        }
        for broken in ["", "123 (sh)", "123 (sh) S", "123 (sh) S x 1"] {
            assert_eq!(parent_and_start(broken), None, "{broken}");
        }
    }

    #[test]
    fn a_guard_is_known_by_the_beginning_of_its_command_line() {
        let line = |words: &[&str]| words.iter().flat_map(|word| [word.as_bytes(), b"\0"].concat()).collect();
        let home = HomeInode { device: 66_306, inode: 12 };
        assert_eq!(home.to_string().parse(), Ok(home));
        let marked = |words: &[&str]| {
            let line: Vec<u8> = line(words);
            guarded(&line)
        };
        assert_eq!(marked(&[OURSELVES, GUARD, HOME_OPTION, "66306:12", "--", "sh"]), Some(home));
        assert_eq!(marked(&[HELPER_NAME, HOME_OPTION, "66306:12"]), Some(home));
        assert_eq!(marked(&[HELPER_NAME, "66306:12"]), None);
        assert_eq!(marked(&["bash", GUARD, HOME_OPTION, "66306:12"]), None);
        assert_eq!(marked(&[OURSELVES, "exec", HOME_OPTION, "66306:12"]), None);
        assert_eq!(marked(&[OURSELVES, GUARD, "--", HOME_OPTION, "66306:12"]), None);
        assert_eq!(marked(&[]), None);
    }

    #[test]
    fn a_lock_is_read_with_its_process_and_file() {
        let flock = "9: FLOCK  ADVISORY  WRITE 4321 fd:02:987654 0 EOF";
        assert_eq!(FileLock::read(flock), Some(FileLock { pid: 4_321, inode: 987_654 }));
        for other in [
            "9: POSIX  ADVISORY  WRITE 4321 fd:02:987654 0 EOF",
            "9: -> FLOCK ADVISORY WRITE 1 a:b:2 0 EOF",
            "",
        ] {
            assert_eq!(FileLock::read(other), None, "{other}");
        }
    }

    /// This process has ancestors up to the first one, and none of them guards a run.
    #[test]
    fn the_ancestors_of_a_process_end_at_the_first_one() {
        let own = std::process::id();
        let found = ancestry(own).unwrap();
        assert_eq!(found.first().map(|process| process.pid), Some(own));
        assert_eq!(found.last().map(|process| process.parent), Some(0));
        assert!(found.windows(2).all(|pair| pair[0].parent == pair[1].pid));
        // A process that another namespace hides has the number 0.
        assert!(ancestry(0).is_err());
    }

    /// G23: a process that cannot be read may be inside, so it is refused.
    #[test]
    fn g23_an_unreadable_process_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let run =
            side_folders::new_folder(folder.path(), "01a1e5e1a78a4c0e8d7f0123456789ab".parse().unwrap());
        fs::create_dir_all(&run).unwrap();
        let home = ProtectedHome::new(&run).unwrap();
        assert_eq!(home.path, folder.path().canonicalize().unwrap());
        let hidden = home.check_peer(Process::read(0).map(|_| unreachable!("no process has this number")));
        assert!(matches!(hidden, Err(ChangeDenied::Unknown(_))));
        let Process { pid, started, .. } = Process::read(std::process::id()).unwrap();
        // Its number was given to another process.
        let other = home.check_peer(Ok(PeerProcess { pid, started: started - 1, handle: None }));
        assert!(matches!(other, Err(ChangeDenied::Unknown(_))));
        // Ourselves, and so everything that we start.
        let own = home.check_peer(Ok(PeerProcess { pid, started, handle: None }));
        assert!(matches!(own, Err(ChangeDenied::Inside)));
    }

    /// G23: a lock that is gone may be held.
    #[test]
    fn g23_a_run_without_its_lock_counts_as_alive() {
        let folder = tempfile::tempdir().unwrap();
        let run =
            side_folders::new_folder(folder.path(), "01a1e5e1a78a4c0e8d7f0123456789ab".parse().unwrap());
        fs::create_dir_all(&run).unwrap();
        let home = ProtectedHome::new(&run).unwrap();
        assert!(!home.has_live_run());
        File::create(run.join(JOURNAL)).unwrap();
        assert!(home.has_live_run());
        let lock = File::create(run.join(LOCK)).unwrap();
        assert!(!home.has_live_run());
        lock.lock().unwrap();
        assert!(home.has_live_run());
    }

    const SOCKET: &str = "SPINNEY_TEST_SOCKET";

    /// What the next test starts: connects and ends.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "the next test says which socket")]
    fn connects_and_ends() {
        if let Some(socket) = std::env::var_os(SOCKET) {
            std::os::unix::net::UnixStream::connect(socket).unwrap();
        }
    }

    /// G23: a process that has ended may have left its end of the socket to any other, and also its number.
    #[tokio::test]
    async fn g23_a_peer_that_has_ended_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let listener = tokio::net::UnixListener::bind(&socket).unwrap();
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "inside::tests::connects_and_ends"]).env(SOCKET, &socket);
        assert!(child.output().unwrap().status.success());
        let (stream, _) = listener.accept().await.unwrap();
        let home = ProtectedHome::new(folder.path()).unwrap();
        let denied = home.check_peer(PeerProcess::from_stream(&stream));
        assert!(matches!(denied, Err(ChangeDenied::Unknown(_))), "{denied:?}");
    }

    /// G23: a socket knows the process at its other end, also after its number could be another's.
    #[tokio::test]
    async fn g23_a_peer_is_known_by_its_handle() {
        let (one, _other) = UnixStream::pair().unwrap();
        let peer = PeerProcess::from_stream(&one).unwrap();
        assert_eq!(peer.pid, std::process::id());
        assert!(peer.is_there().unwrap());
    }

    /// G23: the process of a run is known by the lock that it holds, also when its guard is gone.
    #[test]
    fn g23_what_the_process_of_a_run_started_is_inside() {
        let folder = tempfile::tempdir().unwrap();
        let run =
            side_folders::new_folder(folder.path(), "01a1e5e1a78a4c0e8d7f0123456789ab".parse().unwrap());
        fs::create_dir_all(&run).unwrap();
        check_self(folder.path()).unwrap();
        let lock = File::create(run.join(LOCK)).unwrap();
        lock.lock().unwrap();
        for home in [folder.path().to_owned(), run.clone(), run.join("../..")] {
            assert!(matches!(check_self(&home), Err(ChangeDenied::Inside)), "{}", home.display());
        }
        let other = tempfile::tempdir().unwrap();
        check_self(other.path()).unwrap();
    }
}
