//! The command line of `spinney config`.

use clap::{Args as Group, Subcommand};

#[derive(Debug, Group)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Config {
    #[command(subcommand)]
    pub(crate) command: Option<ConfigCommand>,
    /// Write one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print the value of a setting, in the form that `set` and `add` accept
    Get(ConfigGet),
    /// Set the value of a setting
    Set(ConfigValues),
    /// Add to a list: allow_hosts HOST…, env_files FILE…, allow_box WHAT…, allow_field PROGRAM NAME…
    Add(ConfigValues),
    /// Remove from a list
    Remove(ConfigValues),
    /// Remove a setting
    Unset(ConfigKey),
    /// Print the path of the configuration file
    Path,
}

#[derive(Debug, Group)]
pub(crate) struct ConfigGet {
    /// The setting, such as budget.cost_usd
    pub(crate) key: String,
    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Group)]
pub(crate) struct ConfigKey {
    /// The setting, such as budget.cost_usd
    pub(crate) key: String,
}

#[derive(Debug, Group)]
pub(crate) struct ConfigValues {
    /// The setting, such as budget.cost_usd
    pub(crate) key: String,
    /// The value; write `--` before one that begins with a dash
    #[arg(required = true, value_name = "VALUE")]
    pub(crate) values: Vec<String>,
}
