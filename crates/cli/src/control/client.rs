//! The client: reaches the process that has a home open, or opens the home itself if none has.

use std::fmt;
use std::fs::TryLockError;
use std::io::{self, ErrorKind, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use spinney::{Drivers, Home};
use spinney_kernel::rules::request::{Request, Verb};
use spinney_kernel::words::{Millis, TreeId};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::time::{sleep, timeout};

use super::address::Address;
use super::server::apply;
use super::{Answer, Ask, Asked, EXCHANGE_MS_MAX, LINE_BYTES_MAX, line};
use crate::hint::{about, command};
use crate::home;
use crate::home::private_files::{self, Links};
use crate::home::workspaces;

/// Tries to reach a process that has the home open but does not answer: it may be starting or ending.
const TRIES_MAX: u32 = 40;
const TRY_MS: u64 = 50;

const PID_BYTES_MAX: u64 = 32;

/// Sends a person's request to the process that has the tree's home open, or applies it here. The bytes are those of the
/// request's parts, in order.
pub(crate) async fn ask_with<V: Verb>(
    home: &Path,
    tree: TreeId,
    verb: V,
    bytes: Vec<Vec<u8>>,
) -> Result<Asked<V::Reply>> {
    let answer = ask_any(home, tree, verb.into(), bytes).await?;
    answer.to::<V>().ok_or_else(|| {
        let look = about(home, "events", tree, &[]);
        let what = "the process that has this home open answered another request";
        NoAnswer::Unknown(unknown(what, &look)).into()
    })
}

async fn ask_any(home: &Path, tree: TreeId, request: Request, bytes: Vec<Vec<u8>>) -> Result<Answer> {
    let ask = Ask::Do { tree, request: Box::new(request.clone()) };
    let mut tries = 0;
    loop {
        if let Some(journal) = home::write_if_free(home)? {
            let opened = Home::open(Arc::new(journal), Drivers::new());
            let answer = apply(&opened, tree, request, bytes).await;
            if let Answer::Done { .. } = answer {
                workspaces::mend(home, opened.journal().as_ref(), tree);
            }
            return Ok(answer);
        }
        match exchange(home, &ask, &bytes).await {
            Ok(answer) => return Ok(answer),
            Err(Unreached::Lost(message)) => return Err(NoAnswer::Unknown(message).into()),
            Err(Unreached::Closed(error)) if !is_nobody_there(&error) => {
                return Err(error)
                    .with_context(|| format!("cannot reach the process that has {} open", home.display()));
            }
            Err(Unreached::Closed(_)) if tries < TRIES_MAX => tries += 1,
            Err(Unreached::Closed(error)) => {
                let why = format!("a process has {} open and accepts no requests: {error}", home.display());
                return Err(NoAnswer::Busy(why).into());
            }
        }
        sleep(Duration::from_millis(TRY_MS)).await;
    }
}

/// Which process runs trees in a home.
pub(crate) enum Running {
    Trees(Vec<TreeId>),
    /// This process has the home open and does not answer.
    Silent(u32),
    Nobody,
    /// It is another user's home.
    Unknown,
}

pub(crate) async fn running(home: &Path) -> Running {
    match exchange(home, &Ask::Running, &[]).await {
        Ok(Answer::Running { trees }) => Running::Trees(trees),
        Ok(Answer::Done { .. } | Answer::TextFollows | Answer::Refused { .. } | Answer::Failed { .. })
        | Err(_) => match holder(home) {
            Ok(holder) => holder.map_or(Running::Nobody, Running::Silent),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => Running::Unknown,
            Err(_) => Running::Nobody,
        },
    }
}

/// The process that has a home open for writing. Touches the lock only if its last holder seems to live: reading must
/// not keep others from opening the home.
fn holder(home: &Path) -> io::Result<Option<u32>> {
    let lock = private_files::plain(&home.join("lock"), Links::Refuse)?;
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
fn is_nobody_there(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused)
}

#[derive(Debug)]
pub(crate) enum NoAnswer {
    /// A process has the home open and takes no requests: nothing was done.
    Busy(String),
    /// The process was asked and did not answer: the result is unknown.
    Unknown(String),
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Busy(message) | Self::Unknown(message)) = self;
        f.write_str(message)
    }
}

impl std::error::Error for NoAnswer {}

fn unknown(what: &str, look: &str) -> String {
    format!("{what}: it is unknown whether the request was done; find out with `{look}`")
}

async fn exchange(home: &Path, ask: &Ask, bytes: &[Vec<u8>]) -> Result<Answer, Unreached> {
    let address = Address::of(home).map_err(Unreached::Closed)?;
    let line = line::encode(ask).map_err(|error| Unreached::Closed(error.into()))?;
    if line.len() > LINE_BYTES_MAX {
        let why =
            format!("the request has {} bytes and the limit is {LINE_BYTES_MAX}: shorten it", line.len());
        return Err(Unreached::Closed(io::Error::new(ErrorKind::InvalidInput, why)));
    }
    address.check().map_err(Unreached::Closed)?;
    let stream = UnixStream::connect(address.path()).await.map_err(Unreached::Closed)?;
    let look = match ask {
        Ask::Running => command(home, &["ps"]),
        Ask::Do { tree, .. } | Ask::Text { tree } => about(home, "events", *tree, &[]),
    };
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
    let unknown = |what: String| Unreached::Lost(unknown(&what, &look));
    match timeout(Duration::from_millis(EXCHANGE_MS_MAX), talk).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) if error.kind() == ErrorKind::UnexpectedEof => {
            Err(unknown("the process that has this home open exited before it answered".to_owned()))
        }
        Ok(Err(error)) => Err(unknown(format!(
            "the process that has this home open did not take the whole request ({error})"
        ))),
        Err(_) => Err(unknown(format!("no answer after {}", Millis(EXCHANGE_MS_MAX)))),
    }
}
