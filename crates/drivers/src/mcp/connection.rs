//! A conversation with one running server: the handshake, its list of tools, and calls, each within a time.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelledNotificationParam, ClientRequest, JsonObject,
    ListToolsRequest, PaginatedRequestParams, ProtocolVersion, RequestId, ServerResult, Tool as ListedTool,
};
use rmcp::service::{ClientInitializeError, PeerRequestOptions, RunningService, ServiceError};
use rmcp::{ClientLifecycleMode, Peer as RmcpPeer, RoleClient, serve_client_with_lifecycle};
use spinney_kernel::definition::ToolServer;
use spinney_kernel::port::tool::ToolAnswer;
use spinney_kernel::primitives::ServerName;
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::answer::answer;

use super::conversation::Conversation;
use super::http_client::http_client;
use super::http_session::HttpSession;
use super::http_transport::HttpTransport;
use super::incoming::{LOST, NOT_REACHED};
use super::offered::{Listed, Offered, cleaned};
use super::open_calls::{OpenCall, OpenCalls};
use super::peer_answers::PeerAnswers;
use super::pipe_transport::PipeTransport;
use super::process::Process;
use super::server_start::{HttpStart, ProcessStart, ServerStart};
use crate::off_worker::off_worker;

/// How long a server may take until it has agreed on a version. One that does not answer the newest way of asking costs ten
/// seconds of it.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a whole list may take.
const LIST_TIMEOUT: Duration = Duration::from_secs(8);
/// Most pages of a list, and tools of a server.
const PAGES_MAX: usize = 32;
const TOOLS_MAX: usize = 512;
/// How often a server may ask for something before it answers a call.
const ROUNDS_MAX: usize = 8;
/// What an error of a server shows.
const ERROR_BYTES_MAX: usize = 1_000;

/// A server that runs, or a session with one that runs elsewhere. Dropping it ends it.
pub(super) struct Connection {
    service: RunningService<RoleClient, PeerAnswers>,
    conversation: Arc<Conversation>,
    peer: Peer,
}

/// What is at the other end.
enum Peer {
    Process(Process),
    Http(Arc<HttpSession>),
}

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CallFault {
    /// It did not answer in time and was told to stop.
    TimedOut,
    /// The server ended during the call, or its answer did not arrive: how.
    Ended(String),
    /// The server knows nothing of the call: why.
    NotReached(String),
    /// It said no, or something that is no answer.
    Refused(String),
}

