//! The socket of a home: takes requests from other processes, one per connection, and passes them to the tree or its home.

mod leases;
mod text_readers;

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use spinney::tree::BranchOff;
use spinney::tree::RequestError;
use spinney::{Home, Tree};
use spinney_host::control::{
    Continues, ControlReply, ControlRequest, EXCHANGE_MS_MAX, LINE_BYTES_MAX, SocketAddress, UncleanedTree,
    apply, line, refused, refused_by_the_tree,
};
use spinney_host::home::inside::{ChangeDenied, PeerProcess, ProtectedHome};
use spinney_host::trust::tree_marks;
use spinney_host::{BranchTreeError, OpenHome, off_workers, with_causes};
use spinney_journal::{Cleaned, JournalFault};
use spinney_kernel::primitives::{Actor, BadPart, Part, TreeId, check_parts};
use spinney_kernel::rules::request::{Outside, Request, Verb};
use spinney_kernel::world::TreeState;
use spinney_store::system;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Take};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinHandle, JoinSet, spawn_blocking};
use tokio::time::timeout;

use self::leases::LeaseRequest;
use self::text_readers::{TextReaders, WatchedText};

/// Most connections at the same time. Beyond that, an idle one is closed, or one that only gets text; if there is none, the
/// next one waits.
const CONNECTIONS_MAX: usize = 32;
/// How long the last answers may take at shutdown.
const FAREWELL_MS_MAX: u64 = 2_000;
/// Why the process of a program does nothing for other trees.
const ONE_TREE: &str = "this process runs a program, and its journal has one tree";
/// How long a request that is arriving at shutdown may take.
const LAST_REQUEST_MS_MAX: u64 = 100;

/// A listening socket; clients wait until it is served.
pub struct Listening {
    listener: UnixListener,
    file: SocketFile,
    protected: ProtectedHome,
}

/// The socket's file, which is removed with it.
struct SocketFile {
    address: SocketAddress,
    /// Its device and inode: the home may have been deleted and created again.
    made: (u64, u64),
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let found = fs::symlink_metadata(self.address.path()).map(|found| system::identity(&found));
        if found.is_ok_and(|found| found == self.made) {
            // A leftover is replaced by the next process.
            let _ = fs::remove_file(self.address.path());
        }
    }
}

/// A served socket.
pub struct ControlServer {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

/// The tree that runs here, and its home for all others.
struct Handler {
    home: Arc<Home>,
    /// What this process does in it for others; none in the process of a program, whose journal has one tree.
    open: Option<Arc<OpenHome>>,
    protected: Arc<ProtectedHome>,
    tree: Tree,
    text_readers: TextReaders,
}

impl Listening {
    /// Listens in a home that this process has open for writing. An existing socket belongs to a dead process.
    pub fn bind(home: &Path) -> io::Result<Self> {
        let address = SocketAddress::for_home(home)?;
        match address.check().and_then(|()| fs::remove_file(address.path())) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        // A new socket's mode depends on the umask. Until it is set, the folder keeps others out.
        if system::mode(&fs::metadata(home)?) & 0o077 != 0 {
            let why = "other users can open the home: its mode was changed just now";
            return Err(io::Error::new(ErrorKind::PermissionDenied, why));
        }
        let listener = UnixListener::bind(address.path())?;
        system::make_private(address.path())?;
        let made = fs::symlink_metadata(address.path())?;
        let made = system::identity(&made);
        let protected = ProtectedHome::new(home)?;
        Ok(Self { listener, file: SocketFile { address, made }, protected })
    }

    /// Serves requests about the trees of a home, and runs trees for other processes.
    pub fn serve(self, open: Arc<OpenHome>, tree: Tree) -> ControlServer {
        self.serve_with(Arc::clone(open.home()), Some(open), tree)
    }

    /// Serves requests about the tree of a program.
    pub fn serve_program(self, home: Arc<Home>, tree: Tree) -> ControlServer {
        self.serve_with(home, None, tree)
    }

