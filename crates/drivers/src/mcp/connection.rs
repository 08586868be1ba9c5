//! A conversation with one running server: the handshake, its list of tools, and calls, each within a time.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ClientConfig, ClientRequest,
    Implementation, JsonObject, ListToolsRequest, PaginatedRequestParams, ProtocolVersion, ServerResult,
    Tool as ListedTool,
};
use rmcp::service::{ClientInitializeError, PeerRequestOptions, RunningService, ServiceError};
use rmcp::{ClientHandler, ClientLifecycleMode, RoleClient, serve_client_with_lifecycle};
use spinney_kernel::definition::ToolServer;
use tokio::time::timeout;

use super::conversation::Conversation;
use super::offered::cleaned;
use super::process::{Process, ServerStart};
use super::transport::PipeTransport;
use crate::off_worker::off_worker;

/// How long a server may take until it has agreed on a version. One that does not answer the newest way of asking costs ten
/// seconds of it.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a whole list may take.
const LIST_TIMEOUT: Duration = Duration::from_secs(8);
/// Most pages of a list, and tools of a server.
const PAGES_MAX: usize = 32;
const TOOLS_MAX: usize = 512;
/// What an error of a server shows.
const ERROR_BYTES_MAX: usize = 1_000;

/// A server that runs. Dropping it ends the server.
pub(super) struct Connection {
    service: RunningService<RoleClient, Answers>,
    conversation: Arc<Conversation>,
    process: Process,
}

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CallFault {
    /// It did not answer in time and was told to stop.
    TimedOut,
    /// The server ended, or cannot be reached: how.
    Ended(String),
    /// It said no, or something that is no answer.
    Refused(String),
}

/// What we answer when a server asks. It may ask whether we are there, and nothing else.
struct Answers;

impl ClientHandler for Answers {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("spinney", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), us)
    }
}

impl Connection {
    /// Starts a server and agrees on a version of the protocol: the newest, or one with the older handshake.
    pub(super) async fn start(start: &ServerStart, server: &ToolServer) -> Result<Self, String> {
        let newest = ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::LATEST],
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        };
        match Self::start_with(start, server, newest).await {
            Ok(connection) => Ok(connection),
            // Some older servers end when they are asked in a way that they do not know.
            Err(fault) if fault.may_be_older => {
                Self::start_with(start, server, ClientLifecycleMode::Initialize)
                    .await
                    .map_err(|fault| fault.message)
            }
            Err(fault) => Err(fault.message),
        }
    }

    async fn start_with(
        start: &ServerStart,
        server: &ToolServer,
        lifecycle: ClientLifecycleMode,
    ) -> Result<Self, StartFault> {
        let (starting, definition) = (start.clone(), server.clone());
        let started = off_worker(move || starting.start(&definition)).await;
        let (process, pipes) = started.map_err(StartFault::new)?;
        let conversation = Arc::new(Conversation::default());
        let transport = PipeTransport::new(pipes.stdout, pipes.stdin, Arc::clone(&conversation));
        let handshake = serve_client_with_lifecycle(Answers, transport, lifecycle);
        match timeout(HANDSHAKE_TIMEOUT, handshake).await {
            Ok(Ok(service)) => Ok(Self { service, conversation, process }),
            Ok(Err(error)) => Err(StartFault::during_handshake(&error, &process).await),
            Err(_) => {
                let wrote = process.stderr();
                let wrote = if wrote.is_empty() { String::new() } else { format!("; it wrote: {wrote}") };
                let seconds = HANDSHAKE_TIMEOUT.as_secs();
                Err(StartFault::new(format!("it did not answer within {seconds} s{wrote}")))
            }
        }
    }

    /// Whether it can still be called.
    pub(super) fn is_open(&self) -> bool {
        !self.process.has_ended() && !self.service.peer().is_transport_closed()
    }

    /// Whether it said that its tools are others, since this was asked.
    pub(super) fn take_changed_tools(&self) -> bool {
        self.conversation.take_changed_tools()
    }

    /// Every tool that it has.
    pub(super) async fn tools(&self) -> Result<Vec<ListedTool>, String> {
        let late = |_| "it did not list its tools in time".to_owned();
        timeout(LIST_TIMEOUT, self.all_pages()).await.map_err(late)?
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
        let sent = self.service.peer().send_request_with_option(request, PeerRequestOptions::no_options());
        let answered = match sent.await {
            Ok(sent) => sent.await_response().await,
            Err(error) => Err(error),
        };
        match answered {
            Ok(ServerResult::ListToolsResult(page)) => Ok((page.tools, page.next_cursor)),
            Ok(_) => Err("its list of tools has another form than the protocol".to_owned()),
            Err(error) => Err(match self.fault(error).await {
                CallFault::TimedOut => "it did not list its tools in time".to_owned(),
                CallFault::Ended(why) | CallFault::Refused(why) => why,
            }),
        }
    }

    /// Calls a tool once. Dropping the future tells the server to stop, and so does the end of the time.
    pub(super) async fn call(
        &self,
        tool: String,
        arguments: JsonObject,
        within: Duration,
    ) -> Result<CallToolResult, CallFault> {
        let params = CallToolRequestParams::new(Cow::Owned(tool)).with_arguments(arguments);
        match timeout(within, self.service.peer().call_tool_once(params)).await {
            Ok(Ok(CallToolResponse::Complete(result))) => Ok(result),
            Ok(Ok(_)) => {
                Err(CallFault::Refused("it asked for more than a call, which is not supported".to_owned()))
            }
            Ok(Err(error)) => Err(self.fault(error).await),
            Err(_) => Err(CallFault::TimedOut),
        }
    }

    async fn fault(&self, error: ServiceError) -> CallFault {
        match error {
            ServiceError::McpError(error) => CallFault::Refused(format!(
                "error {}: {}",
                error.code.0,
                cleaned(&error.message, ERROR_BYTES_MAX)
            )),
            ServiceError::TransportSend(_) | ServiceError::TransportClosed => {
                CallFault::Ended(self.process.end().await.to_string())
            }
            ServiceError::Timeout { .. } => CallFault::TimedOut,
            ServiceError::UnexpectedResponse => {
                CallFault::Refused("its answer has another form than the protocol".to_owned())
            }
            error => CallFault::Refused(cleaned(&error.to_string(), ERROR_BYTES_MAX)),
        }
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

    async fn during_handshake(error: &ClientInitializeError, process: &Process) -> Self {
        match error {
            ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. } => {
                let end = process.end().await;
                Self {
                    message: format!("it ended before it answered: {end}"),
                    may_be_older: end.was_its_own(),
                }
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
