//! What was read, as the text of a tree file. Every line has its origin behind it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use spinney_drivers::prices::PriceTable;
use spinney_kernel::primitives::{is_hostile, limit};
use spinney_view::wording::one_line;

use super::models::{self, ModelOfProvider};
use super::source_files::SourceFolder;
use super::tools::{ALL, CHANGES_FILES};
use super::{Found, ImportedAgent, ImportedKey, ImportedPlace};

/// Longest name of an agent.
const NAME_CHARS_MAX: usize = 48;
const LINE_CHARS_MAX: usize = 200;
const DESCRIPTION_CHARS_MAX: usize = 400;
/// A start: nothing that is read says what the work may cost.
const BUDGET_USD: &str = "2";

/// A line of plain characters, for comments and for people.
pub(super) fn plain_line(text: &str) -> String {
    let plain: String = text.chars().filter(|letter| *letter == ' ' || !is_hostile(*letter)).collect();
    one_line(&plain, LINE_CHARS_MAX)
}

/// The agents of a file by their final names, and what they need.
struct Named {
    names: Vec<String>,
    lead: String,
    models: Vec<(String, String)>,
    lead_model: (String, String),
    by_model: BTreeMap<String, ModelOfProvider>,
}

pub(super) fn write(found: &mut Found, source: &SourceFolder, file: &Path, prices: &PriceTable) -> String {
    let folder = folder_of(source.root(), file);
    place_servers(found, source.root(), &folder);
    drop_unknown_servers(found);
    let named = named(found, prices);
    let project = source.root().file_name().unwrap_or_default().to_string_lossy();
    let mut text = String::new();
    let mut line = |words: &str, from: &str| {
        let from = plain_line(from);
        let _ = match from.as_str() {
            "" => writeln!(text, "{words}"),
            from => writeln!(text, "{words} # {from}"),
        };
    };
    line(&format!("name: {}", quoted(&one_line(&project, 60))), "the name of the folder");
    line(&format!("budget: {{ cost_usd: {BUDGET_USD} }}"), "a start: no file says what it may cost");
    let changes = found.agents.is_empty()
        || found
            .agents
            .iter()
            .any(|agent| agent.tools.iter().any(|(tool, _)| CHANGES_FILES.contains(&tool.as_str())));
    let access = if changes { "write" } else { "read" };
    line(&format!("{access}: [{}]", quoted(&folder)), "the folder of the project");
    line("models:", "");
    for (name, ModelOfProvider { provider, model }) in &named.by_model {
        line(&format!("  {name}: {{ provider: {provider}, model: {} }}", quoted(model)), "");
    }
    if !found.servers.is_empty() {
        line("mcp:", "");
    }
    for server in &found.servers {
        line(&format!("  {}:", server.name), &server.from);
        let list = |words: &[String]| words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(", ");
        match &server.place {
            ImportedPlace::Command { command, args, env } => {
                line(&format!("    command: {}", quoted(command)), "");
                if !args.is_empty() {
                    line(&format!("    args: [{}]", list(args)), "");
                }
                if !env.is_empty() {
                    line(&format!("    env: [{}]", list(env)), "");
                }
                line(&format!("    read: [{}]", quoted(&folder)), "the folder of the project");
            }
            ImportedPlace::Url { url, auth, .. } => {
                line(&format!("    url: {}", quoted(url)), "");
                if let Some(ImportedKey { variable, header }) = auth {
                    let header = header.as_ref().map(|header| format!(", header: {}", quoted(header)));
                    line(&format!("    auth: {{ key_env: {variable}{} }}", header.unwrap_or_default()), "");
                }
            }
        }
    }
    line("agents:", "");
    text.push_str(&lead(found, &named));
    for (at, agent) in found.agents.iter().enumerate() {
        let hosts = hosts_of(found, &agent.tools);
        text.push_str(&one_agent(agent, &named.names[at], &named.models[at], &hosts));
    }
    let _ = writeln!(text, "entry: {}", named.lead);
    note_cuts(found);
    text
}

/// Names files of the project as the tree file finds them. A server whose files are not there is left out.
fn place_servers(found: &mut Found, root: &Path, folder: &str) {
    let is_relative = |word: &str| word.starts_with("./") || word.starts_with("../");
    let mut missing = Vec::new();
    found.servers.retain_mut(|server| {
        let ImportedPlace::Command { command, args, .. } = &mut server.place else { return true };
        for word in std::iter::once(command).chain(args) {
            if !is_relative(word) {
                continue;
            }
            let path = root.join(&*word);
            if !path.exists() {
                missing.push((server.from.clone(), format!("the server: {word} is not there")));
                return false;
            }
            if folder != "." {
                *word = path.display().to_string();
            }
        }
        true
    });
    missing.into_iter().for_each(|(from, what)| found.leave_out(from, what));
}

