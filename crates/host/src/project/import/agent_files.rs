//! Agents of Claude Code: Markdown files with keys.

use super::front_matter::{FrontKey, FrontMatter};
use super::source_files::{SourceFolder, SourceText};
use super::{AGENTS_MAX, Found, ImportedAgent, ProjectImportError, tools};

const FOLDER: &str = ".claude/agents";

pub(super) fn read(source: &SourceFolder, found: &mut Found) -> Result<(), ProjectImportError> {
    for name in source.list(FOLDER, ".md", AGENTS_MAX, found)? {
        let Some(SourceText { name, text, .. }) = source.read(&name, found)? else { continue };
        let agent = agent(&name, &text, found);
        found.agents.extend(agent);
    }
    Ok(())
}

fn agent(file: &str, text: &str, found: &mut Found) -> Option<ImportedAgent> {
    let front = FrontMatter::read(text);
    let at = |key: &FrontKey| format!("{file}:{}", key.line);
    if front.body.trim().is_empty() {
        found.leave_out(file, "the whole file: it has no instructions");
        return None;
    }
    let stem = file.rsplit('/').next().unwrap_or(file).trim_end_matches(".md");
    let name = front.get("name").map_or_else(|| stem.to_owned(), |key| key.value.clone());
    let mut carried = match front.get("tools") {
        Some(key) => tools::carried(&key.list(), &at(key), found),
        None => tools::ALL.iter().map(|tool| ((*tool).to_owned(), file.to_owned())).collect(),
    };
    if let Some(key) = front.get("disallowedTools") {
        // What is said about tools that it has not is not missed.
        let without = tools::carried(&key.list(), &at(key), &mut Found::default());
        carried.retain(|(tool, _)| !without.iter().any(|(other, _)| other == tool));
    }
    for key in &front.keys {
        let why = match key.key.as_str() {
            "name" | "description" | "tools" | "disallowedTools" | "model" => continue,
            // It says how it looks there.
            "color" => continue,
            "permissionMode" => "`approvals` says which calls need a person",
            "maxTurns" => "`limits: { max_steps: … }` does the same",
            "isolation" => "`working_copy: .` gives each agent its own copy of the repository",
            "mcpServers" => "its own servers: name them in `mcp` of the tree",
            "hooks" | "skills" | "memory" | "background" | "effort" | "initialPrompt" => {
                "there is nothing like it"
            }
            _ => "it is not known",
        };
        found.leave_out(at(key), format!("{}: {why}", key.key));
    }
    let described = front.get("description").map(|key| (key.value.clone(), at(key)));
    let model = front.get("model").filter(|key| !matches!(key.value.as_str(), "" | "inherit" | "default"));
    Some(ImportedAgent {
        name,
        from: file.to_owned(),
        description: described.filter(|(text, _)| !text.is_empty()),
        prompt: front.body.clone(),
        prompt_from: format!("{file}:{}", front.body_line),
        model: model.map(|key| (key.value.clone(), at(key))),
        tools: carried,
    })
}
