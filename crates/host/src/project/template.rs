//! What a new project can begin with: the templates of this binary, and those of a project, which are folders that its
//! `spinney.yaml` names.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

use spinney_kernel::primitives::nearest;

use super::scenario::SCENARIOS;
use super::{ProjectFile, scenario};
use crate::system::private_files::{self, Links};
use crate::text_file::UnreadText;

/// A folder is copied whole, so it must be small.
const FILES_MAX: usize = 32;
const BYTES_MAX: u64 = 1024 * 1024;

/// Why a project's template cannot be copied.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    /// Its folder cannot be read.
    #[error("cannot read the template in {}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The cause.
        #[source]
        why: io::Error,
    },
    /// A file of it cannot be read.
    #[error("cannot read {} of the template", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The cause.
        #[source]
        why: UnreadText,
    },
    /// It is not what a template may be.
    #[error("the template in {} {why}", folder.display())]
    Unfit {
        /// The folder.
        folder: PathBuf,
        /// What it is or has.
        why: String,
    },
    /// No template has this name.
    #[error("unknown template `{}`: {help}", name.escape_debug())]
    Unknown {
        /// The name.
        name: String,
        /// The nearest one, or those that there are.
        help: String,
    },
}

/// A template that was asked for.
pub enum FoundTemplate {
    /// One of this binary.
    Builtin(&'static TemplateContent),
    /// One of the project: its files by their names.
    OfProject(Vec<(PathBuf, Vec<u8>)>),
}

/// Finds a template by its name; the default one without.
pub fn find(name: Option<&str>, project: Option<&ProjectFile>) -> Result<FoundTemplate, TemplateError> {
    let name = name.unwrap_or(TEMPLATES[0].name);
    if let Some(template) = builtin(name) {
        return Ok(FoundTemplate::Builtin(&template.content));
    }
    let no_templates = BTreeMap::new();
    let of_project = project.map_or(&no_templates, |project| &project.templates);
    match project.zip(of_project.get(name)) {
        Some((project, folder)) => Ok(FoundTemplate::OfProject(self::of_project(project, folder)?)),
        None => {
            let names: Vec<String> = listed(of_project).into_iter().map(|(name, _)| name).collect();
            let numbers = names.iter().filter_map(|name| scenario::number(name));
            let known = names.iter().map(String::as_str).chain(numbers);
            Err(TemplateError::Unknown {
                name: name.to_owned(),
                help: nearest::help(name, known, "templates"),
            })
        }
    }
}

/// A template of this binary; a scenario also by its number.
pub fn builtin(name: &str) -> Option<&'static BuiltinTemplate> {
    let is_named = |template: &&BuiltinTemplate| {
        template.name == name || scenario::number(template.name).is_some_and(|number| number == name)
    };
    TEMPLATES.iter().chain(SCENARIOS).find(is_named)
}

/// A template of this binary.
pub struct BuiltinTemplate {
    /// By which it is chosen.
    pub name: &'static str,
    /// What it shows, in a line.
    pub about: &'static str,
    /// What it writes.
    pub content: TemplateContent,
}