/// Tools of servers that are not in the file would be errors.
fn drop_unknown_servers(found: &mut Found) {
    let servers: BTreeSet<String> = found.servers.iter().map(|server| server.name.clone()).collect();
    let mut missing = Vec::new();
    for agent in &mut found.agents {
        agent.tools.retain(|(tool, from)| {
            let is_known = tool.split_once("__").is_none_or(|(server, _)| servers.contains(server));
            if !is_known {
                missing.push((
                    from.clone(),
                    format!("tool {tool}: its server is not among those that were read"),
                ));
            }
            is_known
        });
    }
    missing.into_iter().for_each(|(from, what)| found.leave_out(from, what));
}

fn named(found: &mut Found, prices: &PriceTable) -> Named {
    let mut taken = BTreeSet::new();
    let names: Vec<String> = found.agents.iter().map(|agent| free(&slug(&agent.name), &mut taken)).collect();
    let lead = free("lead", &mut taken);
    let mut by_model = BTreeMap::new();
    let mut missing = Vec::new();
    let mut model_of = |said: Option<&(String, String)>, usual: &ModelOfProvider, unsaid: &str| {
        let (model, from) = match said {
            Some((word, from)) => match models::find(word, prices) {
                Some(model) => (model, from.clone()),
                None => {
                    let what = format!("model {word}: its price is not known; {} is used", usual.model);
                    missing.push((from.clone(), what));
                    (usual.clone(), format!("{unsaid} ({from} names one without a known price)"))
                }
            },
            None => (usual.clone(), unsaid.to_owned()),
        };
        let name = slug(&model.model);
        by_model.insert(name.clone(), model);
        (name, from)
    };
    let usual = models::usual(prices);
    let lead_model = model_of(found.model.as_ref(), &usual, "no file names one");
    let of_lead = found.model.as_ref().and_then(|(word, _)| models::find(word, prices)).unwrap_or(usual);
    let models = found
        .agents
        .iter()
        .map(|agent| model_of(agent.model.as_ref(), &of_lead, "that of the first agent"))
        .collect();
    missing.into_iter().for_each(|(from, what)| found.leave_out(from, what));
    Named { names, lead, models, lead_model, by_model }
}

/// The agent that has the project's instructions and knows all others. A child has only tools that its parent has.
fn lead(found: &Found, named: &Named) -> String {
    let mut tools: Vec<(String, String)> = Vec::new();
    let mut add = |tool: &str, from: &str| {
        if !tools.iter().any(|(known, _)| known == tool) {
            tools.push((tool.to_owned(), from.to_owned()));
        }
    };
    if found.agents.is_empty() {
        ALL.iter().for_each(|tool| add(tool, "the usual ones"));
    } else {
        ["spawn_agent", "wait_agent"].iter().for_each(|tool| add(tool, "it leads the others"));
    }
    for (tool, from) in found.agents.iter().flat_map(|agent| &agent.tools) {
        add(tool, from);
    }
    let from: Vec<&str> = found.instructions.iter().map(|(file, _)| file.as_str()).collect();
    let described = found.agents.iter().zip(&named.names).map(|(agent, name)| {
        let about = agent.description.as_ref().map_or("", |(text, _)| text.as_str());
        format!("- {name}: {}\n", one_line(about, DESCRIPTION_CHARS_MAX))
    });
    let mut prompt = match found.agents.is_empty() {
        true => "You work on this project.\n".to_owned(),
        false => format!(
            "You lead the work on this project. Do it yourself, or give parts of it to these agents with spawn_agent:\n\n{}",
            described.collect::<String>()
        ),
    };
    for (file, text) in &found.instructions {
        let _ = write!(prompt, "\nFrom {}:\n\n{}\n", plain_line(file), text.trim());
    }
    let from = if from.is_empty() { "made from the descriptions".to_owned() } else { from.join(", ") };
    let hosts = hosts_of(found, &tools);
    let (names, prompt) = (&named.names, (prompt.as_str(), from.as_str()));
    agent_text(&named.lead, "it leads the others", &named.lead_model, (&tools, &hosts), prompt, names)
}

fn one_agent(agent: &ImportedAgent, name: &str, model: &(String, String), hosts: &[String]) -> String {
    let prompt = (agent.prompt.as_str(), agent.prompt_from.as_str());
    agent_text(name, &agent.from, model, (&agent.tools, hosts), prompt, &[])
}

