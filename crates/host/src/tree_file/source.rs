//! Reads a tree file and the scripts it names from disk, each within a size limit.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};
use spinney::Drivers;
use spinney::tree_file::{
    CommandTool, FILE_BYTES_MAX, FileError, FileErrors, FileProblem, ModelSource, Reach, Severity, TreeFile,
    nearest,
};
use spinney_drivers::commands::Commands;
use spinney_drivers::fetch::Fetch;
use spinney_drivers::files::{FileTool, Files};
use spinney_drivers::http::HttpSetupError;
use spinney_drivers::mcp::ToolServers;
use spinney_drivers::packages::PackageCache;
use spinney_drivers::sandbox::can_guard_boxes;
use spinney_drivers::scripted::{Mentioned, SCRIPT_BYTES_MAX, Script, ScriptError, ScriptMention};
use spinney_drivers::working_copies::WorkingCopyGate;
use spinney_drivers::workspace::Workspaces;
use spinney_kernel::definition::{Builtin, Definition, FETCH, Role};
use spinney_kernel::primitives::{BlobHash, ByName, FolderPath, IdError, ModelName, RoleName, ToolName};

use super::boxed_tools::BoxedTools;
use super::command_tools;
use super::folders;
use super::overrides::GivenValues;
use super::problems::{ProblemsKind, TreeFileProblems};
use super::programs;
use super::providers::{self, Catalog, Scripted};
use super::servers::{self, CheckedServers};
use crate::inside::OURSELVES;
use crate::own_drivers::OwnDrivers;
use crate::system::files::UNBLOCKED;
use crate::system::private_files::{self, Links};
use crate::text_file::{self, FileAction, FileFault, UnreadText};
use crate::user::folders::{hidden_folders, packages};
use crate::user::known_tools::UserKnownTools;
use crate::user::logins::UserLogins;
use crate::user::variables::Variables;

