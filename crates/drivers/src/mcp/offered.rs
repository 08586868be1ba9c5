//! The tools of a server, from what it says of them to what the tree knows: bounded, without characters that do something
//! to a terminal, and with a hash to notice that one has changed.

use std::collections::BTreeMap;

use rmcp::model::{ServerCapabilities, Tool as ListedTool};
use spinney_kernel::definition::{OnLost, ToolServer, ToolSpec};
use spinney_kernel::primitives::limit::TEXT_BYTES_MAX;
use spinney_kernel::primitives::{BlobHash, ServerName, ToolName, is_hostile};

use super::elicitation::QUESTION_MS;
use super::extra::Extra;

/// The longest description. All of them are in every packet.
const DESCRIPTION_BYTES_MAX: usize = 8 << 10;
/// How much longer than the server a call may take: the server is told to stop, or is started again.
/// While a person or the model is asked, the time of a call stands still.
const SLACK_MS: u64 = 90_000 + QUESTION_MS;

/// A tool of a server that agents can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Offered {
    /// As the server calls it.
    pub(super) name: String,
    /// If it is no tool of the server's own.
    pub(super) extra: Option<Extra>,
    pub(super) spec: ToolSpec,
    /// Of what the server says of it.
    pub(super) hash: BlobHash,
}

/// What a server says that it has.
#[derive(Clone, Debug, Default)]
pub(super) struct Listed {
    pub(super) tools: Vec<ListedTool>,
    pub(super) capabilities: ServerCapabilities,
}

/// The tools of a server by their names in the tree, and why agents cannot have the others.
#[derive(Clone, Debug, Default)]
pub(super) struct OfferedTools {
    pub(super) tools: BTreeMap<ToolName, Offered>,
    pub(super) refused: BTreeMap<String, String>,
}

impl OfferedTools {
    pub(super) fn new(server: &ServerName, definition: &ToolServer, listed: Listed) -> Self {
        let mut offered = Self::default();
        for tool in listed.tools {
            let own = tool.name.to_string();
            if definition.tools.as_ref().is_some_and(|tools| !tools.contains(&own)) {
                continue;
            }
            let taken = |tools: &BTreeMap<ToolName, Offered>, name: &ToolName| {
                tools
                    .get(name)
                    .map(|other| format!("`{}` has the same name in a tree", cleaned(&other.name, 64)))
            };
            let read = match server.tool(&own) {
                None => Err("its name is empty or too long".to_owned()),
                Some(name) => match taken(&offered.tools, &name) {
                    Some(why) => Err(why),
                    None => read(&tool, definition.timeout_ms).map(|offered| (name, offered)),
                },
            };
            match read {
                Ok((name, tool)) => drop(offered.tools.insert(name, tool)),
                Err(why) => drop(offered.refused.insert(cleaned(&own, 64), why)),
            }
        }
        let is_listed =
            |extra: &Extra| definition.tools.as_ref().is_none_or(|tools| tools.contains(extra.name()));
        let extras = Extra::ALL.into_iter().filter(|extra| extra.is_of(&listed.capabilities));
        for extra in extras.filter(is_listed) {
            // A tool of the server's own goes before.
            if let Some(name) = server.tool(extra.name())
                && !offered.tools.contains_key(&name)
                && !offered.refused.contains_key(extra.name())
            {
                offered.tools.insert(name, of_extra(extra, server, definition.timeout_ms));
            }
        }
        offered
    }
}

fn of_extra(extra: Extra, server: &ServerName, timeout_ms: u64) -> Offered {
    let spec = ToolSpec { timeout_ms: Some(timeout_ms.saturating_add(SLACK_MS)), ..extra.spec(server) };
    let hash = BlobHash::digest(spec.schema.as_bytes());
    Offered { name: extra.name().to_owned(), extra: Some(extra), spec, hash }
}

fn read(tool: &ListedTool, timeout_ms: u64) -> Result<Offered, String> {
    let schema = tool.schema_as_json_value();
    if schema.get("type").and_then(serde_json::Value::as_str) != Some("object") {
        return Err("the schema of its arguments is not that of an object".to_owned());
    }
    let schema = schema.to_string();
    if schema.len() > TEXT_BYTES_MAX {
        return Err(format!(
            "the schema of its arguments has {} bytes, more than {TEXT_BYTES_MAX}",
            schema.len()
        ));
    }
    let said = tool.description.as_deref().or(tool.title.as_deref()).unwrap_or(&tool.name);
    let hints = tool.annotations.as_ref();
    let is_idempotent =
        hints.is_some_and(|hints| hints.is_idempotent() || hints.read_only_hint == Some(true));
    let hash = BlobHash::digest(format!("{said}\n{schema}\n{is_idempotent}").as_bytes());
    let spec = ToolSpec {
        description: cleaned(said, DESCRIPTION_BYTES_MAX),
        schema,
        lost: if is_idempotent { OnLost::Repeatable } else { OnLost::Presumed },
        timeout_ms: Some(timeout_ms.saturating_add(SLACK_MS)),
        ..ToolSpec::default()
    };
    Ok(Offered { name: tool.name.to_string(), extra: None, spec, hash })
}

