//! Tools of Claude Code, and those of a tree file that do the same.

use super::Found;

/// The tools that an agent gets whose file names none: Claude Code lets it use all.
pub(super) const ALL: [&str; 6] =
    ["read_file", "list_files", "search_files", "write_file", "edit_file", "run_command"];

/// Tools that change files of the project, or may.
pub(super) const CHANGES_FILES: [&str; 4] = ["write_file", "edit_file", "delete_file", "run_command"];

/// What a tool becomes.
enum Becomes {
    Tools(&'static [&'static str]),
    Nothing(&'static str),
}

fn becomes(tool: &str) -> Option<Becomes> {
    Some(match tool {
        "Read" => Becomes::Tools(&["read_file"]),
        "Write" => Becomes::Tools(&["write_file"]),
        "Edit" | "MultiEdit" => Becomes::Tools(&["edit_file"]),
        "Glob" | "LS" => Becomes::Tools(&["list_files"]),
        "Grep" => Becomes::Tools(&["search_files"]),
        "Bash" | "BashOutput" | "KillShell" => Becomes::Tools(&["run_command"]),
        "Task" | "Agent" => Becomes::Tools(&["spawn_agent", "wait_agent"]),
        "AskUserQuestion" => Becomes::Tools(&["ask_human"]),
        "SendMessage" => Becomes::Tools(&["send_message"]),
        "WebFetch" => Becomes::Nothing("name its hosts in `network` of the agent, and `fetch` in its tools"),
        "WebSearch" => {
            Becomes::Nothing("no budget bounds a search at the provider; a server of tools can search")
        }
        "NotebookEdit" | "NotebookRead" => Becomes::Nothing("there is no tool for notebooks"),
        "TodoWrite" | "TodoRead" | "TaskCreate" | "TaskUpdate" | "TaskList" | "TaskGet" => {
            Becomes::Nothing("agents plan in their own steps")
        }
        "Skill" | "SlashCommand" => Becomes::Nothing("skills and commands are not carried over"),
        "EnterPlanMode" | "ExitPlanMode" => Becomes::Nothing("there is no plan mode"),
        _ => return None,
    })
}

/// The tools of a tree file for the tools that a file of Claude Code names.
pub(super) fn carried(named: &[String], from: &str, found: &mut Found) -> Vec<(String, String)> {
    let mut tools: Vec<(String, String)> = Vec::new();
    let mut add = |tool: String| {
        if !tools.iter().any(|(known, _)| *known == tool) {
            tools.push((tool, from.to_owned()));
        }
    };
    for word in named {
        let (tool, pattern) = match word.split_once('(') {
            Some((tool, pattern)) => (tool.trim(), Some(pattern.trim_end_matches(')'))),
            None => (word.as_str(), None),
        };
        if tool == "*" {
            ALL.iter().for_each(|tool| add((*tool).to_owned()));
            continue;
        }
        if let Some(rest) = tool.strip_prefix("mcp__") {
            match rest.split_once("__").filter(|(_, name)| !name.is_empty() && *name != "*") {
                Some((server, name)) => match server_tool(server, name) {
                    Some(tool) => add(tool),
                    None => found.leave_out(from, format!("tool {tool}: its name is not that of a tool")),
                },
                None => found.leave_out(
                    from,
                    format!(
                        "{tool}, all tools of a server: name those that the agent may call, as server__tool"
                    ),
                ),
            }
            continue;
        }
        match becomes(tool) {
            Some(Becomes::Tools(tools)) => {
                tools.iter().for_each(|tool| add((*tool).to_owned()));
                if let Some(pattern) = pattern {
                    let what =
                        format!("that {tool} is for `{pattern}` only: `approvals` can ask for each call");
                    found.leave_out(from, what);
                }
            }
            Some(Becomes::Nothing(why)) => found.leave_out(from, format!("tool {tool}: {why}")),
            None => found.leave_out(from, format!("tool {tool}: it is not known")),
        }
    }
    tools
}

/// The name of a server's tool in a tree file, if it is one.
fn server_tool(server: &str, name: &str) -> Option<String> {
    let is_plain = |text: &str| {
        (1..=32).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    (is_plain(server) && is_plain(name)).then(|| format!("{server}__{name}"))
}
