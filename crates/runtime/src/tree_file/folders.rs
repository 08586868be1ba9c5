//! Folders of the user that a file names for its tree and its agents. They are texts until the caller has resolved them:
//! only it knows the file's folder, the user and what is on the disk. Until then agents have none of them.

use std::collections::BTreeMap;

use spinney_kernel::definition::{Definition, FolderAccess, FolderGrants};
use spinney_kernel::primitives::{FolderPath, RoleName, limit};

use super::TreeFile;
use super::definition::Reader;
use super::error::FileError;
use super::node::Step;
use super::reach::step_roles;

/// The lists of a tree or an agent, as they are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WrittenFolders {
    read: Vec<String>,
    write: Vec<String>,
}

/// Those of the tree itself are without a role.
pub(super) type FolderLists = BTreeMap<Option<RoleName>, WrittenFolders>;

impl WrittenFolders {
    /// `None` if neither list is there. An empty list says that there are none.
    fn new(read: Option<&Vec<String>>, write: Option<&Vec<String>>) -> Option<Self> {
        let list = |texts: Option<&Vec<String>>| texts.cloned().unwrap_or_default();
        (read.is_some() || write.is_some()).then(|| Self { read: list(read), write: list(write) })
    }

    fn lists(&self) -> [(FolderAccess, &[String]); 2] {
        [(FolderAccess::Read, &self.read), (FolderAccess::Write, &self.write)]
    }
}

impl Reader<'_> {
    /// All lists of the file, each within its bounds.
    pub(super) fn folders(&self) -> FolderLists {
        let keys = self.keys;
        let of_tree = WrittenFolders::new(keys.read.as_ref(), keys.write.as_ref());
        let of_roles = keys.agents.iter().filter_map(|(role, agent)| {
            Some((Some(role.clone()), WrittenFolders::new(agent.read.as_ref(), agent.write.as_ref())?))
        });
        let all: FolderLists = of_tree.map(|lists| (None, lists)).into_iter().chain(of_roles).collect();
        for (role, written) in &all {
            let count = written.lists().iter().map(|(_, texts)| texts.len()).sum::<usize>();
            let at = place(role.as_ref());
            if count > limit::FOLDERS_MAX {
                let message = format!("{count} folders are more than {}", limit::FOLDERS_MAX);
                let key = if written.write.is_empty() { "read" } else { "write" };
                self.note(self.wrong(&with(&at, &[Step::Key(key)]), message));
            }
            for (access, texts) in written.lists() {
                for (index, text) in texts.iter().enumerate() {
                    let path = with(&at, &[Step::Key(access.as_str()), Step::Item(index)]);
                    self.noted(self.said(&path, text, limit::FOLDER_PATH_BYTES_MAX));
                }
            }
        }
        all
    }
}

impl TreeFile {
    /// Whether the file names folders of the user.
    #[must_use]
    pub fn has_folders(&self) -> bool {
        self.folders.values().any(|written| written.lists().iter().any(|(_, texts)| !texts.is_empty()))
    }

    /// What has a list has nothing before it is resolved, and nothing of its parent's.
    pub(super) fn without_folders(mut self) -> Self {
        self.resolve_folders(&|_, _| Err(String::new()));
        self
    }

    /// Gives the tree and its agents the folders that the file names, each as `resolve` says. One that cannot be resolved is
    /// not given, and its error is at its place.
    pub fn resolve_folders(
        &mut self,
        resolve: &dyn Fn(&str, FolderAccess) -> Result<FolderPath, String>,
    ) -> Vec<FileError> {
        let mut errors = Vec::new();
        for (role, written) in &self.folders {
            let mut grants = FolderGrants::default();
            for (access, texts) in written.lists() {
                for (index, text) in texts.iter().enumerate() {
                    match resolve(text, access) {
                        Ok(path) => grants.add(path, access),
                        Err(reason) => {
                            let at = place(role.as_ref());
                            let path = with(&at, &[Step::Key(access.as_str()), Step::Item(index)]);
                            errors.push(FileError::new(&self.file, self.root.place_of(&path), reason));
                        }
                    }
                }
            }
            let of_role = role.as_ref().map(|role| self.definition.roles.get_mut(role));
            match of_role {
                None => self.definition.folders = Some(grants),
                Some(Some(role)) => role.caps.folders = Some(grants),
                Some(None) => {}
            }
        }
        errors
    }
}

impl TreeFile {
    /// Roles of a pipeline's steps that list more than the tree has: the tree itself is what starts them.
    pub(super) fn folders_beyond(&self, definition: &Definition) -> Vec<FileError> {
        let Some(graph) = definition.graph.as_deref() else { return Vec::new() };
        let of_tree = definition.folders.clone().unwrap_or_default();
        let beyond = step_roles(graph).into_iter().filter_map(|name| {
            let folders = definition.roles.get(name)?.caps.folders.as_ref()?.beyond(&of_tree);
            let (_, access) = folders.iter().next()?;
            let message = format!("a step of `{name}` can never be started: the tree may not {folders}");
            let at = with(&place(Some(name)), &[Step::Key(access.as_str())]);
            let error = FileError::new(&self.file, self.root.place_of_key(&at), message);
            Some(error.with_help("also list it at the top of the file"))
        });
        beyond.collect()
    }
}

/// Where the lists of the tree or a role are.
fn place(role: Option<&RoleName>) -> Vec<Step<'_>> {
    role.map(|role| vec![Step::Key("agents"), Step::Key(role.as_str())]).unwrap_or_default()
}

fn with<'a>(path: &[Step<'a>], more: &[Step<'a>]) -> Vec<Step<'a>> {
    [path, more].concat()
}
