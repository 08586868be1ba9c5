//! The servers of a tree file: files beside it that their commands name, the keys that they never get, and their tools with
//! checked arguments.

use std::path::Path;
use std::sync::Arc;

use spinney::CheckedArguments;
use spinney::tree_file::{FileError, FileProblem, TreeFile};
use spinney_drivers::mcp::ToolServers;
use spinney_kernel::definition::{FolderAccess, ServerAddress, ToolServer};
use spinney_kernel::port::{OfferedTool, Pending, ToolDiscovery, ToolSource};
use spinney_kernel::primitives::{Fault, FaultKind, FolderPath, ServerName};

use super::command_tools::{is_beside, is_of_system};

/// Completes the paths of files in the folder of the tree file. What is wrong is at its place.
pub(super) fn complete(file: &mut TreeFile, folder: &Path) -> Vec<FileProblem> {
    let found = |word: &str| {
        let path = is_beside(word).then(|| folder.join(word).canonicalize())?.ok()?;
        path.to_str().map(str::to_owned)
    };
    file.complete_servers(&found);
    let mut problems = Vec::new();
    for (name, server) in &file.definition.servers {
        let ServerAddress::Command(words) = &server.address else { continue };
        for (place, word) in words.iter().enumerate() {
            let key = if place == 0 { "command" } else { "args" };
            if is_beside(word) {
                let reason = format!("cannot find {}", folder.join(word).display());
                problems.push(FileProblem::error(file.bad_server(name, key, reason)));
            } else if let Some(error) = unreadable(file, (name, server), key, word) {
                problems.push(FileProblem::warning(error));
            }
        }
    }
    problems
}

/// A warning if a server cannot read a file or folder that its command names.
fn unreadable(
    file: &TreeFile,
    (name, server): (&ServerName, &ToolServer),
    key: &str,
    word: &str,
) -> Option<FileError> {
    let path = word.starts_with('/').then(|| word.parse::<FolderPath>().ok())??;
    let is_there = Path::new(word).exists() && !is_of_system(word);
    if !is_there || server.folders.access(&path) >= Some(FolderAccess::Read) {
        return None;
    }
    let around = if Path::new(word).is_dir() {
        Path::new(word)
    } else {
        Path::new(word).parent().unwrap_or(Path::new("/"))
    };
    let error = file.bad_server(name, key, format!("server `{name}` cannot read {word}"));
    let around = around.display();
    Some(error.with_help(format!("write `read: [{around}]` for it, and for the agents that use it")))
}

/// Servers that would get a key of a provider.
pub(super) fn with_keys(file: &TreeFile, is_key: impl Fn(&str) -> bool) -> Vec<FileError> {
    let found = file.definition.servers.iter().filter_map(|(name, server)| {
        let key = server.variables().find(|variable| is_key(variable))?;
        let place = if server.env.contains(key) { "env" } else { "auth" };
        let error = file.bad_server(name, place, format!("server `{name}` would get the key in {key}"));
        Some(error.with_help("a server never gets a provider's key"))
    });
    found.collect()
}

/// Tools of servers whose calls are checked before their server sees them.
pub(super) struct CheckedServers(pub(super) ToolServers);

impl ToolSource for CheckedServers {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn tools(&self, discovery: ToolDiscovery) -> Pending<Result<Vec<OfferedTool>, Fault>> {
        let servers = self.0.clone();
        Box::pin(async move {
            let checked =
                servers.tools(discovery).await?.into_iter().map(|OfferedTool { name, tool, .. }| {
                    match CheckedArguments::with_usable_schema(tool) {
                        Ok(tool) => Ok(OfferedTool::new(name, Arc::new(tool))),
                        Err(why) => {
                            let message =
                                format!("the schema of the arguments of `{name}` cannot be used: {why}");
                            Err(Fault { message, ..Fault::new(FaultKind::Invalid) })
                        }
                    }
                });
            checked.collect()
        })
    }
}
