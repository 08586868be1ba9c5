//! What is known of the tools of servers:
//!
//! ```text
//! <state>/servers/<hash>.json      the server, as it was allowed, and what its tools said of themselves
//! ```

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use spinney_drivers::mcp::{KnownTool, KnownTools};
use spinney_kernel::primitives::{BlobHash, ToolName};

use super::folders;
use super::state_files::{self, StateFileError};
use crate::error_text::with_causes;

const FOLDER: &str = "servers";

/// Those in the user's state folder.
pub(crate) struct UserKnownTools;

#[derive(Debug, Default, Serialize, Deserialize)]
struct KeptServer {
    /// For people.
    server: String,
    tools: BTreeMap<ToolName, KeptTool>,
}

#[derive(Debug, Serialize, Deserialize)]
struct KeptTool {
    description: String,
    hash: String,
}

impl KnownTools for UserKnownTools {
    fn read(&self, server: &str) -> Result<BTreeMap<ToolName, KnownTool>, String> {
        let path = folders::state().ok().map(|state| state.join(FOLDER).join(name(server)));
        let kept = path.map(|path| state_files::read::<KeptServer>(&path)).transpose();
        let kept = kept.map_err(|error| with_causes(&error))?.flatten().unwrap_or_default();
        let tool = |(name, KeptTool { description, hash })| (name, KnownTool { description, hash });
        Ok(kept.tools.into_iter().map(tool).collect())
    }

    fn write(&self, server: &str, tools: &BTreeMap<ToolName, KnownTool>) -> Result<(), String> {
        let tool = |(tool, known): (&ToolName, &KnownTool)| {
            let KnownTool { description, hash } = known.clone();
            (tool.clone(), KeptTool { description, hash })
        };
        let kept = KeptServer { server: server.to_owned(), tools: tools.iter().map(tool).collect() };
        let write = || -> Result<(), StateFileError> {
            state_files::write(&state_files::make_folder(FOLDER)?.join(name(server)), &kept)
        };
        write().map_err(|error| with_causes(&error))
    }
}

fn name(server: &str) -> String {
    format!("{}.json", BlobHash::digest(server.as_bytes()).as_str())
}
