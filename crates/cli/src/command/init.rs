//! `spinney init`: writes a template, such as a small tree file with its script, which runs at once and without an
//! account. Asks nothing and overwrites nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use serde_json::json;
use spinney_drivers::providers::usual_key_env;
use spinney_host::project::import::{Import, NotCarried};
use spinney_host::project::new_files::{NewFiles, SchemaCopy, TREE_FILE, TreeTexts, script_of};
use spinney_host::project::template::{self, FoundTemplate, TemplateContent};
use spinney_host::project::{self, ProjectFile, scenario};
use spinney_host::tree_file::source::plain;
use spinney_host::{home, shell_word};
use spinney_terminal::paint::width_of;
use spinney_terminal::{Terminal, out};
use spinney_view::wording::counted;

use crate::exit::Exit;
use crate::{args, hint};

pub(super) fn init(home: &Path, args: &args::Init, terminal: Terminal) -> Result<Exit> {
    if let Some(from) = &args.from {
        return init_from(home, from, args.path.as_deref(), terminal);
    }
    let project = ProjectFile::find(Path::new("."))?;
    if args.list {
        let of_project = project.as_ref().map(|project| project.templates.clone()).unwrap_or_default();
        return list(home, &of_project, args.json, terminal);
    }
    let (name, path) = match (&args.template, args.path.as_deref()) {
        (None, Some(path)) if let Some(name) = template_name(path) => (Some(name), None),
        (template, path) => (template.as_deref(), path),
    };
    match template::find(name, project.as_ref())? {
        FoundTemplate::Builtin(TemplateContent::Tree { stem, tree, script, setting }) => {
            init_tree(home, args, path, terminal, &TreeTexts { stem, tree, script }, *setting)
        }
        FoundTemplate::Builtin(TemplateContent::Project(text)) => {
            init_project(home, args, path, terminal, text)
        }
        FoundTemplate::OfProject(files) => init_copy(home, args, path, terminal, files),
    }
}

/// A word that can only mean a template: the name of one, or what looks like the number of a scenario. A folder of that
/// name is written `./s18`.
fn template_name(path: &Path) -> Option<&str> {
    let word = path.to_str().filter(|word| !word.contains(['/', '.']))?;
    (template::builtin(word).is_some() || scenario::number(word).is_some()).then_some(word)
}

fn list(home: &Path, of_project: &BTreeMap<String, String>, json: bool, terminal: Terminal) -> Result<Exit> {
    let templates = template::listed(of_project);
    let width = templates.iter().map(|(name, _)| width_of(name)).max().unwrap_or_default();
    for (name, about) in templates {
        match json {
            true => out::line(&json!({ "template": name, "about": about }).to_string())?,
            false => out::line(&format!("{name:<width$}  {about}"))?,
        }
    }
    if !json {
        out::line("")?;
        say_next(
            &[
                (hint::command(home, &["init", "research"]), "write one of them here"),
                (hint::command(home, &["init", "s18"]), "a scenario, by its number or its name"),
                (hint::command(home, &["init", "--template", "s18", "guests"]), "into a folder"),
            ],
            terminal,
        )?;
    }
    Ok(Exit::Completed)
}

fn init_tree(
    home: &Path,
    args: &args::Init,
    path: Option<&Path>,
    terminal: Terminal,
    texts: &TreeTexts,
    setting: Option<&str>,
) -> Result<Exit> {
    let file = named(path, texts.stem)?;
    let provider = args.provider.map(args::InitProvider::provider);
    let schema = if args.schema { SchemaCopy::With } else { SchemaCopy::Without };
    write(&NewFiles::of_tree(&file, texts, provider, schema)?)?;
    let name = file.display().to_string();
    let mut next = vec![
        (hint::command(home, &["check", &name]), "what it looks like, and the most it can spend"),
        (hint::command(home, &["run", &name]), "run it"),
    ];
    if let Some(setting) = setting {
        next.push((hint::command(home, &["run", &name, "--set", setting]), "with another topic"));
    }
    say_next(&next, terminal)?;
    match provider.map(|provider| (provider, usual_key_env(provider))) {
        Some((_, Some(variable))) => {
            let script = plain(&script_of(&file));
            out::line(&format!("without {variable} in the environment, its answers come from {script}"))?;
        }
        Some((provider, None)) => {
            out::line(&format!("{} must be running on this machine", provider.as_str()))?;
        }
        None => out::line("its answers come from the script; name a `provider` in the file to call a model")?,
    }
    Ok(Exit::Completed)
}

