//! Reads a tree file and the scripts it names from disk, each within a size limit.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};
use rustix::fs::OFlags;
use spinney::Drivers;
use spinney::tree_file::{FILE_BYTES_MAX, ModelSource, TreeFile};
use spinney_drivers::files::{FileTool, Files};
use spinney_drivers::scripted::{SCRIPT_BYTES_MAX, Script};
use spinney_kernel::definition::Builtin;
use spinney_kernel::words::{ModelName, ToolName};

use crate::private_files::{self, Links};
use crate::providers::{self, Catalog, Scripted};

#[derive(Clone, Debug)]
pub(crate) struct Text {
    /// Its name in messages.
    pub(crate) name: String,
    pub(crate) text: String,
}

/// The index of each model's script in the list of scripts.
pub(crate) type Parts = Vec<(ModelName, usize)>;

/// A tree file with everything it names.
pub(crate) struct Source {
    pub(crate) file: TreeFile,
    /// As it was read.
    pub(crate) text: Text,
    /// The scripts it names, each once.
    pub(crate) scripts: Vec<Text>,
    pub(crate) parts: Parts,
    /// The models that their providers answer.
    pub(crate) called: Vec<ModelName>,
    /// The models and tools that play them.
    pub(crate) drivers: Drivers,
}

impl Source {
    /// Which of its models answer from a file.
    pub(crate) fn scripted(&self) -> Scripted {
        Scripted::new(self.parts.iter().map(|(model, _)| model.clone()).collect(), &self.called)
    }
}

/// Where the scripts of a tree file may lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scripts {
    /// In its folder or below. A tree file may come from anywhere, so it must not choose which files are read.
    Below,
    /// Anywhere, because the user allowed it.
    Anywhere,
}

/// Reads a tree file and its scripts, and checks that every tool an agent names exists.
pub(crate) fn read(path: &Path, home: &Path, allowed: Scripts) -> Result<Source> {
    let (Text { name, text }, file) = parsed(path)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut found: Vec<(PathBuf, Text)> = Vec::new();
    let mut parts = Parts::new();
    let mut called = Vec::new();
    for (model, source) in &file.models {
        let script = match source {
            ModelSource::Scripted { script } => script,
            ModelSource::Provider(source) => match (providers::missing(source), &source.script) {
                (Some(_), Some(stand_in)) => stand_in,
                (Some(_), None) | (None, _) => {
                    called.push(model.clone());
                    continue;
                }
            },
        };
        let path = folder.join(script);
        let place = match found.iter().position(|(known, _)| *known == path) {
            Some(place) => place,
            None => {
                let text = read_script(folder, script, allowed).map_err(|error| {
                    file.bad_model(model, "script", format!("cannot read {}: {error:#}", path.display()))
                })?;
                // Errors show the whole path; the script's name excludes folders, because it is recorded in the
                // journal and folders mean nothing on another machine.
                Script::parse(&path.display().to_string(), &text)?;
                let name = plain(&path);
                found.push((path, Text { name, text }));
                found.len() - 1
            }
        };
        parts.push((model.clone(), place));
    }
    let scripts: Vec<Text> = found.into_iter().map(|(_, text)| text).collect();
    let is_named = |tool: &ToolName| file.tools().any(|(_, named)| named == tool);
    let drivers = with_files(drivers(&scripts, &parts)?, home, is_named);
    let drivers = providers::with_models(drivers, &file, &called)?;
    check_tools(&file, &drivers)?;
    Ok(Source { file, text: Text { name, text }, scripts, parts, called, drivers })
}

/// Reads a tree file alone.
pub(crate) fn read_tree(path: &Path) -> Result<TreeFile> {
    parsed(path).map(|(_, file)| file)
}

fn parsed(path: &Path) -> Result<(Text, TreeFile)> {
    let name = path.display().to_string();
    let text =
        read_text(path, FILE_BYTES_MAX, Links::Follow).with_context(|| format!("cannot read {name}"))?;
    let file = TreeFile::parse_with(&name, &text, &Catalog::default())?;
    Ok((Text { name, text }, file))
}