/// A text of a server, without what a terminal would act on, and cut.
pub(super) fn cleaned(text: &str, bytes_max: usize) -> String {
    let mut text: String = text.trim().chars().map(|c| if is_hostile(c) { ' ' } else { c }).collect();
    if text.len() > bytes_max {
        text.truncate(text.floor_char_boundary(bytes_max));
        text.push('…');
    }
    text
}

/// The same as one line, for texts that people read among ours: a line break could make them look like ours.
pub(super) fn one_line(text: &str, bytes_max: usize) -> String {
    let words: Vec<&str> = text.split(['\n', '\t']).map(str::trim).filter(|word| !word.is_empty()).collect();
    cleaned(&words.join(" "), bytes_max)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use spinney_kernel::definition::ServerAddress;

    fn server(tools: Option<&[&str]>) -> ToolServer {
        ToolServer {
            address: ServerAddress::Command(vec!["true".to_owned()]),
            env: Default::default(),
            network: Default::default(),
            folders: Default::default(),
            tools: tools.map(|tools| tools.iter().map(|tool| (*tool).to_owned()).collect()),
            timeout_ms: 1_000,
            per: Default::default(),
            sampling: false,
        }
    }

    fn offered(server: &ToolServer, tools: serde_json::Value) -> OfferedTools {
        let tools = serde_json::from_value(tools).unwrap_or_else(|error| panic!("{error}"));
        let capabilities = serde_json::from_value(json!({ "resources": {} }));
        let listed = Listed { tools, capabilities: capabilities.unwrap_or_else(|error| panic!("{error}")) };
        OfferedTools::new(&"files".parse().unwrap_or_else(|error| panic!("{error}")), server, listed)
    }

    /// G28 (lying schemas, escape text): what a server says of its tools is bounded and cannot act on a terminal.
    #[test]
    fn g28_descriptions_and_schemas_are_bounded() {
        let object = json!({ "type": "object" });
        let tools = offered(
            &server(None),
            json!([
                { "name": "read.file", "description": "Reads\u{1b}[2J a file.", "inputSchema": object },
                { "name": "read_file", "description": "Another.", "inputSchema": object },
                { "name": "list", "inputSchema": { "type": "string" } },
                { "name": "deep", "inputSchema": { "type": "object", "title": "x".repeat(40_000) } },
                { "name": "x".repeat(80), "inputSchema": object },
                { "name": "", "inputSchema": object },
                { "name": "talk", "description": "y".repeat(20_000), "inputSchema": object, "annotations": { "readOnlyHint": true } },
            ]),
        );
        let names: Vec<&str> = tools.tools.keys().map(ToolName::as_str).collect();
        assert_eq!(
            names,
            ["files__list_resources", "files__read_file", "files__read_resource", "files__talk"]
        );
        let read = &tools.tools["files__read_file"];
        assert_eq!((read.name.as_str(), read.spec.description.as_str()), ("read.file", "Reads [2J a file."));
        assert_eq!(read.spec.lost, OnLost::Presumed);
        let talk = &tools.tools["files__talk"].spec;
        assert_eq!(
            (talk.description.chars().count(), talk.lost),
            (DESCRIPTION_BYTES_MAX + 1, OnLost::Repeatable)
        );
        assert_eq!(tools.refused.len(), 5);
    }

    #[test]
    fn only_listed_tools_of_a_server_are_offered() {
        let tools = json!([{ "name": "a", "inputSchema": { "type": "object" } }, { "name": "b", "inputSchema": { "type": "object" } }]);
        let all = offered(&server(Some(&["read_resource"])), tools.clone());
        assert_eq!(all.tools.keys().map(ToolName::as_str).collect::<Vec<_>>(), ["files__read_resource"]);
        let offered = offered(&server(Some(&["b"])), tools);
        assert_eq!(offered.tools.keys().map(ToolName::as_str).collect::<Vec<_>>(), ["files__b"]);
        assert!(offered.refused.is_empty());
    }
}