/// Writes a tree file from what a folder says to other programs, and says what is not in it.
fn init_from(home: &Path, from: &Path, path: Option<&Path>, terminal: Terminal) -> Result<Exit> {
    let file = named(path, "tree")?;
    let Import { tree, left_out, agents, servers } = Import::read(from, &file)?;
    write(&NewFiles::one(&file, tree.into_bytes()))?;
    let (agents, servers) = (counted(agents as u64, "agent"), counted(servers as u64, "server"));
    out::line(&format!("{agents} and {servers} of tools, each line with its origin"))?;
    if !left_out.is_empty() {
        out::line("not carried over:")?;
    }
    for NotCarried { from, what } in &left_out {
        out::line(&format!("  {from}: {what}"))?;
    }
    let name = file.display().to_string();
    let next = [
        (hint::command(home, &["check", &name]), "what it looks like, and the most it can spend"),
        (hint::command(home, &["run", &name, "--goal", "…"]), "run it"),
    ];
    say_next(&next, terminal)?;
    Ok(Exit::Completed)
}

fn init_project(
    home: &Path,
    args: &args::Init,
    path: Option<&Path>,
    terminal: Terminal,
    text: &str,
) -> Result<Exit> {
    let folder = only_a_folder(args, path)?;
    write(&NewFiles::in_folder(folder, [(PathBuf::from(project::FILE), text.into())]))?;
    // The budget holds for what is started in its folder, and commands are pasted in this one.
    let is_here = folder.as_os_str().is_empty() || folder == Path::new(".");
    let home = if is_here || home == home::nearest() { home.to_owned() } else { std::path::absolute(home)? };
    let go_there = if is_here { String::new() } else { format!("cd {} && ", shell_word::of_path(folder)) };
    let command = |words: &[&str]| format!("{go_there}{}", hint::command(&home, words));
    let next = [
        (command(&["exec", "--", "claude"]), "Claude Code under this budget"),
        (command(&["exec", "--", "codex"]), "Codex"),
        (command(&["exec", "--explain", "--", "claude"]), "which budgets apply, and why"),
    ];
    say_next(&next, terminal)?;
    Ok(Exit::Completed)
}

/// Copies a template of the project.
fn init_copy(
    home: &Path,
    args: &args::Init,
    path: Option<&Path>,
    terminal: Terminal,
    files: Vec<(PathBuf, Vec<u8>)>,
) -> Result<Exit> {
    let folder = only_a_folder(args, path)?;
    let files = NewFiles::in_folder(folder, files);
    write(&files)?;
    let file = folder.join(TREE_FILE);
    if files.paths().any(|path| path == file) {
        let name = file.display().to_string();
        let next = [
            (hint::command(home, &["check", &name]), "what it looks like, and where it sends anything"),
            (hint::command(home, &["run", &name]), "run it"),
        ];
        say_next(&next, terminal)?;
    }
    Ok(Exit::Completed)
}

/// The folder to write into, for templates whose files have fixed names and models.
fn only_a_folder<'args>(args: &args::Init, path: Option<&'args Path>) -> Result<&'args Path> {
    let path = path.unwrap_or(Path::new(""));
    if matches!(path.extension().and_then(|ending| ending.to_str()), Some("yaml" | "yml" | "json" | "toml")) {
        bail!("the files of this template have fixed names: name a folder, not {}", path.display());
    }
    if args.provider.is_some() || args.schema {
        bail!("--provider and --schema only work with built-in templates");
    }
    Ok(path)
}

fn write(files: &NewFiles) -> Result<()> {
    files.write()?;
    let names: Vec<String> = files.paths().map(|path| path.display().to_string()).collect();
    Ok(out::line(&format!("wrote {}", names.join(", ")))?)
}

/// Commands to continue with, and what they are for.
fn say_next(next: &[(String, &str)], terminal: Terminal) -> Result<()> {
    let width = next.iter().map(|(command, _)| width_of(command)).max().unwrap_or_default();
    let longest = next.iter().map(|(_, what)| width + what.len() + 4).max().unwrap_or_default();
    let fits = terminal.width.is_none_or(|columns| longest <= columns);
    for (command, what) in next {
        // A command that is broken over two lines cannot be pasted.
        let line =
            if fits { format!("  {command:<width$}  {what}") } else { format!("  {command}\n      {what}") };
        out::line(&line)?;
    }
    Ok(())
}

/// A file, or a folder that gets one.
fn named(path: Option<&Path>, stem: &str) -> Result<PathBuf> {
    let path = path.unwrap_or(Path::new(""));
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("yaml" | "yml") => Ok(path.to_owned()),
        Some(ending @ ("json" | "toml")) => {
            bail!("`init` writes YAML, not {ending}: end the name in .yaml")
        }
        Some(_) | None => Ok(path.join(format!("{stem}.yaml"))),
    }
}