    fn serve_with(self, home: Arc<Home>, open: Option<Arc<OpenHome>>, tree: Tree) -> ControlServer {
        let (stop, stopped) = oneshot::channel();
        let Self { listener, file, protected } = self;
        let protected = Arc::new(protected);
        let handler = Handler { home, open, protected, tree, text_readers: TextReaders::new() };
        let task = tokio::spawn(serve(listener, file, Arc::new(handler), stopped));
        ControlServer { stop, task }
    }
}

impl ControlServer {
    /// Takes no more requests, answers pending ones, and removes the socket.
    pub async fn close(self) {
        drop(self.stop);
        let _ = self.task.await;
    }
}

async fn serve(
    listener: UnixListener,
    file: SocketFile,
    handler: Arc<Handler>,
    mut stopped: oneshot::Receiver<()>,
) {
    let mut connections = Connections::default();
    loop {
        tokio::select! {
            _ = &mut stopped => break,
            Some(_) = connections.tasks.join_next() => {}
            accepted = listener.accept(), if connections.have_room() => {
                // A failed accept means that the client is gone, or a temporary shortage.
                if let Ok((stream, _)) = accepted {
                    connections.add(stream, &handler);
                }
            }
        }
    }
    drop((listener, file));
    connections.end().await;
}

/// Open connections. Idle ones do not block others.
#[derive(Default)]
struct Connections {
    tasks: JoinSet<()>,
    /// Oldest first.
    open: Vec<Connection>,
}

struct Connection {
    task: AbortHandle,
    stage: Arc<ConnectionUse>,
}

/// What a connection is for at the moment.
#[derive(Default)]
struct ConnectionUse(AtomicU8);

impl ConnectionUse {
    /// Nothing is lost if it is closed.
    const IDLE: u8 = 0;
    /// Its whole request has arrived, and awaits its answer.
    const ASKED: u8 = 1;
    /// A tree runs for as long as it is open.
    const LEASE: u8 = 2;

    fn set(&self, stage: u8) {
        self.0.store(stage, Ordering::Relaxed);
    }

    fn is(&self, stage: u8) -> bool {
        self.0.load(Ordering::Relaxed) == stage
    }
}

/// What follows an exchange.
enum Follows {
    Nothing,
    Text(Subscribed),
    Lease(LeaseRequest),
}

/// A connection on which text follows.
struct Subscribed {
    from: BufReader<Take<OwnedReadHalf>>,
    to: OwnedWriteHalf,
    text: WatchedText,
}

impl Connections {
    /// The oldest connection without a request.
    fn idle(&self) -> Option<usize> {
        self.open.iter().position(|open| open.stage.is(ConnectionUse::IDLE))
    }

    fn have_room(&mut self) -> bool {
        self.open.retain(|open| !open.task.is_finished());
        self.open.len() < CONNECTIONS_MAX || self.idle().is_some()
    }

    fn add(&mut self, stream: UnixStream, handler: &Arc<Handler>) {
        if self.open.len() >= CONNECTIONS_MAX
            && let Some(idle) = self.idle()
        {
            self.open.remove(idle).task.abort();
        }
        let (handler, stage) = (Arc::clone(handler), Arc::<ConnectionUse>::default());
        let at = Arc::clone(&stage);
        let task = self.tasks.spawn(async move {
            let exchange = exchange(stream, &handler, &at);
            // A client that is gone or too slow gets no answer.
            let exchanged = timeout(Duration::from_millis(EXCHANGE_MS_MAX), exchange).await;
            match exchanged {
                Ok(Ok(Follows::Text(Subscribed { from, to, text }))) => {
                    at.set(ConnectionUse::IDLE);
                    let _ = text.send(from, to).await;
                }
                Ok(Ok(Follows::Lease(request))) => {
                    at.set(ConnectionUse::LEASE);
                    let _ = handler.lease(request).await;
                }
                Ok(Ok(Follows::Nothing) | Err(_)) | Err(_) => {}
            }
        });
        self.open.push(Connection { task, stage });
    }

