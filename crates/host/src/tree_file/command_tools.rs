//! The tools that a tree file defines: files beside it that their commands name, and the drivers that run them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use spinney::tree_file::{CommandTool, FileError, FileProblem, SavedOutputs, TreeFile};
use spinney::{CheckedArguments, Drivers};
use spinney_drivers::commands::{CommandToolSpec, Commands};
use spinney_drivers::workspace::OutputKind;
use spinney_kernel::definition::{Allow, FolderGrants, Role};
use spinney_kernel::primitives::{FolderPath, RoleName, ToolName};

/// Words of commands that begin so name files beside the tree file.
const BESIDE: [&str; 2] = ["./", "../"];

/// Where an argument of a call begins.
const PLACE: &str = "{{";

pub(super) fn is_beside(word: &str) -> bool {
    BESIDE.iter().any(|beginning| word.starts_with(beginning))
}

/// Completes the paths of files in the folder of the tree file. What is wrong is at its place.
pub(super) fn complete(file: &mut TreeFile, folder: &Path) -> Vec<FileProblem> {
    let found = |word: &str| {
        let path = is_beside(word).then(|| folder.join(word).canonicalize())?.ok()?;
        path.to_str().filter(|path| !path.contains(PLACE)).map(str::to_owned)
    };
    file.complete_commands(&found);
    let mut problems = Vec::new();
    for (name, tool) in &file.command_tools {
        for word in tool.command.fixed_words() {
            if is_beside(word) {
                let path = folder.join(word);
                let reason = match path.canonicalize() {
                    Err(_) => format!("cannot find {}", path.display()),
                    Ok(path) => {
                        format!("{} contains `{PLACE}`, where an argument would begin", path.display())
                    }
                };
                problems.push(FileProblem::error(file.bad_tool(name, "command", reason)));
            }
        }
        if let Some(beginning) = tool.command.beginnings().find(|word| is_beside(word)) {
            let reason =
                format!("a file beside the tree file cannot be named by an argument: `{beginning}…`");
            let error = file.bad_tool(name, "command", reason);
            problems.push(FileProblem::error(error.with_help("write the whole path of the folder")));
        }
    }
    problems.extend(file.command_tools.iter().filter_map(|(name, tool)| unreadable(file, name, tool)));
    problems
}

/// A warning if agents with a tool cannot read a file that its command names.
fn unreadable(file: &TreeFile, name: &ToolName, tool: &CommandTool) -> Option<FileProblem> {
    let all = file.definition.all_folders();
    let blind = |word: &str| {
        let path = word.starts_with('/').then_some(word)?.parse::<FolderPath>().ok()?;
        let is_of_user = Path::new(word).is_file() && !is_of_system(word);
        let roles = file.definition.roles.iter().filter(|(_, role)| has_tool(role, name));
        let cannot = |(role, settings): (&RoleName, &Role)| {
            let grants: &FolderGrants = settings.caps.folders.as_ref().unwrap_or(&all);
            grants.access(&path).is_none().then(|| role.clone())
        };
        is_of_user.then(|| roles.filter_map(cannot).next()).flatten()
    };
    let (word, role) = tool.command.fixed_words().find_map(|word| Some((word, blind(word)?)))?;
    let folder = Path::new(word).parent().unwrap_or(Path::new("/")).display();
    let error = file.bad_tool(name, "command", format!("commands of `{role}` cannot read {word}"));
    Some(FileProblem::warning(error.with_help(format!("write `read: [{folder}]` at the top of the file"))))
}

fn has_tool(role: &Role, tool: &ToolName) -> bool {
    matches!(&role.caps.tools, Allow::Only(tools) if tools.contains(tool))
}

/// What every box can read.
pub(super) fn is_of_system(path: &str) -> bool {
    ["/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/"].iter().any(|folder| path.starts_with(folder))
}

/// Names of tools that exist already.
pub(super) fn taken(file: &TreeFile, known: &[ToolName]) -> Vec<FileError> {
    let taken = file.command_tools.keys().filter(|tool| known.contains(tool));
    taken.map(|tool| file.taken_tool(tool)).collect()
}

/// The drivers with these tools.
pub(super) fn with_command_tools(
    drivers: Drivers,
    commands: &Commands,
    tools: &BTreeMap<ToolName, CommandTool>,
) -> Drivers {
    tools.iter().fold(drivers, |drivers, (name, tool)| {
        let CommandTool { description, args, command, repeatable, timeout_ms, saves } = tool.clone();
        let kind = saves.map(|SavedOutputs { kind, extension }| OutputKind { kind, extension });
        let spec = CommandToolSpec { description, schema: args, command, repeatable, timeout_ms, kind };
        let tool = CheckedArguments::new(commands.command_tool(spec));
        drivers.with_tool(name.clone(), Arc::new(tool))
    })
}
