//! Resources and prompts of a server, as tools beside its own: agents list them like any other.

use rmcp::model::{
    ClientRequest, GetPromptRequest, GetPromptRequestParams, JsonObject, ListPromptsRequest,
    ListResourceTemplatesRequest, ListResourcesRequest, PaginatedRequestParams, Prompt, ReadResourceRequest,
    ReadResourceRequestParams, ServerCapabilities, ServerResult,
};
use serde_json::{Value, json};
use spinney_kernel::definition::{OnLost, ToolSpec};
use spinney_kernel::port::tool::ToolAnswer;
use spinney_kernel::primitives::ServerName;

use super::answer::{prompt, resource};
use super::connection::{CallFault, Connection};
use super::offered::cleaned;

/// Most pages and entries of a list, and bytes of one entry.
const PAGES_MAX: usize = 32;
const ENTRIES_MAX: usize = 2_000;
const ENTRY_BYTES_MAX: usize = 1_000;

/// A tool that every server with resources, or with prompts, has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extra {
    ListResources,
    ReadResource,
    ListPrompts,
    GetPrompt,
}

impl Extra {
    pub(super) const ALL: [Self; 4] =
        [Self::ListResources, Self::ReadResource, Self::ListPrompts, Self::GetPrompt];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::ListResources => "list_resources",
            Self::ReadResource => "read_resource",
            Self::ListPrompts => "list_prompts",
            Self::GetPrompt => "get_prompt",
        }
    }

    /// Whether a server that says this of itself has it.
    pub(super) const fn is_of(self, capabilities: &ServerCapabilities) -> bool {
        match self {
            Self::ListResources | Self::ReadResource => capabilities.resources.is_some(),
            Self::ListPrompts | Self::GetPrompt => capabilities.prompts.is_some(),
        }
    }

    pub(super) fn spec(self, server: &ServerName) -> ToolSpec {
        let text = json!({ "type": "string" });
        let (description, properties, required) = match self {
            Self::ListResources => {
                (format!("Lists the resources of `{server}`, by their URIs."), json!({}), json!([]))
            }
            Self::ReadResource => (
                format!("Reads one resource of `{server}`, by a URI that it lists."),
                json!({ "uri": text }),
                json!(["uri"]),
            ),
            Self::ListPrompts => {
                (format!("Lists the prompts of `{server}`, with their arguments."), json!({}), json!([]))
            }
            Self::GetPrompt => (
                format!("Returns one prompt of `{server}`, filled in with these arguments."),
                json!({ "name": text, "arguments": { "type": "object", "additionalProperties": text } }),
                json!(["name"]),
            ),
        };
        let schema = json!({
            "type": "object", "properties": properties, "required": required, "additionalProperties": false,
        });
        ToolSpec { description, schema: schema.to_string(), lost: OnLost::Repeatable, ..ToolSpec::default() }
    }
}

impl Connection {
    /// Calls one of them. Its arguments have been checked.
    pub(super) async fn call_extra(
        &self,
        extra: Extra,
        arguments: &JsonObject,
    ) -> Result<ToolAnswer, CallFault> {
        let text = |key: &str| arguments.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        match extra {
            Extra::ListResources => {
                let mut entries = self.entries(resources_page).await?;
                let templates = self.entries(templates_page).await;
                // Some servers that have resources do not know templates.
                entries.extend(templates.unwrap_or_default());
                Ok(listed(&entries, "resources"))
            }
            Extra::ListPrompts => Ok(listed(&self.entries(prompts_page).await?, "prompts")),
            Extra::ReadResource => {
                let request = ClientRequest::ReadResourceRequest(ReadResourceRequest::new(
                    ReadResourceRequestParams::new(text("uri")),
                ));
                match self.request(request).await? {
                    ServerResult::ReadResourceResult(read) => Ok(resource(read)),
                    _ => Err(other_form()),
                }
            }
            Extra::GetPrompt => {
                let mut params = GetPromptRequestParams::new(text("name"));
                params.arguments = arguments.get("arguments").and_then(Value::as_object).cloned();
                let request = ClientRequest::GetPromptRequest(GetPromptRequest::new(params));
                match self.request(request).await? {
                    ServerResult::GetPromptResult(result) => Ok(prompt(result)),
                    _ => Err(other_form()),
                }
            }
        }
    }

