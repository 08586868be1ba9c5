//! What we answer when a server asks for something: whether we are there, which folders it has, what a person says, and what
//! the model of the calling agent says, if the tree file lets it ask.

#![expect(deprecated, reason = "servers of older versions ask for roots and model calls")]

use rmcp::ClientHandler;
use rmcp::RoleClient;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams,
    ElicitResult, ElicitationAction, ErrorData, Implementation, InputRequest, InputRequiredResult,
    InputResponses, ListRootsResult, Root,
};
use rmcp::service::RequestContext;
use serde_json::json;
use spinney_kernel::definition::ToolServer;
use spinney_kernel::primitives::ServerName;
use std::sync::Arc;
use tokio::sync::Mutex;

use super::elicitation::elicit;
use super::open_calls::{OpenCall, OpenCalls};
use super::sampling::sample;

/// What one answer of a server may ask for.
const INPUTS_MAX: usize = 8;

pub(super) struct PeerAnswers {
    server: ServerName,
    roots: Vec<String>,
    /// Whether it may ask for model calls.
    sampling: bool,
    calls: Arc<OpenCalls>,
    /// A person is asked one question after another.
    asking: Mutex<()>,
}

impl PeerAnswers {
    pub(super) fn new(server: ServerName, definition: &ToolServer, calls: Arc<OpenCalls>) -> Self {
        let roots = definition.folders.iter().map(|(path, _)| path.as_str().to_owned()).collect();
        Self { server, roots, sampling: definition.sampling, calls, asking: Mutex::default() }
    }

    /// What a call needs before it can be answered.
    ///
    /// # Errors
    /// What it asks for and does not get.
    pub(super) async fn inputs(
        &self,
        open: &OpenCall,
        asked: InputRequiredResult,
    ) -> Result<InputResponses, String> {
        let requests = asked.input_requests.unwrap_or_default();
        if requests.len() > INPUTS_MAX {
            return Err(format!("it asked for {} things at once, the limit is {INPUTS_MAX}", requests.len()));
        }
        let mut responses = InputResponses::new();
        for (key, request) in requests {
            let response = match request {
                InputRequest::Elicitation(request) => {
                    serde_json::to_value(self.ask(open, &request.params).await?)
                }
                InputRequest::ListRoots(_) => serde_json::to_value(self.all_roots()),
                InputRequest::CreateMessage(request) => {
                    serde_json::to_value(self.sample(open, &request.params).await?)
                }
                _ => return Err("it sent a request that is not supported".to_owned()),
            };
            responses.insert(key, response.map_err(|error| error.to_string())?);
        }
        Ok(responses)
    }

    async fn ask(&self, open: &OpenCall, params: &ElicitRequestParams) -> Result<ElicitResult, String> {
        let _one_at_a_time = self.asking.lock().await;
        elicit(&self.server, open, params).await
    }

    async fn sample(
        &self,
        open: &OpenCall,
        params: &CreateMessageRequestParams,
    ) -> Result<CreateMessageResult, String> {
        if !self.sampling {
            let server = &self.server;
            return Err(format!(
                "server `{server}` may not ask for model calls: write `sampling: true` at it"
            ));
        }
        sample(open, params).await
    }

    /// The folders that were granted to the server itself, whoever calls it.
    fn all_roots(&self) -> ListRootsResult {
        let root = |path: &String| {
            let escape = |byte: u8| match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                    char::from(byte).to_string()
                }
                _ => format!("%{byte:02X}"),
            };
            Root::new(format!("file://{}", path.bytes().map(escape).collect::<String>()))
        };
        ListRootsResult::new(self.roots.iter().map(root).collect())
    }
}

impl ClientHandler for PeerAnswers {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("spinney", env!("CARGO_PKG_VERSION"));
        let mut capabilities = json!({ "roots": {}, "elicitation": { "form": {} } });
        if self.sampling {
            capabilities["sampling"] = json!({});
        }
        // A text of ours, which fits.
        let capabilities: ClientCapabilities = serde_json::from_value(capabilities).unwrap_or_default();
        ClientConfig::new(capabilities, us)
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Ok(self.all_roots())
    }

    async fn create_message(
        &self,
        request: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let refused = |why: String| ErrorData::invalid_request(why, None);
        let open = self.calls.only().map_err(|why| refused(why.to_owned()))?;
        tokio::select! {
            biased;
            // The connection has ended.
            () = context.ct.cancelled() => Err(refused("the connection has ended".to_owned())),
            sampled = self.sample(&open, &request) => sampled.map_err(refused),
        }
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let refused = |why: String| ErrorData::invalid_request(why, None);
        let open = self.calls.only().map_err(|why| refused(why.to_owned()))?;
        tokio::select! {
            biased;
            // The connection has ended.
            () = context.ct.cancelled() => Ok(ElicitResult::new(ElicitationAction::Cancel)),
            asked = self.ask(&open, &request) => asked.map_err(refused),
        }
    }
}
