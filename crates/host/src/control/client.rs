//! The client: reaches the process that has a home open, or opens the home itself if none has.

use std::fs::TryLockError;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use spinney::{Drivers, Home};
use spinney_journal::JournalFault;
use spinney_kernel::primitives::{Actor, Millis, TreeId};
use spinney_kernel::rules::request::{Request, Verb};
use spinney_store::SqliteJournal;
use spinney_store::layout::LOCK;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::time::{sleep, timeout};

use super::apply::apply;
use super::{ControlReply, ControlRequest, EXCHANGE_MS_MAX, LINE_BYTES_MAX, SteerReply, line};
use crate::home::{self, HomeError, workspaces};
use crate::system::private_files::{self, Links};
use crate::system::socket_address::SocketAddress;
use crate::trust::tree_marks;

/// Tries to reach a process that has the home open but does not answer: it may be starting or ending.
const TRIES_MAX: u32 = 40;
const TRY_MS: u64 = 50;

const PID_BYTES_MAX: u64 = 32;

/// Why a request was not answered.
#[derive(Debug, thiserror::Error)]
pub enum SteerError {
    /// The home cannot be opened.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// Its journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalFault),
    /// Its process cannot be reached.
    #[error("cannot reach the process that has {} open", home.display())]
    Unreachable {
        /// The home.
        home: PathBuf,
        /// The cause.
        #[source]
        why: io::Error,
    },
    /// A process has the home open and takes no requests: nothing was done.
    #[error("a process has {} open and accepts no requests: {why}", home.display())]
    Busy {
        /// The home.
        home: PathBuf,
        /// Why it takes none.
        why: io::Error,
    },
    /// The process was asked and did not answer: the result is unknown.
    #[error("{what}: it is unknown whether the request was carried out")]
    Unknown {
        /// The home.
        home: PathBuf,
        /// The tree that it was about; its events tell.
        tree: Option<TreeId>,
        /// What happened.
        what: String,
    },
    /// The process that has the home open does not know the request.
    #[error("process {pid} has {} open and is an older release, which cannot do this for other processes: stop it and try again", home.display())]
    OlderOwner {
        /// The home.
        home: PathBuf,
        /// The process.
        pid: u32,
    },
}

/// Sends a person's request to the process that has the tree's home open, or applies it here. The bytes are those of the
/// request's parts, in order.
pub async fn ask_with<V: Verb>(
    home: &Path,
    tree: TreeId,
    verb: V,
    bytes: Vec<Vec<u8>>,
) -> Result<SteerReply<V::Reply>, SteerError> {
    let answer = ask_any(home, tree, verb.into(), bytes).await?;
    answer.to::<V>().ok_or_else(|| {
        let what = "the process that has this home open answered another request".to_owned();
        SteerError::Unknown { home: home.to_owned(), tree: Some(tree), what }
    })
}

async fn ask_any(
    home: &Path,
    tree: TreeId,
    request: Request,
    bytes: Vec<Vec<u8>>,
) -> Result<ControlReply, SteerError> {
    let ask = ControlRequest::Apply { tree, request: Box::new(request.clone()) };
    match reach_with(home, Some(tree), &ask, &bytes).await? {
        ReachedHome::Answered(answer) => Ok(answer),
        ReachedHome::Free(journal) => {
            let opened = Home::open(Arc::new(*journal), Drivers::new()).with_actor(Actor::PERSON);
            let answer = apply(&opened, tree, request, bytes).await;
            if let ControlReply::Done { .. } = answer {
                workspaces::mend(home, Arc::clone(opened.journal()), tree).await;
                tree_marks::update(home, opened.journal().as_ref(), tree).await;
            }
            Ok(answer)
        }
    }
}

/// Who can change a home.
pub enum ReachedHome {
    /// No other process has it open: this one has now.
    Free(Box<SqliteJournal>),
    /// The process that has it open answered.
    Answered(ControlReply),
}

/// Opens a home to change it, or asks the process that has it open. `tree` is the one that it is about.
pub async fn reach(
    home: &Path,
    tree: Option<TreeId>,
    ask: &ControlRequest,
) -> Result<ReachedHome, SteerError> {
    reach_with(home, tree, ask, &[]).await
}

async fn reach_with(
    home: &Path,
    tree: Option<TreeId>,
    ask: &ControlRequest,
    bytes: &[Vec<u8>],
) -> Result<ReachedHome, SteerError> {
    let mut tries = 0;
    loop {
        if let Some(journal) = home::open_writable_if_free(home).await? {
            return Ok(ReachedHome::Free(Box::new(journal)));
        }
        match exchange(home, ask, bytes).await {
            Ok(answer) if answer.is_unknown_ask() => return Err(older_owner(home)),
            Ok(answer) => return Ok(ReachedHome::Answered(answer)),
            Err(Unreached::Lost(what)) => {
                return Err(SteerError::Unknown { home: home.to_owned(), tree, what });
            }
            Err(Unreached::Closed(why)) if !is_nobody_there(&why) => {
                return Err(SteerError::Unreachable { home: home.to_owned(), why });
            }
            Err(Unreached::Closed(_)) if tries < TRIES_MAX => tries += 1,
            Err(Unreached::Closed(why)) => return Err(SteerError::Busy { home: home.to_owned(), why }),
        }
        sleep(Duration::from_millis(TRY_MS)).await;
    }
}

