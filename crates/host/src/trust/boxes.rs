//! What the agents of a tree need beyond a whole box, and whether the user allows it. A file may ask for less of a box, for
//! variables, and for folders and copies of repositories of the user; it decides none of it: the user allows them for one
//! start, in their configuration, or in answer to a question about that text of the file.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt;

use spinney_drivers::commands::BoxPermissions;
use spinney_drivers::mcp::ServerPermissions;
use spinney_journal::{Journal, JournalFault};
use spinney_kernel::definition::{BoxWalls, Definition, FolderAccess, FolderGrants, ToolServer};
use spinney_kernel::primitives::{RoleName, Seq, TreeId};
use spinney_kernel::record::Event;

use super::allowed_hosts::AllowedHosts;
use super::file_answers::FileAnswers;
use crate::error_text::with_causes;
use crate::tree_file::boxed_tools::BoxedPermissions;
use crate::tree_file::providers;
use crate::tree_file::source::Text;
use crate::user::box_allowance::BoxAllowance;
use crate::user::configuration::Configuration;
use crate::user::logins;
use crate::user::state_files::StateFileError;
use crate::user::variables::Variables;

/// What the agents of a tree have beyond a whole box, with the roles that ask for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BoxNeeds(BTreeMap<BoxAllowance, Vec<RoleName>>);

impl BoxNeeds {
    /// Those of a definition: of the boxes of roles that run commands, and the folders and working copies of all roles. The
    /// tree's folders are the root's.
    #[must_use]
    pub fn from_definition(definition: &Definition) -> Self {
        let mut needs: BTreeMap<BoxAllowance, Vec<RoleName>> = BTreeMap::new();
        for (role, settings) in definition.roles_with_commands() {
            let spec = settings.sandbox();
            let walls = (spec.walls != BoxWalls::Whole).then_some(BoxAllowance::Walls(spec.walls));
            for need in walls.into_iter().chain(spec.env.into_iter().map(BoxAllowance::Env)) {
                needs.entry(need).or_default().push(role.clone());
            }
        }
        for (role, settings) in &definition.roles {
            if let Some(repository) = settings.working_copy() {
                let need = BoxAllowance::Copy(repository.clone());
                needs.entry(need).or_default().push(role.clone());
            }
        }
        for (role, _, program) in definition.programs() {
            needs.entry(BoxAllowance::Program(program.command.shown())).or_default().push(role.clone());
        }
        let of_tree = definition.folders.iter().map(|folders| (&definition.entry, folders));
        let of_roles =
            definition.roles.iter().filter_map(|(name, role)| Some((name, role.caps.folders.as_ref()?)));
        for (role, folders) in of_tree.chain(of_roles) {
            for (path, access) in folders.iter() {
                let roles = needs.entry(BoxAllowance::Folder { access, path: path.clone() }).or_default();
                if !roles.contains(role) {
                    roles.push(role.clone());
                }
            }
        }
        for (role, settings) in &definition.roles {
            for rule in settings.caps.network.rules() {
                needs.entry(BoxAllowance::Host(rule.clone())).or_default().push(role.clone());
            }
        }
        let mut all = Self(needs);
        all.add_servers(definition);
        all
    }

    /// Those of its servers alone.
    #[must_use]
    pub fn of_servers(definition: &Definition) -> Self {
        let mut all = Self::default();
        all.add_servers(definition);
        all
    }

    fn add_servers(&mut self, definition: &Definition) {
        let needs = &mut self.0;
        for (_, server) in definition.used_servers() {
            let users = definition.roles.iter().filter(|(_, role)| {
                definition.servers_of(role).any(|(_, of_role)| std::ptr::eq(of_role, server))
            });
            let users: Vec<RoleName> = users.map(|(name, _)| name.clone()).collect();
            let folders = server.folders.iter();
            let folders = folders.map(|(path, access)| BoxAllowance::Folder { access, path: path.clone() });
            let hosts = server.network.rules().cloned().map(BoxAllowance::Host);
            let itself = BoxAllowance::Server(server.allowance());
            for need in folders.chain(hosts).chain([itself]) {
                let roles = needs.entry(need).or_default();
                let new: Vec<RoleName> = users.iter().filter(|role| !roles.contains(role)).cloned().collect();
                roles.extend(new);
            }
        }
    }

