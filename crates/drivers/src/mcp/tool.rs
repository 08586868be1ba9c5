//! The driver of one tool of a server.

use std::sync::Arc;

use rmcp::model::JsonObject;
use spinney_kernel::definition::ToolSpec;
use spinney_kernel::port::Pending;
use spinney_kernel::port::model::AttemptError;
use spinney_kernel::port::tool::{Tool, ToolAnswer, ToolAttempt};
use spinney_kernel::primitives::{ServerName, ToolName};

use super::agent_servers::AgentServers;

pub(super) struct ServerTool {
    pub(super) server: Arc<AgentServers>,
    pub(super) server_name: ServerName,
    pub(super) tool: ToolName,
}

impl Tool for ServerTool {
    fn spec(&self) -> ToolSpec {
        self.server.any().offered(&self.tool).map(|offered| offered.spec.clone()).unwrap_or_default()
    }

    fn call(&self, attempt: ToolAttempt) -> Pending<Result<ToolAnswer, AttemptError>> {
        let (server, tool) = (Arc::clone(&self.server), self.tool.clone());
        let beyond = server.any().beyond(&attempt.rights);
        if !beyond.is_nothing() {
            let name = &self.server_name;
            let text = format!("`{tool}` was not called: server `{name}` may {beyond}, and you may not");
            return Box::pin(async move { Ok(ToolAnswer::failed(text)) });
        }
        let arguments: Result<JsonObject, _> = match attempt.args.trim() {
            "" => Ok(JsonObject::new()),
            text => serde_json::from_str(text),
        };
        let server = server.of(&attempt.origin.path);
        Box::pin(async move {
            let server = match server {
                Ok(server) => server,
                Err(why) => return Ok(ToolAnswer::failed(why)),
            };
            Ok(match arguments {
                Ok(arguments) => server.call(&tool, arguments, &attempt).await,
                Err(error) => ToolAnswer::failed(format!("`{tool}` was not called: {error}")),
            })
        })
    }
}