/// The process that has a home open does not know a request.
pub(super) fn older_owner(home: &Path) -> SteerError {
    let pid = holder(home).ok().flatten().unwrap_or(0);
    SteerError::OlderOwner { home: home.to_owned(), pid }
}

/// Which process runs trees in a home.
pub enum RunningTrees {
    /// These run.
    Trees(Vec<TreeId>),
    /// This process has the home open and does not answer.
    Silent(u32),
    /// No process has it open.
    Nobody,
    /// It is another user's home.
    Unknown,
}

/// Which trees of a home run, as the process that has it open says.
pub async fn running(home: &Path) -> RunningTrees {
    match exchange(home, &ControlRequest::Running, &[]).await {
        Ok(ControlReply::Running { trees }) => RunningTrees::Trees(trees),
        Ok(
            ControlReply::Done { .. }
            | ControlReply::Resumed { .. }
            | ControlReply::HasEnded
            | ControlReply::Branched { .. }
            | ControlReply::Cleaned { .. }
            | ControlReply::TextFollows
            | ControlReply::Refused { .. }
            | ControlReply::Failed { .. },
        )
        | Err(_) => match holder(home) {
            Ok(holder) => holder.map_or(RunningTrees::Nobody, RunningTrees::Silent),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => RunningTrees::Unknown,
            Err(_) => RunningTrees::Nobody,
        },
    }
}

/// The process that has a home open for writing. Touches the lock only if its last holder seems to live: reading must
/// not keep others from opening the home.
pub(super) fn holder(home: &Path) -> io::Result<Option<u32>> {
    let lock = private_files::plain(&home.join(LOCK), Links::Refuse)?;
    let mut text = String::new();
    (&lock).take(PID_BYTES_MAX).read_to_string(&mut text)?;
    let pid: Option<u32> = text.trim().parse().ok();
    let Some(pid) = pid.filter(|pid| Path::new("/proc").join(pid.to_string()).exists()) else {
        return Ok(None);
    };
    match lock.try_lock_shared() {
        Err(TryLockError::WouldBlock) => Ok(Some(pid)),
        Ok(()) | Err(TryLockError::Error(_)) => Ok(None),
    }
}

enum Unreached {
    /// No listener: nothing was asked.
    Closed(io::Error),
    /// It was asked, and the result is unknown.
    Lost(String),
}

/// Whether there is no socket or no listener: the process may be starting or ending. Other errors, such as too many
/// open files, do not resolve themselves.
pub(super) fn is_nobody_there(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused)
}

async fn exchange(home: &Path, ask: &ControlRequest, bytes: &[Vec<u8>]) -> Result<ControlReply, Unreached> {
    let address = SocketAddress::for_home(home).map_err(Unreached::Closed)?;
    let line = line::encode(ask).map_err(|error| Unreached::Closed(error.into()))?;
    if line.len() > LINE_BYTES_MAX {
        let why =
            format!("the request has {} bytes and the limit is {LINE_BYTES_MAX}: shorten it", line.len());
        return Err(Unreached::Closed(io::Error::new(ErrorKind::InvalidInput, why)));
    }
    address.check().map_err(Unreached::Closed)?;
    let stream = UnixStream::connect(address.path()).await.map_err(Unreached::Closed)?;
    let talk = async {
        let (from, mut to) = stream.into_split();
        to.write_all(&line).await?;
        for bytes in bytes {
            // A server that refuses does not read them, and its answer says why.
            if to.write_all(bytes).await.is_err() {
                break;
            }
        }
        let mut told = Vec::new();
        BufReader::new(from.take(LINE_BYTES_MAX as u64)).read_until(b'\n', &mut told).await?;
        if told.is_empty() {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        line::decode(&told).map_err(io::Error::other)
    };
    match timeout(Duration::from_millis(EXCHANGE_MS_MAX), talk).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) if error.kind() == ErrorKind::UnexpectedEof => {
            Err(Unreached::Lost("the process that has this home open exited before it answered".to_owned()))
        }
        Ok(Err(error)) => Err(Unreached::Lost(format!(
            "the process that has this home open did not read the whole request ({error})"
        ))),
        Err(_) => Err(Unreached::Lost(format!("no answer after {}", Millis(EXCHANGE_MS_MAX)))),
    }
}