    /// Those of a stored tree.
    pub async fn of_stored(journal: &dyn Journal, tree: TreeId) -> Result<Self, JournalFault> {
        let first = journal.read(tree, Seq(0), 1).await?;
        let first = first.into_iter().next().and_then(|entry| entry.batch.events.into_iter().next());
        Ok(match first {
            Some(Event::TreeStarted { definition, .. }) => Self::from_definition(&definition),
            Some(_) | None => Self::default(),
        })
    }

    /// Whether every box is whole and has no variable of the user.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each of them, with a role that asks for it and a line for people, unless the user has allowed it.
    pub fn open<'a>(
        &'a self,
        text: &Text,
        allowed: &AllowedBoxes,
    ) -> Result<Vec<(&'a BoxAllowance, &'a RoleName, String)>, StateFileError> {
        let answers = FileAnswers::read(&text.hash())?;
        let open = self.0.iter().filter(|(need, _)| !allowed.allow(need) && !answers.allow_box(need));
        Ok(open.filter_map(|(need, roles)| Some((need, roles.first()?, line(need, roles)))).collect())
    }

    /// What happens, for people, one line each.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.0.iter().map(|(need, roles)| line(need, roles)).collect()
    }

    /// Exactly what is needed, with the values of variables. To be asked for only after the user has allowed it.
    #[must_use]
    pub fn permissions(&self, user: &Variables, allowed: &AllowedBoxes) -> BoxedPermissions {
        let mut servers = ServerPermissions { changed_tools: allowed.changed_tools(), ..Default::default() };
        let mut permissions = BoxPermissions::default();
        for need in self.0.keys() {
            match need {
                BoxAllowance::Walls(walls) => permissions.walls = permissions.walls.max(*walls),
                // Its driver makes it from what the tree's definition says.
                BoxAllowance::Copy(_) => {}
                // What an agent has of them is in its rights.
                BoxAllowance::Folder { .. } | BoxAllowance::Host(_) => {}
                // The tree's definition has it.
                BoxAllowance::Program(_) => {}
                // No file asks for it: what has changed is known when the server runs.
                BoxAllowance::ServerTools(_) => {}
                BoxAllowance::Env(name) => {
                    if let Some(value) = variable(name, user) {
                        permissions.environment.insert(name.clone(), value);
                    }
                }
                BoxAllowance::Server(command) => {
                    for name in ToolServer::variables_of(command) {
                        if let Some(value) = variable(name, user) {
                            servers.environment.insert(name.to_owned(), value);
                        }
                    }
                    servers.servers.insert(command.clone());
                }
            }
        }
        BoxedPermissions { commands: permissions, servers }
    }
}

/// The value of a variable that a box gets, if it is set. A key of a provider is never given, whatever was allowed.
fn variable(name: &str, user: &Variables) -> Option<Option<OsString>> {
    if providers::is_usual_key(name) {
        return None;
    }
    let value = user.get(name).filter(|value| {
        let is_key = providers::is_key_value(value, user);
        if is_key {
            tracing::warn!("{name} is not given to any box: it has a provider's key");
        }
        !is_key
    });
    Some(value.map(Into::into))
}

fn line(need: &BoxAllowance, roles: &[RoleName]) -> String {
    let named =
        |role: &RoleName| if role.is_of_graphs() { "the tree".to_owned() } else { format!("`{role}`") };
    let roles: Vec<String> = roles.iter().map(named).collect();
    let roles = roles.join(", ");
    match need {
        BoxAllowance::Walls(BoxWalls::None) => {
            format!("run commands of {roles} without a box: they may do everything that you may")
        }
        BoxAllowance::Walls(_) => {
            format!(
                "let commands of {roles} signal your other processes, where this machine cannot prevent it"
            )
        }
        BoxAllowance::Env(name) => format!("give {name} to commands of {roles}"),
        BoxAllowance::Copy(path) => {
            format!("give {roles} a working copy of {path}, and make branches in it")
        }
        BoxAllowance::Folder { access: FolderAccess::Read, path } => format!("let {roles} read {path}"),
        BoxAllowance::Folder { access: FolderAccess::Write, path } => {
            format!("let {roles} read and write {path}")
        }
        BoxAllowance::Host(rule) => format!("let tools of {roles} connect to {rule}"),
        BoxAllowance::Program(command) => {
            format!(
                "start the program `{}` as {roles}, with your keys for its model calls within the budget",
                command.escape_debug()
            )
        }
        BoxAllowance::ServerTools(code) => format!("let {roles} use tools that have changed ({code})"),
        BoxAllowance::Server(server) if ToolServer::is_remote(server) => {
            let login = if has_login(server) { " with your login" } else { "" };
            format!("connect to the server `{server}`{login}, for {roles}")
        }
        BoxAllowance::Server(command) => {
            format!("start the server `{command}` in a box, for {roles}")
        }
    }
}

