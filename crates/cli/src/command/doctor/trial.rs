//! Tries one model of a tree file: its key, its server, a small call, and the script that answers instead of it.

use std::path::PathBuf;

use spinney::clock::{Clock, SystemClock};
use spinney::tree_file::{FileError, ModelSource, ProviderSource, TreeFile};
use spinney_drivers::providers::{ProviderClients, TrialFault};
use spinney_drivers::scripted::Script;
use spinney_kernel::budget::Used;
use spinney_kernel::port::model::Model;
use spinney_kernel::words::{FaultKind, Millis, ModelName, Time};

use super::report::{CallFinding, KeyFinding, LimitsFinding, ModelFinding, ServerFinding, Status};
use crate::tree_file::providers;
use crate::tree_file::source::{self, Scripts};

/// The provider of models that answer from a file.
pub(super) const SCRIPTED: &str = "scripted";

/// How the models of a file are tried.
pub(super) struct Trial {
    pub(super) file: TreeFile,
    /// The file's folder.
    pub(super) folder: PathBuf,
    pub(super) allowed: Scripts,
    pub(super) clients: ProviderClients,
    pub(super) makes_calls: bool,
}

impl Trial {
    /// What is found about a model; `None` if the file has no such model.
    pub(super) async fn of(&self, name: &ModelName) -> Option<ModelFinding> {
        Some(match self.file.models.get(name)? {
            ModelSource::Scripted { script } => {
                let finding = ModelFinding::new(name, SCRIPTED, None);
                self.scripted(finding, script)
            }
            ModelSource::Provider(source) => self.of_provider(name, source).await,
        })
    }

    async fn of_provider(&self, name: &ModelName, source: &ProviderSource) -> ModelFinding {
        let mut finding = ModelFinding::new(name, source.provider.word(), Some(source.model.clone()));
        let variables = providers::variables(source);
        finding.keys =
            variables.map(|variable| KeyFinding::of(variable, providers::is_set(variable))).collect();
        if let Some(variable) = providers::missing(source) {
            let set = format!("type `export {variable}=…` with the key of your account");
            return match &source.script {
                Some(script) => {
                    finding.remedy = Some(set);
                    self.scripted(finding, script)
                }
                None => {
                    finding.keyless(format!("{set}, or give the model a `script` that answers without one"))
                }
            };
        }
        let model = match providers::model(&self.file, name, source, &self.clients) {
            Ok(model) => model,
            // It says where, and what to write instead.
            Err(error) => return finding.failed(FileError::from(error).to_string(), None),
        };
        let server = model.service().unwrap_or_default().to_owned();
        let started = SystemClock::new().now_ms();
        let tried = if self.makes_calls {
            model.try_out().await.map(Some)
        } else {
            model.reach().await.map(|()| None)
        };
        let ended = SystemClock::new().now_ms();
        finding.limits = LimitsFinding::of(&model.announced());
        match tried {
            Ok(used) => {
                finding.server = Some(ServerFinding { url: server, answers: true });
                let elapsed_ms = ended.saturating_sub(started);
                finding.call = used.map(|used| self.call(name, used, Time(started), elapsed_ms));
                finding
            }
            Err(failed) => {
                finding.server = Some(ServerFinding { url: server, answers: failed.is_answered });
                let remedy = remedy(source, &failed);
                finding.failed(failed.fault.message, remedy)
            }
        }
    }

    /// A call that was answered, at the price that a tree would pay.
    fn call(&self, name: &ModelName, used: Used, started: Time, elapsed_ms: u64) -> CallFinding {
        let price = self.file.definition.models.get(name).and_then(|model| model.price.as_ref());
        let usage = match used {
            Used::Tokens(usage) => Some(usage),
            Used::CostNanos(_) | Used::Unknown => None,
        };
        CallFinding {
            input_tokens: usage.map(|usage| usage.input_tokens()),
            output_tokens: usage.map(|usage| usage.output_tokens()),
            cost_nanos: price.zip(usage).map(|(price, usage)| price.cost(&usage, started)),
            elapsed_ms,
        }
    }

    /// A model that answers from a script, if the script can be read.
    fn scripted(&self, mut finding: ModelFinding, script: &str) -> ModelFinding {
        let path = self.folder.join(script);
        let shown = path.display().to_string();
        let read = source::read_script(&self.folder, script, self.allowed);
        let parsed = read.and_then(|text| Ok(Script::parse(&shown, &text).map(|_| ())?));
        match parsed {
            Ok(()) => {
                finding.status = Status::Scripted;
                finding.script = Some(script.to_owned());
                finding
            }
            Err(error) => finding.failed(format!("cannot use the script {shown}: {error:#}"), None),
        }
    }
}

/// What to do about a failed trial. Faults about settings say it themselves.
fn remedy(source: &ProviderSource, failed: &TrialFault) -> Option<String> {
    let is_own_server = source.base_url.is_some() || providers::key_env(source).is_none();
    Some(match failed.fault.kind {
        FaultKind::Auth => match providers::key_env(source) {
            Some(variable) => {
                format!(
                    "check the key in {variable}: it may be wrong, expired, or not allowed to use this model"
                )
            }
            None => "the server wants a key: name its variable as `key_env`".to_owned(),
        },
        FaultKind::OutOfCredit => "add credit to the account of this key".to_owned(),
        FaultKind::RateLimit => match failed.fault.retry_after_ms {
            Some(ms) => format!("try again in {}; a run waits by itself", Millis(ms)),
            None => "try again later; a run waits by itself".to_owned(),
        },
        FaultKind::Timeout => "try again with a longer --timeout, such as 60s".to_owned(),
        FaultKind::Server if !failed.is_answered && is_own_server => {
            "start the server, or check `base_url`".to_owned()
        }
        FaultKind::Server if !failed.is_answered => "check the network and its proxy settings".to_owned(),
        FaultKind::Server | FaultKind::Overloaded | FaultKind::Cut => {
            "try again later, or give the model a `fallback`".to_owned()
        }
        FaultKind::ContextTooLong | FaultKind::ContentFilter | FaultKind::Declined => {
            "use another model".to_owned()
        }
        FaultKind::Invalid | FaultKind::Stopped => return None,
    })
}
