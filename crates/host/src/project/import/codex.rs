//! Settings and agents of Codex: TOML files.

use toml::{Table, Value};

use super::source_files::{SourceFolder, SourceText};
use super::{AGENTS_MAX, Found, ImportedAgent, ProjectImportError, servers, tools};

const SETTINGS: &str = ".codex/config.toml";
const AGENTS: &str = ".codex/agents";

pub(super) fn read(source: &SourceFolder, found: &mut Found) -> Result<(), ProjectImportError> {
    if let Some(file) = source.read(SETTINGS, found)?
        && let Some(table) = table(&file, found)
    {
        settings(&table, found);
    }
    let room = AGENTS_MAX.saturating_sub(found.agents.len());
    for name in source.list(AGENTS, ".toml", room, found)? {
        let Some(file) = source.read(&name, found)? else { continue };
        let Some(table) = table(&file, found) else { continue };
        let agent = agent(&name, &table, found);
        found.agents.extend(agent);
    }
    Ok(())
}

fn table(file: &SourceText, found: &mut Found) -> Option<Table> {
    match file.text.parse::<Table>() {
        Ok(table) => Some(table),
        Err(error) => {
            found.leave_out(&file.name, format!("the whole file: it is not TOML: {}", error.message()));
            None
        }
    }
}

fn settings(table: &Table, found: &mut Found) {
    for (key, value) in table {
        let from = format!("{SETTINGS}: {key}");
        match (key.as_str(), value) {
            ("model", Value::String(model)) => found.model = Some((model.clone(), from)),
            ("mcp_servers", Value::Table(all)) => {
                let all = serde_json::to_value(all).unwrap_or_default();
                servers::take(&all, SETTINGS, "mcp_servers", found);
            }
            ("developer_instructions" | "instructions", Value::String(text)) => {
                found.instructions.push((from, text.clone()));
            }
            ("approval_policy" | "sandbox_mode" | "sandbox_workspace_write", _) => found.leave_out(
                from,
                "commands run in a box, with the folders of `read` and `write`; `approvals` asks for calls",
            ),
            ("model_reasoning_effort", _) => {
                found.leave_out(from, "`params: { reasoning_effort: … }` of a model does the same");
            }
            ("model_provider" | "model_providers", _) => {
                found.leave_out(from, "a model at another address needs `base_url` and a `price`");
            }
            _ => found.leave_out(from, "there is nothing like it"),
        }
    }
}

fn agent(file: &str, table: &Table, found: &mut Found) -> Option<ImportedAgent> {
    let text = |key: &str| table.get(key).and_then(Value::as_str).map(str::to_owned);
    let stem = file.rsplit('/').next().unwrap_or(file).trim_end_matches(".toml");
    let Some(prompt) = text("developer_instructions").filter(|text| !text.trim().is_empty()) else {
        found.leave_out(file, "the whole file: it has no developer_instructions");
        return None;
    };
    let at = |key: &str| format!("{file}: {key}");
    for key in table.keys() {
        if !matches!(key.as_str(), "name" | "description" | "developer_instructions" | "model") {
            found.leave_out(at(key), "there is nothing like it for an agent");
        }
    }
    Some(ImportedAgent {
        name: text("name").unwrap_or_else(|| stem.to_owned()),
        from: file.to_owned(),
        description: text("description").map(|words| (words, at("description"))),
        prompt,
        prompt_from: at("developer_instructions"),
        model: text("model").map(|model| (model, at("model"))),
        tools: tools::ALL.iter().map(|tool| ((*tool).to_owned(), file.to_owned())).collect(),
    })
}
