//! The side that runs trees: takes requests from other processes, one per connection, and passes them on.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use spinney::tree::{ApplyError, RequestError};
use spinney::{Home, Tree};
use spinney_kernel::id::TreeId;
use spinney_kernel::part::{BadPart, Part, check_parts};
use spinney_kernel::world::TreeState;
use spinney_kernel::{By, Request};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Take};
use tokio::net::unix::OwnedReadHalf;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use super::address::Address;
use super::{Answer, Ask, EXCHANGE_MS_MAX, GoesOn, LINE_BYTES_MAX};

/// Most connections at the same time; then the next one waits.
const CONNECTIONS_MAX: usize = 32;
/// How long the last answers may take when we are done.
const FAREWELL_MS_MAX: u64 = 2_000;

/// A socket that listens; whoever connects waits until it is served.
pub(crate) struct Listening {
    listener: UnixListener,
    file: SocketFile,
}

/// The socket's file, which goes with it.
struct SocketFile(Address);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // One that stays is replaced by the next process.
        let _ = fs::remove_file(self.0.path());
    }
}

/// A socket that is served.
pub(crate) struct Server {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

/// Who answers: the tree that runs here, and its home for every other one.
struct Desk {
    home: Arc<Home>,
    tree: Tree,
}

impl Listening {
    /// Listens in a home that this process has open to write. A socket that is there is a dead process's.
    pub(crate) fn bind(home: &Path) -> io::Result<Self> {
        let address = Address::of(home)?;
        match fs::remove_file(address.path()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let listener = UnixListener::bind(address.path())?;
        fs::set_permissions(address.path(), Permissions::from_mode(0o600))?;
        Ok(Self { listener, file: SocketFile(address) })
    }

    /// Serves it.
    pub(crate) fn serve(self, home: Arc<Home>, tree: Tree) -> Server {
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(serve(self, Arc::new(Desk { home, tree }), stopped));
        Server { stop, task }
    }
}

impl Server {
    /// Takes no more requests, answers those that came, and removes the socket.
    pub(crate) async fn close(self) {
        drop(self.stop);
        let _ = self.task.await;
    }
}

async fn serve(listening: Listening, desk: Arc<Desk>, mut stopped: oneshot::Receiver<()>) {
    let Listening { listener, file } = listening;
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            _ = &mut stopped => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if connections.len() < CONNECTIONS_MAX => {
                // One that cannot be taken went away, or we are short of something that comes back.
                if let Ok((stream, _)) = accepted {
                    let desk = Arc::clone(&desk);
                    let exchange = async move { exchange(stream, &desk).await };
                    connections.spawn(timeout(Duration::from_millis(EXCHANGE_MS_MAX), exchange));
                }
            }
        }
    }
    drop((listener, file));
    let farewell = async { while connections.join_next().await.is_some() {} };
    // Whoever is slower than that is told nothing and sees the connection close.
    let _ = timeout(Duration::from_millis(FAREWELL_MS_MAX), farewell).await;
}

/// One line in, one line out.
async fn exchange(stream: UnixStream, desk: &Desk) -> io::Result<()> {
    let (from, mut to) = stream.into_split();
    let mut line = Vec::new();
    let mut from = BufReader::new(from.take(LINE_BYTES_MAX as u64 + 1));
    from.read_until(b'\n', &mut line).await?;
    let answer = if line.len() > LINE_BYTES_MAX {
        refused(format!("a request has at most {LINE_BYTES_MAX} bytes"))
    } else {
        match serde_json::from_slice::<Ask>(&line) {
            Ok(mut ask) => match enclosed(&mut ask, &mut from).await? {
                Ok(bytes) => desk.answer(ask, bytes).await,
                Err(bad) => refused(bad.to_string()),
            },
            Err(error) => refused(format!("not a request: {error}")),
        }
    };
    let mut told = serde_json::to_vec(&answer)?;
    told.push(b'\n');
    to.write_all(&told).await?;
    to.shutdown().await
}

/// The bytes of a request's parts, which come behind its line. Nothing is read that a message may not have.
async fn enclosed(
    ask: &mut Ask,
    from: &mut BufReader<Take<OwnedReadHalf>>,
) -> io::Result<Result<Vec<Vec<u8>>, BadPart>> {
    let Ask::Do { request, .. } = ask else { return Ok(Ok(Vec::new())) };
    let parts: Vec<Part> = request.parts_mut().map(|part| part.clone()).collect();
    if let Err(bad) = check_parts(parts.iter()) {
        return Ok(Err(bad));
    }
    from.get_mut().set_limit(parts.iter().map(|part| part.blob().bytes).sum());
    let mut all = Vec::with_capacity(parts.len());
    for part in parts {
        let mut bytes = vec![0; usize::try_from(part.blob().bytes).unwrap_or(usize::MAX)];
        from.read_exact(&mut bytes).await?;
        all.push(bytes);
    }
    Ok(Ok(all))
}

impl Desk {
    async fn answer(&self, ask: Ask, bytes: Vec<Vec<u8>>) -> Answer {
        match ask {
            Ask::Running => Answer::Running { trees: self.running().into_iter().collect() },
            Ask::Do { request, .. } if !is_for_people(&request) => refused(
                "this may not be asked from outside: only signals, messages, answers, raises, checkpoints and rollbacks"
                    .to_owned(),
            ),
            Ask::Do { tree, request } if tree == self.tree.id() => {
                match self.tree.request_with(By::Person, *request, bytes).await {
                    Ok(reply) => Answer::done(reply, GoesOn::Now),
                    Err(RequestError::Refused(refusal)) => refused(refusal.to_string()),
                    Err(RequestError::Stopped(stopped)) => Answer::Failed { message: stopped.to_string() },
                }
            }
            Ask::Do { tree, request } => apply(&self.home, tree, *request, bytes).await,
        }
    }

    fn running(&self) -> Option<TreeId> {
        let status = self.tree.status();
        let runs = !matches!(status.state, TreeState::Ended(_)) && status.stopped.is_none();
        runs.then(|| self.tree.id())
    }
}

/// Does something that a person asks of a tree that nobody runs.
pub(super) async fn apply(home: &Home, tree: TreeId, request: Request, bytes: Vec<Vec<u8>>) -> Answer {
    match home.apply_with(tree, request, bytes).await {
        Ok(reply) => Answer::done(reply, GoesOn::WhenResumed),
        Err(ApplyError::Refused(refusal)) => refused(refusal.to_string()),
        Err(ApplyError::Journal(fault)) => Answer::Failed { message: fault.to_string() },
        Err(error @ ApplyError::Running { .. }) => refused(error.to_string()),
    }
}

fn refused(message: String) -> Answer {
    Answer::Refused { message }
}

/// Whether a request is one that people make of a tree, and not one of its own agents or its start.
fn is_for_people(request: &Request) -> bool {
    match request {
        Request::Send(_)
        | Request::Publish(_)
        | Request::Refresh(_)
        | Request::Broadcast(_)
        | Request::Answer(_)
        | Request::Pause(_)
        | Request::Unpause(_)
        | Request::Cancel(_)
        | Request::Redirect(_)
        | Request::Raise(_)
        | Request::Checkpoint(_)
        | Request::Rollback(_) => true,
        Request::Start(_)
        | Request::Spawn(_)
        | Request::Followup(_)
        | Request::Hold(_)
        | Request::Charge(_)
        | Request::Wait(_)
        | Request::Ask(_)
        | Request::Finish(_)
        | Request::Fail(_)
        | Request::Branch(_) => false,
    }
}