    /// Answers requests that have arrived or are arriving.
    async fn end(mut self) {
        let all = async |tasks: &mut JoinSet<()>| while tasks.join_next().await.is_some() {};
        let _ = timeout(Duration::from_millis(LAST_REQUEST_MS_MAX), all(&mut self.tasks)).await;
        self.open
            .iter()
            .filter(|open| !open.stage.is(ConnectionUse::ASKED))
            .for_each(|open| open.task.abort());
        // Slower clients see the connection close.
        let _ = timeout(Duration::from_millis(FAREWELL_MS_MAX), all(&mut self.tasks)).await;
    }
}

/// One line in, one line out. Returns the connection if more follows.
async fn exchange(stream: UnixStream, handler: &Handler, stage: &ConnectionUse) -> io::Result<Follows> {
    let peer = PeerProcess::from_stream(&stream);
    let (from, mut to) = stream.into_split();
    let mut line = Vec::new();
    let mut from = BufReader::new(from.take(LINE_BYTES_MAX as u64 + 1));
    from.read_until(b'\n', &mut line).await?;
    let mut text = None;
    let answer = if line.len() > LINE_BYTES_MAX {
        refused(format!("a request has at most {LINE_BYTES_MAX} bytes"))
    } else {
        match line::decode::<ControlRequest>(&line) {
            Ok(ControlRequest::Resume { tree, hosts }) => {
                stage.set(ConnectionUse::ASKED);
                return Ok(Follows::Lease(LeaseRequest { from, to, peer, tree, hosts }));
            }
            Ok(mut ask) => match enclosed(&mut ask, &mut from).await? {
                Ok(bytes) => {
                    stage.set(ConnectionUse::ASKED);
                    let tree = ask.tree().map(tracing::field::display);
                    let answer = handler.answer(ask, bytes, peer, &mut text).await;
                    let refused =
                        matches!(answer, ControlReply::Refused { .. } | ControlReply::Failed { .. });
                    tracing::debug!(target: "spinney::control", tree, refused, "request");
                    answer
                }
                Err(bad) => refused(bad.to_string()),
            },
            Err(error) => refused(error.to_string()),
        }
    };
    to.write_all(&line::encode(&answer)?).await?;
    if let Some(text) = text {
        return Ok(Follows::Text(Subscribed { from, to, text }));
    }
    to.shutdown().await?;
    Ok(Follows::Nothing)
}

/// The bytes of a request's parts, which follow its line. Reads no more than a message may have.
async fn enclosed(
    ask: &mut ControlRequest,
    from: &mut BufReader<Take<OwnedReadHalf>>,
) -> io::Result<Result<Vec<Vec<u8>>, BadPart>> {
    let ControlRequest::Apply { request, .. } = ask else { return Ok(Ok(Vec::new())) };
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

impl Handler {
    async fn answer(
        &self,
        ask: ControlRequest,
        bytes: Vec<Vec<u8>>,
        peer: io::Result<PeerProcess>,
        text: &mut Option<WatchedText>,
    ) -> ControlReply {
        match ask {
            ControlRequest::Text { tree, right } => match self.running().into_iter().find(|running| running.id() == tree) {
                None => refused("this process does not run that tree".to_owned()),
                Some(running) => {
                    *text = self.text_readers.watch(&running, right);
                    match text {
                        Some(_) => ControlReply::TextFollows,
                        None => refused("too many processes read the text of this tree".to_owned()),
                    }
                }
            },
            ControlRequest::Running => {
                ControlReply::Running { trees: self.running().iter().map(Tree::id).collect() }
            }
            // Its connection is a lease.
            ControlRequest::Resume { .. } => refused("a tree is resumed by its own connection".to_owned()),
            ControlRequest::Branch { .. } | ControlRequest::Continue { .. } | ControlRequest::Clean => match (self.check(peer).await, &self.open) {
                (Err(denied), _) => refused(denied.to_string()),
                (Ok(()), None) => refused(ONE_TREE.to_owned()),
                (Ok(()), Some(open)) => match ask {
                    ControlRequest::Branch { from, at, agent, budget } => {
                        branched(open.branch(BranchOff { from, at, agent, budget }).await)
                    }
                    ControlRequest::Continue { from, continued_as } => {
                        branched(open.continue_ended(from, continued_as).await)
                    }
                    _ => self.clean().await,
                },
            },
            ControlRequest::Apply { tree, request } => match request.outside() {
                Outside::Open => match self.check(peer).await {
                    Ok(()) => self.ask(tree, *request, bytes).await,
                    Err(denied) => refused(denied.to_string()),
                },
                Outside::Closed => refused(
                    "this request is not allowed from another process: only signals, messages, answers, raises, checkpoints and rollbacks"
                        .to_owned(),
                ),
                Outside::RefersElsewhere => refused(
                    "a request may only refer to images and files of its message, sent with their bytes"
                        .to_owned(),
                ),
            },
        }
    }

    /// Whether the process that asks may change a tree. Its ancestors are files to read.
    async fn check(&self, peer: io::Result<PeerProcess>) -> Result<(), ChangeDenied> {
        let protected = Arc::clone(&self.protected);
        let checked = spawn_blocking(move || protected.check_peer(peer));
        checked.await.unwrap_or_else(|error| Err(ChangeDenied::Unknown(error.into())))
    }

    /// A raise is recorded outside the home at once: one that is not is asked about when the tree is resumed.
    async fn ask(&self, tree: TreeId, request: Request, bytes: Vec<Vec<u8>>) -> ControlReply {
        let raises = matches!(request, Request::Raise(_) | Request::Adjust(_));
        let answer = self.answer_of(tree, request, bytes).await;
        if raises && matches!(answer, ControlReply::Done { .. }) {
            let (protected, journal) = (Arc::clone(&self.protected), Arc::clone(self.home.journal()));
            let update = async move || tree_marks::update(protected.path(), journal.as_ref(), tree).await;
            off_workers(update).await;
        }
        answer
    }

    async fn answer_of(&self, tree: TreeId, request: Request, bytes: Vec<Vec<u8>>) -> ControlReply {
        let running = match self.home.tree(tree) {
            _ if tree == self.tree.id() => self.tree.clone(),
            Some(running) => running,
            None => return apply(&self.home, tree, request, bytes).await,
        };
        match running.request_with(Actor::PERSON, request, bytes).await {
            Ok(reply) => ControlReply::Done { continues: Continues::Now, reply },
            Err(RequestError::Refused(refusal)) => refused_by_the_tree(refusal),
            Err(error @ (RequestError::Stopped(_) | RequestError::Reply(_))) => {
                ControlReply::Failed { message: error.to_string() }
            }
        }
    }

    async fn clean(&self) -> ControlReply {
        match self.home.clean_checkpoints().await {
            Ok(Cleaned { removed, left, failed }) => {
                let uncleaned = |(tree, fault): (TreeId, JournalFault)| UncleanedTree {
                    tree,
                    message: fault.to_string(),
                };
                ControlReply::Cleaned { removed, left, failed: failed.into_iter().map(uncleaned).collect() }
            }
            Err(fault) => ControlReply::Failed { message: fault.to_string() },
        }
    }

    fn running(&self) -> Vec<Tree> {
        let runs = |tree: &Tree| {
            let status = tree.status();
            !matches!(status.state, TreeState::Ended(_)) && status.stopped.is_none()
        };
        self.home.running().into_iter().filter(runs).collect()
    }
}

fn branched(branched: Result<TreeId, BranchTreeError>) -> ControlReply {
    match branched {
        Ok(tree) => ControlReply::Branched { tree },
        Err(BranchTreeError::Refused(refusal)) => refused_by_the_tree(refusal),
        Err(error @ BranchTreeError::OfProgram) => refused(error.to_string()),
        Err(error) => ControlReply::Failed { message: with_causes(&error) },
    }
}
