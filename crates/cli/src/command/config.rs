//! `spinney config`: shows the user's configuration, with what a project's file here lowers, and changes it.

use std::path::Path;

use anyhow::{Result, anyhow, bail};
use spinney_host::defaults::Defaults;
use spinney_host::explain::{ExplainedSetting, ExplainedSettings};
use spinney_host::home::inside::is_inside_any;
use spinney_host::user::configuration::{self, Configuration};
use spinney_host::user::draft::Saved;
use spinney_host::user::settings::Setting;
use spinney_terminal::paint::Row;
use spinney_terminal::table::{Column, Table};
use spinney_terminal::{Terminal, out};

use crate::args::{self, ConfigCommand, ConfigGet, ConfigKey, ConfigValues};
use crate::exit::Exit;
use crate::explain::NOTHING;
use crate::hint;

pub(super) fn config(args: &args::Config, terminal: Terminal) -> Result<Exit> {
    let changes = !matches!(args.command, None | Some(ConfigCommand::Get(_) | ConfigCommand::Path));
    if changes && is_inside_any() {
        bail!(
            "this process runs inside a run of `exec` and cannot change your configuration: use another terminal"
        );
    }
    match &args.command {
        None => show(args.json, terminal)?,
        Some(ConfigCommand::Get(args)) => get(args)?,
        Some(ConfigCommand::Set(ConfigValues { key, values })) => {
            let setting: Setting = key.parse()?;
            print(&setting.set(values)?, &setting)?;
        }
        Some(ConfigCommand::Add(ConfigValues { key, values })) => {
            let setting: Setting = key.parse()?;
            print(&setting.add(values)?, &setting)?;
        }
        Some(ConfigCommand::Remove(ConfigValues { key, values })) => {
            let setting: Setting = key.parse()?;
            print(&setting.remove(values)?, &setting)?;
        }
        Some(ConfigCommand::Unset(ConfigKey { key })) => {
            let setting: Setting = key.parse()?;
            print(&setting.unset()?, &setting)?;
        }
        Some(ConfigCommand::Path) => {
            let path = configuration::path().ok_or_else(|| {
                anyhow!("there is no folder for a configuration: set HOME or XDG_CONFIG_HOME")
            })?;
            out::verbatim(&path.display().to_string())?;
        }
    }
    Ok(Exit::Completed)
}

/// Prints a setting as it is now.
fn print(Saved { path, is_changed }: &Saved, setting: &Setting) -> Result<()> {
    let values = setting.values(&Configuration::read()?);
    for (name, words) in &values {
        out::line(&format!("{name} {}", words.join(" ")))?;
    }
    if values.is_empty() {
        out::line(&format!("{} is not set", setting.name()))?;
    }
    let what = if *is_changed { "saved in" } else { "nothing changed in" };
    out::note(&format!("{what} {}", path.display()));
    Ok(())
}

fn get(ConfigGet { key, json }: &ConfigGet) -> Result<()> {
    let setting: Setting = key.parse()?;
    let configuration = Configuration::read()?;
    if *json {
        return Ok(out::json(&setting.json(&configuration).to_string())?);
    }
    let values = setting.values(&configuration);
    if values.is_empty() {
        out::note(&format!("`{}` is not set", setting.name()));
    }
    for (name, words) in values {
        let text = words.join(" ");
        // A setting with others below it names each.
        out::verbatim(&if name == setting.name() { text } else { format!("{name} {text}") })?;
    }
    Ok(())
}

fn show(is_json: bool, terminal: Terminal) -> Result<()> {
    let defaults = Defaults::in_folder(Path::new("."))?;
    let explained = ExplainedSettings::new(&defaults, "run: halt, exec: shrink");
    if is_json {
        return Ok(out::json(&serde_json::to_string(&explained)?)?);
    }
    let mut table = Table::new(vec![Column::left("SETTING"), Column::left("VALUE"), Column::left("FROM")]);
    for ExplainedSetting { name, value, source, .. } in &explained.settings {
        table.add([name, value.as_deref().unwrap_or(NOTHING), &source.to_string()].map(Row::plain).to_vec());
    }
    table.write(terminal)?;
    match explained.file {
        Some(path) if Path::new(&path).exists() => out::note(&format!("{} is {path}", configuration::FILE)),
        Some(path) => {
            let set = hint::config(&["set", "budget.cost_usd", "5"]);
            out::note(&format!("{path} does not exist yet; `{set}` creates it"));
        }
        None => out::note("there is no folder for a configuration: set HOME or XDG_CONFIG_HOME"),
    }
    if let Some(project) = explained.project {
        out::note(&format!("{} is {project}; it can only lower budgets", spinney_host::project::FILE));
    }
    Ok(())
}