/// Whether the user has logged in at a server elsewhere. If that cannot be read, the server is not connected to.
fn has_login(server: &str) -> bool {
    let mut words = server.split(' ').filter(|word| !word.starts_with('$'));
    let url = words.next().unwrap_or_default().trim_matches('"');
    !server.starts_with('$') && logins::find(url).is_ok_and(|login| login.is_some())
}

/// What the user allows for one start, and in their configuration.
#[derive(Clone, Debug, Default)]
pub struct AllowedBoxes {
    named: Vec<BoxAllowance>,
    hosts: AllowedHosts,
}

impl AllowedBoxes {
    /// With what is named now.
    #[must_use]
    pub fn new(named: &[BoxAllowance], configuration: &Configuration) -> Self {
        let named = named.iter().chain(configuration.allow_box()).cloned().collect();
        Self { named, hosts: AllowedHosts::default() }
    }

    /// With hosts.
    #[must_use]
    pub fn with_hosts(mut self, hosts: &AllowedHosts) -> Self {
        self.hosts = hosts.clone();
        self
    }

    /// With folders that are given now.
    #[must_use]
    pub fn with_folders(mut self, grants: &FolderGrants) -> Self {
        let folders = grants.iter().map(|(path, access)| BoxAllowance::Folder { access, path: path.clone() });
        self.named.extend(folders);
        self
    }

    fn changed_tools(&self) -> BTreeSet<String> {
        let code = |allowed: &BoxAllowance| match allowed {
            BoxAllowance::ServerTools(code) => Some(code.clone()),
            _ => None,
        };
        self.named.iter().filter_map(code).collect()
    }

    fn allow(&self, need: &BoxAllowance) -> bool {
        let is_allowed_host = matches!(need, BoxAllowance::Host(rule) if self.hosts.cover(rule));
        is_allowed_host || self.named.iter().any(|allowed| covers(allowed, need))
    }
}

/// A box without walls has no walls to be weakened, and a folder covers what is in it.
pub(super) fn covers(allowed: &BoxAllowance, need: &BoxAllowance) -> bool {
    match (allowed, need) {
        (BoxAllowance::Walls(allowed), BoxAllowance::Walls(need)) => need <= allowed,
        (
            BoxAllowance::Folder { access: allowed, path: around },
            BoxAllowance::Folder { access: need, path },
        ) => need <= allowed && around.contains(path),
        (BoxAllowance::Host(allowed), BoxAllowance::Host(need)) => allowed.covers(need),
        (allowed, need) => allowed == need,
    }
}

/// What a file asks for and the user has not allowed.
pub struct BoxQuestion {
    /// The file's name, which may come from a stranger's home.
    file: String,
    answers: FileAnswers,
    asked: BoxNeeds,
}

impl BoxQuestion {
    /// None if everything is allowed.
    pub fn about(
        text: &Text,
        needs: &BoxNeeds,
        allowed: &AllowedBoxes,
    ) -> Result<Option<Self>, StateFileError> {
        if needs.is_empty() {
            return Ok(None);
        }
        let answers = FileAnswers::read(&text.hash())?;
        let is_open = |need: &BoxAllowance| !allowed.allow(need) && !answers.allow_box(need);
        let asked = needs.0.iter().filter(|(need, _)| is_open(need));
        let asked = BoxNeeds(asked.map(|(need, roles)| (need.clone(), roles.clone())).collect());
        Ok((!asked.is_empty()).then(|| Self { file: text.name.clone(), answers, asked }))
    }

    /// What stays refused unless the user allows it.
    pub fn refused(&self) -> impl Iterator<Item = &BoxAllowance> {
        self.asked.0.keys()
    }

    /// Remembers a yes. One that cannot be remembered holds for this time.
    pub fn accept(mut self) {
        if let Err(error) = self.answers.add_box(self.asked.0.keys(), &self.file) {
            tracing::warn!("your answer is not remembered: {}", with_causes(&error));
        }
    }
}

impl fmt::Display for BoxQuestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} would", self.file.escape_debug())?;
        self.asked.lines().iter().try_for_each(|line| writeln!(f, "  - {line}"))?;
        f.write_str("and you have not allowed that.")
    }
}
