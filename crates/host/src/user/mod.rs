//! What belongs to the user and not to a project: their configuration, the variables that it names, and the folders of
//! both and of what we remember for them.

pub mod allowed_host;
pub mod box_allowance;
pub mod configuration;
pub mod draft;
pub mod env_file;
pub mod folders;
pub(crate) mod known_tools;
pub mod logins;
pub mod low_policy;
pub mod settings;
pub mod state_files;
pub mod toml_text;
pub mod trusted_file;
pub mod variables;
