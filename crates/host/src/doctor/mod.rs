//! What works here: the home, the box of commands, the programs that agents can be, the keys of providers, and the models of a tree file, each tried with a small call. The
//! findings serialise for programs and have lines for people.

mod home;
mod programs;
mod report;
mod sandbox;
mod trial;

use std::path::Path;

use spinney_drivers::http::HostName;
use spinney_drivers::providers::usual_key_env;
use spinney_kernel::definition::ModelProvider;
use spinney_store::OpenHomeError;

pub use self::programs::{ProgramFinding, tried_version};
pub use self::report::{DoctorReport, HomeFinding, KeyFinding, ModelFinding, ProviderFinding};
pub use self::sandbox::BoxFinding;
pub use self::trial::{ModelTrials, TrialKind};
use crate::tree_file::providers;
use crate::user::variables::Variables;

/// How the user of a face mends what is found. Each is the end of a sentence.
#[derive(Clone, Copy)]
pub struct DoctorWords {
    /// How to use another home.
    pub other_home: &'static str,
    /// What continues after a loss of commits, if the error is about one.
    pub accept_loss: fn(&Path, &OpenHomeError) -> Option<String>,
    /// How to allow a host.
    pub allow_host: fn(&HostName) -> String,
    /// How to give a model more time.
    pub more_time: &'static str,
}

/// Every provider, and whether its usual key is set.
#[must_use]
pub fn provider_keys(user: &Variables) -> Vec<ProviderFinding> {
    let key = |variable| KeyFinding::new(variable, providers::is_set(variable, user));
    let known = ModelProvider::ALL.into_iter().map(|provider| ProviderFinding {
        provider: provider.as_str(),
        key: usual_key_env(provider).map(key),
    });
    known.chain([ProviderFinding { provider: trial::SCRIPTED, key: None }]).collect()
}