/// Why a tree file cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// It cannot be read.
    #[error(transparent)]
    Unread(#[from] FileFault),
    /// It or its scripts are wrong.
    #[error(transparent)]
    Problems(#[from] TreeFileProblems),
    /// Its models have no drivers.
    #[error(transparent)]
    Drivers(#[from] SourceDriversError),
}

/// Why texts that were read once give no drivers.
#[derive(Debug, thiserror::Error)]
pub enum SourceDriversError {
    /// A script is wrong.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// Two scripts have the same tool.
    #[error("{0}")]
    TwoScripts(String),
    /// A model names a script that is not there.
    #[error("model `{0}` has no script")]
    NoScript(ModelName),
    /// Providers cannot be called from here.
    #[error(transparent)]
    Http(#[from] HttpSetupError),
}

/// Why a script that a tree file names is not read.
#[derive(Debug, thiserror::Error)]
pub enum UnreadScript {
    /// It cannot be read.
    #[error(transparent)]
    Unread(#[from] UnreadText),
    /// A tree file may come from anywhere, so it must not choose which files are read.
    #[error("it is outside the folder of the tree file: move it there, or {allow}")]
    Outside {
        /// How the face allows it.
        allow: &'static str,
    },
}

impl From<io::Error> for UnreadScript {
    fn from(error: io::Error) -> Self {
        Self::Unread(error.into())
    }
}

/// The text of a file.
#[derive(Clone, Debug)]
pub struct Text {
    /// Its name in messages.
    pub name: String,
    /// What it says.
    pub text: String,
}

impl Text {
    /// The hash of what it says.
    pub fn hash(&self) -> BlobHash {
        BlobHash::digest(self.text.as_bytes())
    }
}

/// The index of each model's script in the list of scripts.
pub type Parts = Vec<(ModelName, usize)>;

/// A tree file with everything it names.
pub struct TreeSource {
    /// The file, read.
    pub file: TreeFile,
    /// As it was read.
    pub text: Text,
    /// The scripts it names, each once.
    pub scripts: Vec<Text>,
    /// Which model answers from which script.
    pub parts: Parts,
    /// The models that their providers answer.
    pub called: Vec<ModelName>,
    /// The models and tools that play them.
    pub drivers: Drivers,
    /// What starts its processes.
    pub boxed: BoxedTools,
}

impl TreeSource {
    /// Which of its models answer from a file.
    pub fn scripted(&self) -> Scripted {
        Scripted::new(self.parts.iter().map(|(model, _)| model.clone()).collect(), &self.called)
    }
}

impl TreeSource {
    /// The goal of a definition without the values of variables: a file may ask for any variable, and its value may be
    /// secret.
    pub fn shown_goal<'a>(&'a self, definition: &'a Definition, given: &GivenValues) -> &'a str {
        let mut inputs = self.file.inputs.iter();
        let reads = inputs.any(|(name, input)| input.env.is_some() && !given.has_input(name));
        if reads && given.goal.is_none() { &self.file.definition.goal } else { &definition.goal }
    }
}

/// Where the scripts of a tree file may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scripts {
    /// In its folder or below. A tree file may come from anywhere, so it must not choose which files are read.
    Below {
        /// How the face that reads the file allows others, as the end of a sentence.
        allow: &'static str,
    },
    /// Anywhere, because the user allowed it.
    Anywhere,
}

/// Whether the keys of providers must be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// To run a tree.
    Needed,
    /// To check a file, on a machine that may not be the one that runs it.
    Optional,
}

/// A tree file and everything that is wrong with it and its scripts.
pub struct ExaminedFile {
    /// What is wrong, or worth a word.
    pub problems: Vec<FileProblem>,
    /// The texts that problems refer to, by the names that they use.
    pub texts: Vec<Text>,
    /// `None` if the file has errors.
    pub source: Option<TreeSource>,
    /// Whether every model and tool has a driver.
    pub can_start: bool,
    /// Whether only keys are missing, which `check` does not count as errors.
    lacks_only_keys: bool,
}

impl ExaminedFile {
    fn is_wrong(&self) -> bool {
        self.problems.iter().any(|problem| problem.severity == Severity::Error)
    }
}

/// Reads a tree file and its scripts, or fails with everything that is wrong.
pub fn read(
    path: &Path,
    home: &Path,
    allowed: Scripts,
    user: &Variables,
    own: &OwnDrivers,
) -> Result<TreeSource, SourceError> {
    let examined = examine(path, home, allowed, Keys::Needed, user, own)?;
    match examined.source {
        Some(source) => Ok(source),
        None => {
            let kind = match examined.lacks_only_keys {
                true => ProblemsKind::MissingKeys,
                false => ProblemsKind::InFile,
            };
            Err(TreeFileProblems::new(home, path, examined.problems, kind).into())
        }
    }
}

/// Reads a tree file and its scripts, and checks every name in them.
pub fn examine(
    path: &Path,
    home: &Path,
    allowed: Scripts,
    keys: Keys,
    user: &Variables,
    own: &OwnDrivers,
) -> Result<ExaminedFile, SourceError> {
    let text = tree_text(path)?;
    let (file, FileErrors { errors }) = TreeFile::parse_partly(&text.name, &text.text, &Catalog::default());
    let problems = errors.into_iter().map(FileProblem::error).collect();
    let (can_start, lacks_only_keys) = (false, false);
    let mut examined = ExaminedFile { problems, texts: Vec::new(), source: None, can_start, lacks_only_keys };
    if let Some(mut file) = file {
        let folder = path.parent().unwrap_or(Path::new(""));
        let unresolved = file.resolve_working_copies(&|text| repository(folder, text));
        examined.problems.extend(unresolved.into_iter().map(FileProblem::error));
        let hidden = hidden_folders(home);
        let resolved =
            file.resolve_folders(&|written, access| folders::resolve(written, access, folder, &hidden));
        examined.problems.extend(resolved.into_iter().map(FileProblem::error));
        examined.problems.extend(command_tools::complete(&mut file, folder));
        examined.problems.extend(servers::complete(&mut file, folder));
        examined.problems.extend(programs::complete(&mut file, folder));
        let found = find_scripts(&file, folder, allowed, (user, own), &mut examined);
        examined.finish(file, text.clone(), found, home, keys, (user, own))?;
    }
    examined.texts.push(text);
    Ok(examined)
}

/// The repository that a file in this folder names.
fn repository(folder: &Path, text: &str) -> Result<FolderPath, String> {
    let path = folder.join(text);
    let found = path.canonicalize().map_err(|error| format!("cannot open {}: {error}", path.display()))?;
    let text = found.to_str().ok_or_else(|| format!("the path of {} is not a text", path.display()))?;
    text.parse().map_err(|error: IdError| error.to_string())
}

/// The scripts of a tree file, and who answers for each model.
#[derive(Default)]
struct FoundScripts {
    /// By their paths.
    scripts: Vec<(PathBuf, Text, Option<Script>)>,
    parts: Parts,
    called: Vec<ModelName>,
}

fn find_scripts(
    file: &TreeFile,
    folder: &Path,
    allowed: Scripts,
    (user, own): (&Variables, &OwnDrivers),
    examined: &mut ExaminedFile,
) -> FoundScripts {
    let mut found = FoundScripts::default();
    let started = Reach::new(&file.definition).pruned(file.definition.clone());
    for (model, source) in file.models.iter().filter(|(model, _)| !own.has_model(model)) {
        let script = match source {
            ModelSource::Scripted { script } => script,
            // It is not called, so it needs neither its key nor a stand-in.
            ModelSource::Provider(_) if !started.models.contains_key(model) => continue,
            ModelSource::Provider(source) => match (providers::missing(source, user), &source.script) {
                (Some(variable), Some(stand_in)) => {
                    let reason = format!("{variable} is not set, so model `{model}` answers from {stand_in}");
                    let help = format!("type `export {variable}=…` to call the provider");
                    let note = file.bad_model(model, "script", reason).with_help(help);
                    examined.problems.push(FileProblem::note(note));
                    stand_in
                }
                (Some(_), None) | (None, _) => {
                    found.called.push(model.clone());
                    continue;
                }
            },
        };
        let path = folder.join(script);
        let known = found.scripts.iter().position(|(known, _, _)| *known == path);
        let place = known.unwrap_or_else(|| {
            let (text, script) = match read_script(folder, script, allowed) {
                Err(error) => {
                    let reason = format!("cannot read {}: {error}", path.display());
                    examined.problems.push(FileProblem::error(file.bad_model(model, "script", reason)));
                    (String::new(), None)
                }
                Ok(text) => {
                    // Errors show the whole path; the script's name excludes folders, because it is recorded in the
                    // journal and folders mean nothing on another machine.
                    let name = path.display().to_string();
                    let script = Script::parse(&name, &text);
                    examined.texts.push(Text { name, text: text.clone() });
                    let script = script.map_err(|error| {
                        examined.problems.push(FileProblem::error(in_script(error)));
                    });
                    (text, script.ok())
                }
            };
            let name = plain(&path);
            found.scripts.push((path, Text { name, text }, script));
            found.scripts.len() - 1
        });
        found.parts.push((model.clone(), place));
    }
    found
}

impl ExaminedFile {
    /// Checks what the file and its scripts say of each other. It is a source if nothing is wrong.
    fn finish(
        &mut self,
        file: TreeFile,
        text: Text,
        found: FoundScripts,
        home: &Path,
        keys: Keys,
        (user, own): (&Variables, &OwnDrivers),
    ) -> Result<(), SourceDriversError> {
        let FoundScripts { scripts, parts, called } = found;
        let mut played: Vec<(ToolName, usize)> = Vec::new();
        for (place, (path, _, script)) in scripts.iter().enumerate() {
            for (tool, _) in script.iter().flat_map(Script::tools) {
                match played.iter().find(|(known, _)| *known == tool) {
                    Some((_, other)) => {
                        let reason = in_two_scripts(&tool, &plain(&scripts[*other].0), &plain(path));
                        let model = parts.iter().find(|(_, at)| *at == place).map(|(model, _)| model);
                        let error = model.map(|model| file.bad_model(model, "script", reason));
                        self.problems.extend(error.map(FileProblem::error));
                    }
                    None => played.push((tool, place)),
                }
            }
        }
        let played: Vec<ToolName> = played.into_iter().map(|(tool, _)| tool).collect();
        let is_fetch = |tool: &ToolName| tool.as_str() == FETCH;
        if !played.iter().chain(own.tool_names()).any(is_fetch) {
            self.problems.extend(file.fetching_nothing().into_iter().map(FileProblem::warning));
        }
        let known: Vec<ToolName> = everywhere().chain(played).chain(own.tool_names().cloned()).collect();
        self.problems.extend(command_tools::taken(&file, &known).into_iter().map(FileProblem::error));
        // Which tools a server has is known when it runs.
        let served = file.tools().filter(|(_, tool)| file.may_be_served(tool)).map(|(_, tool)| tool.clone());
        let known: Vec<ToolName> =
            known.into_iter().chain(file.command_tools.keys().cloned()).chain(served).collect();
        // Which tools a script has that cannot be read is unknown.
        let is_known = scripts.iter().all(|(_, _, script)| script.is_some());
        let unknown = file.tools().filter(|(_, tool)| is_known && !known.contains(tool));
        let errors = unknown.map(|(role, tool)| FileProblem::error(file.unknown_tool(role, tool, &known)));
        self.problems.extend(errors.collect::<Vec<_>>());
        self.mentions(&file, &scripts, &parts, &known);
        for (name, input) in &file.inputs {
            if let Some(variable) = input.env.as_deref().filter(|variable| providers::is_usual_key(variable))
            {
                let message =
                    format!("input `{name}` would put the key in {variable} into prompts and the journal");
                let error = file
                    .bad_key("inputs", message)
                    .with_help("name the variable of the key in `key_env` instead");
                self.problems.push(FileProblem::error(error));
            }
        }
        self.keys_in_boxes(&file);
        if scripts.iter().any(|(_, _, script)| script.is_none()) || self.is_wrong() {
            return Ok(());
        }
        let scripts: Vec<Text> = scripts.into_iter().map(|(_, text, _)| text).collect();
        // A program is started as commands are, in the same boxes.
        let starts_programs = file.definition.programs().next().is_some();
        let is_named = |tool: &ToolName| {
            (starts_programs && *tool == Commands::tool_name())
                || file.tools().any(|(_, named)| named == tool)
        };
        let (drivers, boxed) = with_tools(drivers(&scripts, &parts)?, home, &file.command_tools, is_named);
        let (drivers, errors) = providers::with_models(drivers, &file, &called, user)?;
        let drivers = own.over(drivers);
        self.can_start = errors.is_empty();
        self.lacks_only_keys =
            !self.can_start && errors.iter().all(|error| matches!(error, providers::NoModel::Key(_)));
        let severity = |error: &providers::NoModel| match (keys, error) {
            (Keys::Optional, providers::NoModel::Key(_)) => Severity::Note,
            (Keys::Needed, _) | (Keys::Optional, providers::NoModel::Setting(_)) => Severity::Error,
        };
        let problems =
            errors.into_iter().map(|error| FileProblem { severity: severity(&error), what: error.into() });
        self.problems.extend(problems);
        if !self.is_wrong() {
            self.source = Some(TreeSource { file, text, scripts, parts, called, drivers, boxed });
        }
        Ok(())
    }

    /// Refuses keys of providers in the boxes of commands.
    fn keys_in_boxes(&mut self, file: &TreeFile) {
        let of_model = |model: &ModelSource| match model {
            ModelSource::Provider(source) => providers::variables(source).map(str::to_owned).collect(),
            ModelSource::Scripted { .. } => Vec::new(),
        };
        let keys: Vec<String> = file.models.values().flat_map(of_model).collect();
        for (role, settings) in &file.definition.roles {
            let names = settings.sandbox().env;
            let key = names.iter().find(|name| providers::is_usual_key(name) || keys.contains(name));
            if let Some(key) = key {
                let message = format!("the box of `{role}` would give the key in {key} to commands");
                let error = file.bad_agent(role, "box", message);
                self.problems
                    .push(FileProblem::error(error.with_help("a command never gets a provider's key")));
            }
        }
        let is_key = |name: &str| providers::is_usual_key(name) || keys.iter().any(|key| key == name);
        self.problems.extend(servers::with_keys(file, is_key).into_iter().map(FileProblem::error));
    }

    /// Warns of roles and tools that scripts name but the file does not define, and of roles that a script does not answer.
    fn mentions(
        &mut self,
        file: &TreeFile,
        scripts: &[(PathBuf, Text, Option<Script>)],
        parts: &Parts,
        tools: &[ToolName],
    ) {
        let roles = &file.definition.roles;
        for (path, _, script) in scripts {
            for mention in script.iter().flat_map(Script::mentions) {
                let Some((message, help)) = unfit(&mention, roles, tools) else { continue };
                let (name, place) = (path.display().to_string(), (mention.line, mention.column));
                let error = FileError::at(&name, place, message).with_help(help);
                self.problems.push(FileProblem::warning(error));
            }
        }
        for (name, role) in roles {
            let part = parts.iter().find(|(model, _)| *model == role.model);
            let script = part.and_then(|(_, place)| scripts.get(*place));
            if let Some((path, _, Some(script))) = script
                && !script.answers(name)
            {
                let message = format!("{} has no rule for agent `{name}`", path.display());
                let error = file.bad_agent(name, "model", message);
                // The script may be in another format than the tree file.
                let help = "add a rule whose `when.agent` is its name, or a last one without `when`";
                self.problems.push(FileProblem::warning(error.with_help(help)));
            }
        }
    }
}

/// What is wrong with a name in a script, and what to do.
fn unfit(
    mention: &ScriptMention<'_>,
    roles: &ByName<RoleName, Role>,
    tools: &[ToolName],
) -> Option<(String, String)> {
    let name = mention.name;
    match mention.what {
        Mentioned::Role if roles.contains_key(name) => None,
        Mentioned::Role => {
            let help = nearest::help(name, roles.keys().map(RoleName::as_str), "agents");
            Some((format!("unknown agent `{name}`"), help))
        }
        Mentioned::Tool if !tools.iter().any(|tool| tool.as_str() == name) => {
            let help = nearest::help(name, tools.iter().map(ToolName::as_str), "tools");
            Some((format!("unknown tool `{name}`"), help))
        }
        Mentioned::Tool => {
            let by = mention.by.filter(|by| roles.get(*by).is_some_and(|role| !role.caps.tools.has(name)))?;
            Some((format!("`{by}` may not call `{name}`"), format!("add it to the `tools` of `{by}`")))
        }
    }
}

fn in_script(error: ScriptError) -> FileError {
    match error {
        ScriptError::TooLarge { name, bytes } => {
            let message = format!("the script has {bytes} bytes, at most {SCRIPT_BYTES_MAX}");
            FileError::at(&name, (1, 1), message)
        }
        ScriptError::Wrong { name, line, column, problem } => FileError::at(&name, (line, column), problem),
    }
}

fn in_two_scripts(tool: &ToolName, one: &str, other: &str) -> String {
    format!("tool `{tool}` is in {one} and in {other}: keep one of them")
}

/// Reads a tree file alone.
pub fn read_tree(path: &Path, home: &Path) -> Result<(TreeFile, Text), SourceError> {
    let text = tree_text(path)?;
    match TreeFile::parse_whole(&text.name, &text.text, &Catalog::default()) {
        Ok(file) => Ok((file, text)),
        Err(FileErrors { errors }) => {
            let problems = errors.into_iter().map(FileProblem::error).collect();
            Err(TreeFileProblems::new(home, path, problems, ProblemsKind::InFile).into())
        }
    }
}

fn tree_text(path: &Path) -> Result<Text, FileFault> {
    let text = text_file::read(path, FILE_BYTES_MAX as u64, Links::Follow)
        .map_err(FileFault::when(FileAction::Read, path))?;
    Ok(Text { name: path.display().to_string(), text })
}

/// The models and tools of these scripts.
pub fn drivers(scripts: &[Text], parts: &Parts) -> Result<Drivers, SourceDriversError> {
    let mut drivers = Drivers::new();
    let mut read = Vec::with_capacity(scripts.len());
    let mut homes: Vec<(ToolName, &str)> = Vec::new();
    for Text { name, text } in scripts {
        let script = Script::parse(name, text)?;
        for (tool, driver) in script.tools() {
            if let Some((_, other)) = homes.iter().find(|(known, _)| *known == tool) {
                return Err(SourceDriversError::TwoScripts(in_two_scripts(&tool, other, name)));
            }
            homes.push((tool.clone(), name));
            drivers = drivers.with_tool(tool, Arc::new(driver));
        }
        read.push(script);
    }
    for (model, place) in parts {
        let script = read.get(*place).ok_or_else(|| SourceDriversError::NoScript(model.clone()))?;
        drivers = drivers.with_model(model.clone(), Arc::new(script.model()));
    }
    Ok(drivers)
}

impl TreeSource {
    /// The same with the files of its agents in another home.
    #[must_use]
    pub fn in_home(self, home: &Path) -> Self {
        Self { drivers: self.drivers.with_workspaces(Workspaces::root(home)), ..self }
    }
}

/// Adds the requested tools of ours that no script provides, and those of the tree file. What starts processes has to be
/// prepared before the tree starts.
pub fn with_tools(
    drivers: Drivers,
    home: &Path,
    tools: &BTreeMap<ToolName, CommandTool>,
    is_wanted: impl Fn(&ToolName) -> bool,
) -> (Drivers, BoxedTools) {
    let hidden = hidden_folders(home);
    let files = Files::default().hiding(hidden.clone());
    let drivers = drivers.with_workspaces(Workspaces::root(home)).with_folder_filler(Arc::new(files.clone()));
    let guard = can_guard_boxes().then(|| OURSELVES.into());
    let drivers = drivers.with_tool_source(Arc::new(WorkingCopyGate::new(guard)));
    let is_missing = |drivers: &Drivers, name: &ToolName| {
        is_wanted(name) && !drivers.tool_names().any(|played| played == name)
    };
    let drivers = FileTool::ALL.into_iter().fold(drivers, |drivers, tool| {
        let name = tool.name();
        if is_missing(&drivers, &name) { drivers.with_tool(name, files.tool(tool)) } else { drivers }
    });
    let fetch = Fetch::tool_name();
    let drivers = match is_missing(&drivers, &fetch) {
        true => drivers.with_tool(fetch, Fetch::default().tool()),
        false => drivers,
    };
    let servers = ToolServers::new(OURSELVES.into()).hiding(hidden.clone()).knowing(Arc::new(UserKnownTools));
    let servers = servers.with_logins(Arc::new(UserLogins));
    let servers = match packages() {
        Some(packages) => servers.with_packages(PackageCache::new(packages)),
        None => servers,
    };
    let drivers = drivers.with_tool_source(Arc::new(CheckedServers(servers.clone())));
    let name = Commands::tool_name();
    let runs_commands = is_missing(&drivers, &name);
    if !runs_commands && tools.is_empty() {
        return (drivers, BoxedTools { commands: None, servers });
    }
    let commands = Commands::new(OURSELVES.into()).hiding(hidden);
    let drivers = if runs_commands { drivers.with_tool(name, commands.tool()) } else { drivers };
    let drivers = command_tools::with_command_tools(drivers, &commands, tools);
    let drivers = drivers.with_tool_source(Arc::new(commands.clone()));
    let drivers = drivers.with_program_starter(Arc::new(commands.clone()));
    (drivers, BoxedTools { commands: Some(commands), servers })
}

/// Tools that exist in every tree.
fn everywhere() -> impl Iterator<Item = ToolName> {
    let builtin = Builtin::ALL.into_iter().filter_map(|builtin| builtin.as_str().parse().ok());
    builtin
        .chain(FileTool::ALL.into_iter().map(FileTool::name))
        .chain([Commands::tool_name(), Fetch::tool_name()])
}

/// The name of a file without its folder.
pub fn plain(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Reads a script that a tree file in this folder names.
pub fn read_script(folder: &Path, script: &str, allowed: Scripts) -> Result<String, UnreadScript> {
    match allowed {
        Scripts::Anywhere => {
            Ok(text_file::read(&folder.join(script), SCRIPT_BYTES_MAX as u64, Links::Follow)?)
        }
        Scripts::Below { allow } => {
            Ok(text_file::read_opened(open_below(folder, script, allow)?, SCRIPT_BYTES_MAX as u64)?)
        }
    }
}

/// Opens a plain file in a folder or below it, even through links.
fn open_below(folder: &Path, name: &str, allow: &'static str) -> Result<File, UnreadScript> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let folder = Dir::open_ambient_dir(folder, ambient_authority())?;
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(UNBLOCKED);
    match folder.open_with(name, &options) {
        Ok(file) => Ok(private_files::checked(file.into_std())?),
        Err(error) if leads_out(&error) => Err(UnreadScript::Outside { allow }),
        Err(error) => Err(private_files::explained(error, Links::Follow).into()),
    }
}

/// Whether a path was refused because it leaves its folder. There is no errno for that.
fn leads_out(error: &io::Error) -> bool {
    error.kind() == ErrorKind::PermissionDenied && error.raw_os_error().is_none()
}