impl Connection {
    /// Starts a server, or connects to it, and agrees on a version of the protocol: the newest, or one with the older
    /// handshake.
    pub(super) async fn start(
        name: &ServerName,
        start: &ServerStart,
        server: &ToolServer,
        calls: &Arc<OpenCalls>,
    ) -> Result<Self, String> {
        let answers = || PeerAnswers::new(name.clone(), server, Arc::clone(calls));
        let newest = ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::LATEST],
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        };
        match start {
            ServerStart::Process(start) => {
                match Self::start_process(start, server, answers(), newest).await {
                    // Some older servers end when they are asked in a way that they do not know.
                    Err(fault) if fault.may_be_older => {
                        let older = ClientLifecycleMode::Initialize;
                        Self::start_process(start, server, answers(), older)
                            .await
                            .map_err(|fault| fault.message)
                    }
                    started => started.map_err(|fault| fault.message),
                }
            }
            ServerStart::Http(start) => {
                Self::connect(start, server, (answers(), calls), newest).await.map_err(|fault| fault.message)
            }
        }
    }

    async fn start_process(
        start: &ProcessStart,
        server: &ToolServer,
        answers: PeerAnswers,
        lifecycle: ClientLifecycleMode,
    ) -> Result<Self, StartFault> {
        let (starting, definition) = (start.clone(), server.clone());
        let started = off_worker(move || starting.start(&definition)).await;
        let (process, pipes) = started.map_err(StartFault::new)?;
        let conversation = Arc::new(Conversation::default());
        let transport = PipeTransport::new(pipes.stdout, pipes.stdin, Arc::clone(&conversation));
        let handshake = serve_client_with_lifecycle(answers, transport, lifecycle);
        match timeout(HANDSHAKE_TIMEOUT, handshake).await {
            Ok(Ok(service)) => Ok(Self { service, conversation, peer: Peer::Process(process) }),
            Ok(Err(error)) => Err(StartFault::during_handshake(&error, Some(&process)).await),
            Err(_) => {
                let wrote = process.stderr();
                let wrote = if wrote.is_empty() { String::new() } else { format!("; it wrote: {wrote}") };
                Err(StartFault::late(&wrote))
            }
        }
    }

    async fn connect(
        start: &HttpStart,
        server: &ToolServer,
        (answers, calls): (PeerAnswers, &Arc<OpenCalls>),
        lifecycle: ClientLifecycleMode,
    ) -> Result<Self, StartFault> {
        let network = server.network.clone();
        let client = http_client(&start.address, network, Arc::clone(&start.outbound)).await;
        let exchange_max = Duration::from_millis(server.timeout_ms).saturating_add(HANDSHAKE_TIMEOUT);
        let client = client.map_err(StartFault::new)?;
        let header = start.header().await.map_err(StartFault::new)?;
        let (session, heard) =
            HttpSession::new(client, (header, start.logins.is_some()), exchange_max, Arc::clone(calls));
        let conversation = Arc::new(Conversation::default());
        let transport = HttpTransport::new(Arc::clone(&session), heard, Arc::clone(&conversation));
        let handshake = serve_client_with_lifecycle(answers, transport, lifecycle);
        match timeout(HANDSHAKE_TIMEOUT, handshake).await {
            Ok(Ok(service)) => Ok(Self { service, conversation, peer: Peer::Http(session) }),
            Ok(Err(error)) => Err(StartFault::during_handshake(&error, None).await),
            Err(_) => Err(StartFault::late("")),
        }
    }

    /// Whether it can still be called.
    pub(super) fn is_open(&self) -> bool {
        let is_there = match &self.peer {
            Peer::Process(process) => !process.has_ended(),
            Peer::Http(session) => !session.is_over(),
        };
        is_there && !self.service.peer().is_transport_closed()
    }

    /// Whether it said that its tools are others, since this was asked.
    pub(super) fn take_changed_tools(&self) -> bool {
        self.conversation.take_changed_tools()
    }

    /// Waits until it says so. Whether it did in time; a server that never says so is not waited for.
    pub(super) async fn wait_for_changed_tools(&self, within: Duration) -> bool {
        let info = self.service.peer().peer_info();
        let tools = info.as_ref().and_then(|info| info.capabilities.tools.as_ref());
        let may_change = tools.is_some_and(|tools| tools.list_changed == Some(true));
        may_change && self.conversation.wait_for_changed_tools(within).await
    }

    /// Every tool that it has, and what else it says that it has.
    pub(super) async fn listed(&self) -> Result<Listed, String> {
        let capabilities = self.service.peer().peer_info().map(|info| info.capabilities.clone());
        let capabilities = capabilities.unwrap_or_default();
        let late = |_| "it did not list its tools in time".to_owned();
        // A server of resources or prompts may have none.
        let has_none = capabilities.tools.is_none()
            && (capabilities.resources.is_some() || capabilities.prompts.is_some());
        let tools = if has_none {
            Vec::new()
        } else {
            timeout(LIST_TIMEOUT, self.all_pages()).await.map_err(late)??
        };
        Ok(Listed { tools, capabilities })
    }

    async fn all_pages(&self) -> Result<Vec<ListedTool>, String> {
        let mut tools: Vec<ListedTool> = Vec::new();
        let mut cursor = None;
        for _ in 0..PAGES_MAX {
            let (page, next) = self.page(cursor.clone()).await?;
            tools.extend(page);
            if tools.len() > TOOLS_MAX {
                return Err(format!("it has more than {TOOLS_MAX} tools"));
            }
            match next {
                None => return Ok(tools),
                Some(_) if next == cursor => return Err("its list of tools does not end".to_owned()),
                Some(_) => cursor = next,
            }
        }
        Err(format!("its list of tools has more than {PAGES_MAX} pages"))
    }

    async fn page(&self, cursor: Option<String>) -> Result<(Vec<ListedTool>, Option<String>), String> {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let request = ClientRequest::ListToolsRequest(ListToolsRequest {
            method: Default::default(),
            params: Some(params),
            extensions: Default::default(),
        });
        match self.request(request).await {
            Ok(ServerResult::ListToolsResult(page)) => Ok((page.tools, page.next_cursor)),
            Ok(_) => Err("its list of tools has another form than the protocol".to_owned()),
            Err(CallFault::TimedOut) => Err("it did not list its tools in time".to_owned()),
            Err(CallFault::Ended(why) | CallFault::NotReached(why) | CallFault::Refused(why)) => Err(why),
        }
    }

    /// Calls a tool once. Dropping the future tells the server to stop, and so does the end of the time.
    pub(super) async fn call(
        &self,
        open: &OpenCall,
        offered: &Offered,
        arguments: JsonObject,
        within: Duration,
    ) -> Result<ToolAnswer, CallFault> {
        let call = async {
            match offered.extra {
                Some(extra) => self.call_extra(extra, &arguments).await,
                None => self.call_tool(open, offered.name.clone(), arguments).await,
            }
        };
        open.within(within, call).await.unwrap_or(Err(CallFault::TimedOut))
    }

    async fn call_tool(
        &self,
        open: &OpenCall,
        tool: String,
        arguments: JsonObject,
    ) -> Result<ToolAnswer, CallFault> {
        let mut params = CallToolRequestParams::new(Cow::Owned(tool)).with_arguments(arguments);
        for _ in 0..ROUNDS_MAX {
            match self.service.peer().call_tool_once(params.clone()).await {
                Ok(CallToolResponse::Complete(result)) => return Ok(answer(result)),
                Ok(CallToolResponse::InputRequired(asked)) => {
                    let answers = self.service.service();
                    params.request_state.clone_from(&asked.request_state);
                    let inputs = answers.inputs(open, asked).await.map_err(CallFault::Refused)?;
                    params.input_responses = Some(inputs);
                }
                Ok(_) => {
                    let why = "it asked for more than a call, which is not supported".to_owned();
                    return Err(CallFault::Refused(why));
                }
                Err(error) => return Err(self.fault(error).await),
            }
        }
        Err(CallFault::Refused(format!("it asked for something {ROUNDS_MAX} times instead of answering")))
    }

    /// Sends one request. Dropping the future tells the server to stop.
    pub(super) async fn request(&self, request: ClientRequest) -> Result<ServerResult, CallFault> {
        let peer = self.service.peer();
        let sent = peer.send_request_with_option(request, PeerRequestOptions::no_options()).await;
        let answered = match sent {
            Ok(handle) => {
                let mut pending = Pending { peer: peer.clone(), id: Some(handle.id.clone()) };
                let answered = handle.await_response().await;
                pending.id = None;
                answered
            }
            Err(error) => Err(error),
        };
        match answered {
            Ok(result) => Ok(result),
            Err(error) => Err(self.fault(error).await),
        }
    }

    async fn fault(&self, error: ServiceError) -> CallFault {
        match error {
            ServiceError::McpError(error) if error.code == NOT_REACHED => {
                CallFault::NotReached(error.message.into_owned())
            }
            ServiceError::McpError(error) if error.code == LOST => {
                CallFault::Ended(error.message.into_owned())
            }
            ServiceError::McpError(error) => CallFault::Refused(format!(
                "error {}: {}",
                error.code.0,
                cleaned(&error.message, ERROR_BYTES_MAX)
            )),
            ServiceError::TransportSend(_) | ServiceError::TransportClosed => {
                CallFault::Ended(match &self.peer {
                    Peer::Process(process) => process.end().await.to_string(),
                    Peer::Http(_) => "its session ended".to_owned(),
                })
            }
            ServiceError::Timeout { .. } => CallFault::TimedOut,
            ServiceError::UnexpectedResponse => {
                CallFault::Refused("its answer has another form than the protocol".to_owned())
            }
            error => CallFault::Refused(cleaned(&error.to_string(), ERROR_BYTES_MAX)),
        }
    }
}

