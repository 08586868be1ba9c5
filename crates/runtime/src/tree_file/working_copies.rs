//! `working_copy`: repositories that agents get copies of. They are texts until the caller has resolved them: only it knows
//! the file's folder and what is on the disk. Until then agents have none.

use std::collections::BTreeMap;

use spinney_kernel::primitives::{FolderPath, RoleName, limit};

use super::TreeFile;
use super::definition::Reader;
use super::error::FileError;
use super::keys::AgentKeys;
use super::node::Step;

const KEY: &str = "working_copy";
/// What an agent with a copy is told before its own prompt ends.
const PROMPT: &str = "You have a working copy of a git repository, `copy/`, that is yours alone. Your commands begin in it, and your file tools reach its files as `copy/…`. Commit as you like: when you end, everything that you changed becomes a branch of the repository.";

/// The same for a program.
const PROGRAM_PROMPT: &str = "You are in a working copy of a git repository that is yours alone. Commit as you like: when you end, everything that you changed becomes a branch of the repository.";

/// By the roles that have one.
pub(super) type WrittenCopies = BTreeMap<RoleName, String>;

impl Reader<'_> {
    pub(super) fn working_copies(&self) -> WrittenCopies {
        let written = self.keys.agents.iter().filter_map(|(role, agent)| {
            let text = agent.working_copy.as_ref()?;
            let path = [Step::Key("agents"), Step::Key(role.as_str()), Step::Key(KEY)];
            self.noted(self.said(&path, text, limit::FOLDER_PATH_BYTES_MAX));
            Some((role.clone(), text.clone()))
        });
        written.collect()
    }
}

/// The prompt of an agent, with what it has to know of its copy.
pub(super) fn prompt(keys: &AgentKeys) -> String {
    let prompt = &keys.prompt;
    match keys.working_copy {
        None => prompt.clone(),
        Some(_) if prompt.is_empty() => PROMPT.to_owned(),
        Some(_) => format!("{prompt}\n\n{PROMPT}"),
    }
}

/// The same for an agent that is a program, which begins in its copy.
pub(super) fn program_prompt(keys: &AgentKeys) -> String {
    let prompt = &keys.prompt;
    match keys.working_copy {
        None => prompt.clone(),
        Some(_) if prompt.is_empty() => PROGRAM_PROMPT.to_owned(),
        Some(_) => format!("{prompt}\n\n{PROGRAM_PROMPT}"),
    }
}

impl TreeFile {
    /// Gives agents the repositories that the file names, each as `resolve` says. One that cannot be resolved is not given,
    /// and its error is at its place.
    pub fn resolve_working_copies(
        &mut self,
        resolve: &dyn Fn(&str) -> Result<FolderPath, String>,
    ) -> Vec<FileError> {
        let mut errors = Vec::new();
        let written = std::mem::take(&mut self.working_copies);
        for (role, text) in &written {
            match resolve(text) {
                Err(reason) => errors.push(self.bad_agent(role, KEY, reason)),
                Ok(path) => {
                    let Some(role) = self.definition.roles.get_mut(role) else { continue };
                    if let Some(turns) = &mut role.turns {
                        turns.working_copy = Some(path);
                    } else if let Some(program) = &mut role.program {
                        program.working_copy = Some(path);
                    }
                }
            }
        }
        self.working_copies = written;
        errors
    }
}