/// What a template writes.
pub enum TemplateContent {
    /// A tree file and its script.
    Tree {
        /// The name of its files, without their endings.
        stem: &'static str,
        /// The tree file.
        tree: &'static str,
        /// The script.
        script: &'static str,
        /// A `--set` that is worth a try.
        setting: Option<&'static str>,
    },
    /// The file of a project, for what `exec` runs in it.
    Project(&'static str),
}

macro_rules! tree {
    ($name:literal, $about:literal, $folder:literal, $stem:literal, $setting:expr) => {
        BuiltinTemplate {
            name: $name,
            about: $about,
            content: TemplateContent::Tree {
                stem: $stem,
                tree: include_str!(concat!("../../", $folder, "/", $stem, ".yaml")),
                script: include_str!(concat!("../../", $folder, "/", $stem, ".script.yaml")),
                setting: $setting,
            },
        }
    };
}

/// The first one is the default.
pub static TEMPLATES: [BuiltinTemplate; 5] = [
    tree!("hello", "an agent and its helper", "templates/hello", "tree", Some("topic=lighthouses")),
    tree!(
        "research",
        "a lead, and researchers who work at the same time",
        "../../examples",
        "research-team",
        None
    ),
    tree!("pipeline", "an agent for each file, and one that summarises", "templates/pipeline", "tree", None),
    tree!(
        "panel",
        "three reviewers who vote on a diff, and an author who changes it until it passes",
        "../../examples",
        "review-panel",
        None
    ),
    BuiltinTemplate {
        name: "exec",
        about: "a budget around a program such as Claude Code or Codex",
        content: TemplateContent::Project(include_str!("../../templates/exec/spinney.yaml")),
    },
];

/// The files of a project's template, by their names in its folder.
fn of_project(project: &ProjectFile, folder: &str) -> Result<Vec<(PathBuf, Vec<u8>)>, TemplateError> {
    let root = project.path.parent().unwrap_or(Path::new("/"));
    let folder = root.join(folder);
    let unread = |why| TemplateError::Folder { folder: folder.clone(), why };
    let unfit = |why: String| TemplateError::Unfit { folder: folder.clone(), why };
    let real = folder.canonicalize().map_err(unread)?;
    if !real.starts_with(root.canonicalize().map_err(unread)?) {
        return Err(unfit("is outside its project: nothing was read".to_owned()));
    }
    let mut files = Vec::new();
    let mut left = BYTES_MAX;
    for entry in fs::read_dir(&real).map_err(unread)? {
        let entry = entry.map_err(unread)?;
        if files.len() == FILES_MAX {
            return Err(unfit(format!("has more than {FILES_MAX} files")));
        }
        let name = PathBuf::from(entry.file_name());
        if name.to_str().is_none_or(|name| name.contains(char::is_control)) {
            return Err(unfit(format!("has a file with an unreadable name: {name:?}")));
        }
        let mut bytes = Vec::new();
        private_files::plain(&entry.path(), Links::Refuse)
            .and_then(|file| file.take(left + 1).read_to_end(&mut bytes))
            .map_err(|why| TemplateError::File { file: entry.path(), why: why.into() })?;
        left = left
            .checked_sub(bytes.len() as u64)
            .ok_or_else(|| unfit(format!("has more than {BYTES_MAX} bytes")))?;
        files.push((name, bytes));
    }
    if files.is_empty() {
        return Err(unfit("is empty".to_owned()));
    }
    files.sort();
    Ok(files)
}

/// Why a project cannot have this template, if it cannot.
pub fn bad_template(name: &str, folder: &str) -> Option<String> {
    let is_name =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_';
    if name.is_empty() || name.len() > 64 || !name.bytes().all(is_name) {
        return Some(format!(
            "`{}` is not a template name: use lower-case letters, digits, `-` and `_`, at most 64 of them",
            name.escape_debug()
        ));
    }
    if builtin(name).is_some() {
        return Some(format!("`{name}` is a built-in template: use another name"));
    }
    let inside =
        Path::new(folder).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    (folder.is_empty() || !inside).then(|| {
        format!(
            "the template `{name}` is not a folder of this project: write its path from here, without `..`"
        )
    })
}

/// The names and what there is to say about them: the templates of the binary, those of the project, the scenarios.
pub fn listed(of_project: &BTreeMap<String, String>) -> Vec<(String, String)> {
    let own = |template: &BuiltinTemplate| (template.name.to_owned(), template.about.to_owned());
    let project =
        of_project.iter().map(|(name, folder)| (name.clone(), format!("{folder}, of this project")));
    TEMPLATES.iter().map(own).chain(project).chain(SCENARIOS.iter().map(own)).collect()
}