    /// All pages of a list, a line for each entry.
    async fn entries(&self, page: Page) -> Result<Vec<String>, CallFault> {
        let mut entries = Vec::new();
        let mut cursor: Option<String> = None;
        for _ in 0..PAGES_MAX {
            let (request, read) = page(PaginatedRequestParams::default().with_cursor(cursor.clone()));
            let (lines, next) = read(self.request(request).await?).ok_or_else(other_form)?;
            entries.extend(lines);
            if entries.len() > ENTRIES_MAX {
                entries.truncate(ENTRIES_MAX);
                entries.push(format!("[it lists more than {ENTRIES_MAX}; the others are not shown]"));
                return Ok(entries);
            }
            match next {
                None => return Ok(entries),
                Some(_) if next == cursor => {
                    return Err(CallFault::Refused("its list does not end".to_owned()));
                }
                Some(_) => cursor = next,
            }
        }
        Err(CallFault::Refused(format!("its list has more than {PAGES_MAX} pages")))
    }
}

/// The request for a page, and how its answer is read.
type Page = fn(PaginatedRequestParams) -> (ClientRequest, ReadPage);
type ReadPage = fn(ServerResult) -> Option<(Vec<String>, Option<String>)>;

fn resources_page(params: PaginatedRequestParams) -> (ClientRequest, ReadPage) {
    let request = ClientRequest::ListResourcesRequest(ListResourcesRequest {
        method: Default::default(),
        params: Some(params),
        extensions: Default::default(),
    });
    let read: ReadPage = |result| match result {
        ServerResult::ListResourcesResult(page) => {
            let line = |it: &rmcp::model::Resource| entry(&it.uri, &it.name, it.description.as_deref());
            Some((page.resources.iter().map(line).collect(), page.next_cursor))
        }
        _ => None,
    };
    (request, read)
}

fn templates_page(params: PaginatedRequestParams) -> (ClientRequest, ReadPage) {
    let request = ClientRequest::ListResourceTemplatesRequest(ListResourceTemplatesRequest {
        method: Default::default(),
        params: Some(params),
        extensions: Default::default(),
    });
    let read: ReadPage = |result| match result {
        ServerResult::ListResourceTemplatesResult(page) => {
            let line = |it: &rmcp::model::ResourceTemplate| {
                entry(&it.uri_template, &it.name, it.description.as_deref())
            };
            Some((page.resource_templates.iter().map(line).collect(), page.next_cursor))
        }
        _ => None,
    };
    (request, read)
}

fn prompts_page(params: PaginatedRequestParams) -> (ClientRequest, ReadPage) {
    let request = ClientRequest::ListPromptsRequest(ListPromptsRequest {
        method: Default::default(),
        params: Some(params),
        extensions: Default::default(),
    });
    let read: ReadPage = |result| match result {
        ServerResult::ListPromptsResult(page) => {
            let line = |it: &Prompt| entry(&it.name, &arguments_of(it), it.description.as_deref());
            Some((page.prompts.iter().map(line).collect(), page.next_cursor))
        }
        _ => None,
    };
    (request, read)
}

/// As `(city, unit?)`.
fn arguments_of(prompt: &Prompt) -> String {
    let arguments = prompt.arguments.as_deref().unwrap_or_default();
    let names = arguments.iter().map(|argument| {
        let mark = if argument.required == Some(true) { "" } else { "?" };
        format!("{}{mark}", argument.name)
    });
    format!("({})", names.collect::<Vec<_>>().join(", "))
}

fn entry(key: &str, name: &str, description: Option<&str>) -> String {
    let line = match description {
        Some(description) => format!("{key}  {name}  {description}"),
        None => format!("{key}  {name}"),
    };
    cleaned(&line, ENTRY_BYTES_MAX)
}

fn listed(entries: &[String], what: &str) -> ToolAnswer {
    ToolAnswer::text(if entries.is_empty() { format!("it has no {what}") } else { entries.join("\n") })
}

fn other_form() -> CallFault {
    CallFault::Refused("its answer has another form than the protocol".to_owned())
}
