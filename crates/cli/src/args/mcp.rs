//! The command line of `spinney mcp`.

use std::path::PathBuf;

use clap::{Args as Group, Subcommand};

use super::running::Given;

#[derive(Debug, Subcommand)]
pub(crate) enum Mcp {
    /// List the servers of a tree file, with their tools
    List(ServersOfFile),
    /// Install the servers of a tree file that npx or uvx would download
    Install(McpInstall),
    /// Log in at a server that is reached by URL, in a browser
    Login(McpLogin),
    /// Call a tool once and print what the agent would read
    Try(McpTry),
}

#[derive(Debug, Group)]
pub(crate) struct ServersOfFile {
    /// The tree file: .yaml, .json or .toml
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) given: Given,
}

#[derive(Debug, Group)]
pub(crate) struct McpTry {
    #[command(flatten)]
    pub(crate) servers: ServersOfFile,
    /// The tool, such as server__tool
    pub(crate) tool: String,
    /// Its arguments, a JSON object
    #[arg(default_value = "{}", value_name = "JSON")]
    pub(crate) arguments: String,
}

#[derive(Debug, Group)]
pub(crate) struct McpInstall {
    /// The tree file: .yaml, .json or .toml
    pub(crate) file: PathBuf,
    /// Install this package at this version without a question; may be repeated
    #[arg(long, value_name = "NAME@VERSION")]
    pub(crate) allow_package: Vec<String>,
    /// Run the scripts that this package has for its installation, in the box; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_scripts: Vec<String>,
}

#[derive(Debug, Group)]
pub(crate) struct McpLogin {
    /// The URL of the server, or its name in the tree file
    pub(crate) server: String,
    /// The tree file that has the server
    pub(crate) file: Option<PathBuf>,
    /// The id of a client that was registered with the server before
    #[arg(long, value_name = "ID")]
    pub(crate) client_id: Option<String>,
    /// Remove the login instead
    #[arg(long)]
    pub(crate) remove: bool,
}