/// The models and tools of these scripts.
pub(crate) fn drivers(scripts: &[Text], parts: &Parts) -> Result<Drivers> {
    let mut drivers = Drivers::new();
    let mut read = Vec::with_capacity(scripts.len());
    let mut homes: Vec<(ToolName, &str)> = Vec::new();
    for Text { name, text } in scripts {
        let script = Script::parse(name, text)?;
        for (tool, driver) in script.tools() {
            if let Some((_, other)) = homes.iter().find(|(known, _)| *known == tool) {
                bail!("tool `{tool}` is in {other} and in {name}: keep one of them");
            }
            homes.push((tool.clone(), name));
            drivers = drivers.with_tool(tool, Arc::new(driver));
        }
        read.push(script);
    }
    for (model, place) in parts {
        let script = read.get(*place).ok_or_else(|| anyhow!("model `{model}` has no script"))?;
        drivers = drivers.with_model(model.clone(), Arc::new(script.model()));
    }
    Ok(drivers)
}

/// Adds the requested file tools that no script provides.
pub(crate) fn with_files(drivers: Drivers, home: &Path, is_wanted: impl Fn(&ToolName) -> bool) -> Drivers {
    let files = Files::of(home);
    FileTool::ALL.into_iter().fold(drivers, |drivers, tool| {
        let name = tool.name();
        let is_played = drivers.tool_names().any(|played| *played == name);
        if is_played || !is_wanted(&name) { drivers } else { drivers.with_tool(name, tool.at(&files)) }
    })
}

/// Tools that exist in every tree.
fn everywhere() -> impl Iterator<Item = ToolName> {
    let builtin = Builtin::ALL.into_iter().filter_map(|builtin| builtin.word().parse().ok());
    builtin.chain(FileTool::ALL.into_iter().map(FileTool::name))
}

fn check_tools(file: &TreeFile, drivers: &Drivers) -> Result<()> {
    let known: Vec<ToolName> = everywhere().chain(drivers.tool_names().cloned()).collect();
    match file.tools().find(|(_, tool)| !known.contains(tool)) {
        Some((role, tool)) => Err(file.unknown_tool(role, tool, &known).into()),
        None => Ok(()),
    }
}

pub(crate) fn plain(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Reads a script that a tree file in this folder names.
pub(crate) fn read_script(folder: &Path, script: &str, allowed: Scripts) -> Result<String> {
    match allowed {
        Scripts::Anywhere => read_text(&folder.join(script), SCRIPT_BYTES_MAX, Links::Follow),
        Scripts::Below => bounded(open_below(folder, script)?, SCRIPT_BYTES_MAX),
    }
}

/// Opens a plain file in a folder or below it, even through links.
fn open_below(folder: &Path, name: &str) -> Result<File> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let folder = Dir::open_ambient_dir(folder, ambient_authority())?;
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    match folder.open_with(name, &options) {
        Ok(file) => Ok(private_files::checked(file.into_std())?),
        Err(error) if leads_out(&error) => {
            bail!("it is outside the folder of the tree file: move it there, or use --allow-outside")
        }
        Err(error) => Err(private_files::explained(error, Links::Follow).into()),
    }
}

/// Whether a path was refused because it leaves its folder. There is no errno for that.
fn leads_out(error: &io::Error) -> bool {
    error.kind() == ErrorKind::PermissionDenied && error.raw_os_error().is_none()
}

pub(crate) fn read_text(path: &Path, bytes_max: usize, links: Links) -> Result<String> {
    bounded(private_files::plain(path, links)?, bytes_max)
}

fn bounded(file: File, bytes_max: usize) -> Result<String> {
    let about = file.metadata()?;
    if about.len() > bytes_max as u64 {
        bail!("it has {} bytes, more than {bytes_max}", about.len());
    }
    let mut bytes = Vec::new();
    file.take(bytes_max as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > bytes_max {
        bail!("it has more than {bytes_max} bytes");
    }
    String::from_utf8(bytes)
        .map_err(|error| anyhow!("it is not UTF-8 at byte {}", error.utf8_error().valid_up_to()))
}