/// A request that is not answered yet. The server is told if nobody waits for its answer any more.
struct Pending {
    peer: RmcpPeer<RoleClient>,
    id: Option<RequestId>,
}

impl Drop for Pending {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id.take(), Handle::try_current()) else { return };
        let peer = self.peer.clone();
        runtime.spawn(async move {
            let params = CancelledNotificationParam::new(Some(id), None);
            // A server that is gone needs not be told.
            let _ = peer.notify_cancelled(params).await;
        });
    }
}

struct StartFault {
    message: String,
    /// It ended on its own before it answered.
    may_be_older: bool,
}

impl StartFault {
    fn new(message: String) -> Self {
        Self { message, may_be_older: false }
    }

    fn late(wrote: &str) -> Self {
        Self::new(format!("it did not answer within {} s{wrote}", HANDSHAKE_TIMEOUT.as_secs()))
    }

    async fn during_handshake(error: &ClientInitializeError, process: Option<&Process>) -> Self {
        tracing::debug!("the handshake failed: {error}");
        match error {
            ClientInitializeError::LegacyFallbackFailed { fallback, .. } => {
                Box::pin(Self::during_handshake(fallback, process)).await
            }
            ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. } => {
                let Some(process) = process else {
                    return Self::new("the connection broke before it answered".to_owned());
                };
                let end = process.end().await;
                Self {
                    message: format!("it ended before it answered: {end}"),
                    may_be_older: end.was_its_own(),
                }
            }
            ClientInitializeError::JsonRpcError(error) if matches!(error.code, NOT_REACHED | LOST) => {
                Self::new(format!("it cannot be reached: {}", error.message))
            }
            ClientInitializeError::JsonRpcError(error) => {
                Self::new(format!("it refused the connection: {}", cleaned(&error.message, ERROR_BYTES_MAX)))
            }
            ClientInitializeError::NoCompatibleProtocolVersion { .. } => {
                Self::new("it speaks no version of the protocol that we know".to_owned())
            }
            _ => Self::new("its first answer has another form than the protocol".to_owned()),
        }
    }
}