/// The hosts of the servers elsewhere whose tools are among these: an agent needs them itself.
fn hosts_of(found: &Found, tools: &[(String, String)]) -> Vec<String> {
    let is_used = |name: &str| {
        tools.iter().any(|(tool, _)| tool.split_once("__").is_some_and(|(server, _)| server == name))
    };
    let used = found.servers.iter().filter(|server| is_used(&server.name));
    let mut hosts: Vec<String> = used
        .filter_map(|server| match &server.place {
            ImportedPlace::Url { host, .. } => Some(host.clone()),
            ImportedPlace::Command { .. } => None,
        })
        .collect();
    hosts.sort_unstable();
    hosts.dedup();
    hosts
}

fn agent_text(
    name: &str,
    from: &str,
    (model, model_from): &(String, String),
    (tools, hosts): (&[(String, String)], &[String]),
    (prompt, prompt_from): (&str, &str),
    subagents: &[String],
) -> String {
    let mut text = format!("  {name}: # {}\n", plain_line(from));
    let _ = writeln!(text, "    model: {model} # {}", plain_line(model_from));
    if !tools.is_empty() {
        text.push_str("    tools:\n");
    }
    for (tool, from) in tools {
        let _ = writeln!(text, "      - {tool} # {}", plain_line(from));
    }
    if !hosts.is_empty() {
        let hosts: Vec<String> = hosts.iter().map(|host| quoted(host)).collect();
        let _ = writeln!(text, "    network: [{}] # the hosts of its servers", hosts.join(", "));
    }
    if !subagents.is_empty() {
        let _ = writeln!(text, "    subagents: [{}]", subagents.join(", "));
    }
    let _ = writeln!(text, "    # {}", plain_line(prompt_from));
    let _ = writeln!(text, "    prompt: {}", block(prompt, 6));
    text
}

/// Says which texts are longer than a prompt may be.
fn note_cuts(found: &mut Found) {
    let most = limit::TEXT_BYTES_MAX;
    let instructions: usize = found.instructions.iter().map(|(_, text)| text.len()).sum();
    let long = found.agents.iter().filter(|agent| agent.prompt.len() > most - PROMPT_ROOM);
    let mut cut: Vec<String> = long.map(|agent| agent.prompt_from.clone()).collect();
    if instructions > most - PROMPT_ROOM {
        cut.extend(found.instructions.iter().map(|(file, _)| file.clone()));
    }
    for from in cut {
        found.leave_out(from, format!("what is beyond {most} bytes of a prompt"));
    }
}

/// Room for what is added to a prompt.
const PROMPT_ROOM: usize = 2 * 1024;

/// A text as a block, or quoted where a block would change it.
fn block(text: &str, indent: usize) -> String {
    let is_kept = |letter: &char| matches!(letter, '\n' | '\t') || !letter.is_control();
    let text: String =
        text.replace("\r\n", "\n").chars().filter(is_kept).filter(|letter| !is_break(*letter)).collect();
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let text = lines.join("\n");
    let text = text.trim_matches('\n');
    let text = &text[..text.floor_char_boundary(limit::TEXT_BYTES_MAX)];
    if text.is_empty() || text.starts_with([' ', '\t']) {
        return quoted(text);
    }
    let mut block = "|-".to_owned();
    for line in text.lines() {
        block.push('\n');
        if !line.is_empty() {
            let _ = write!(block, "{}{line}", " ".repeat(indent));
        }
    }
    block
}

/// Characters that some readers of YAML take for the end of a line, or do not take at all.
const fn is_break(letter: char) -> bool {
    matches!(letter, '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

/// A text in double quotes, as JSON and YAML both read it.
fn quoted(text: &str) -> String {
    let plain: String = text.chars().filter(|letter| !is_break(*letter) && *letter != '\u{7f}').collect();
    let plain: String = plain.chars().filter(|letter| !('\u{80}'..'\u{a0}').contains(letter)).collect();
    serde_json::Value::from(plain).to_string()
}

/// A name with the characters that names of agents and models have.
fn slug(text: &str) -> String {
    let plain = |letter: char| match letter.to_ascii_lowercase() {
        letter if letter.is_ascii_alphanumeric() || letter == '_' => letter,
        _ => '-',
    };
    let slug: String = text.chars().take(NAME_CHARS_MAX - 4).map(plain).collect();
    let slug = slug.trim_matches('-');
    if slug.is_empty() { "agent".to_owned() } else { slug.to_owned() }
}

/// The name, with a number if another agent has it.
fn free(name: &str, taken: &mut BTreeSet<String>) -> String {
    let mut free = name.to_owned();
    for number in 2.. {
        if taken.insert(free.clone()) {
            break;
        }
        free = format!("{name}-{number}");
    }
    free
}

/// The project's folder as the tree file names it.
fn folder_of(root: &Path, file: &Path) -> String {
    let above = file.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match above.canonicalize() {
        Ok(above) if above == root => ".".to_owned(),
        Ok(_) | Err(_) => root.display().to_string(),
    }
}
