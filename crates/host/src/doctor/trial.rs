//! Tries one model of a tree file: its key, its server, a small call, and the script that answers instead of it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream;
use spinney::clock::{Clock, SystemClock};
use spinney::tree_file::{FileError, ModelSource, ProviderSource, TreeFile};
use spinney_drivers::http::{HttpLimits, HttpSetupError};
use spinney_drivers::providers::{ProviderClients, TrialFault};
use spinney_drivers::scripted::Script;
use spinney_kernel::budget::Used;
use spinney_kernel::port::model::Model;
use spinney_kernel::primitives::{FaultKind, Millis, ModelName, Time};

use super::DoctorWords;
use super::report::{CallFinding, KeyFinding, LimitsFinding, ModelFinding, ModelStatus, ServerFinding};
use crate::tree_file::providers;
use crate::tree_file::source::{self, Scripts, SourceError, Text};
use crate::trust::egress::{Egress, InputValues};
use crate::user::variables::Variables;

/// The provider of models that answer from a file.
pub(super) const SCRIPTED: &str = "scripted";

/// Models that are tried at the same time.
const AT_ONCE_MAX: usize = 8;

/// What is done with each model of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialKind {
    /// A small call, which costs a little.
    Call,
    /// Only its server is asked for an answer.
    Reach,
}

/// A tree file whose models are tried.
pub struct ModelTrials {
    file: TreeFile,
    text: Text,
    /// The file's folder.
    folder: PathBuf,
    allowed: Scripts,
    user: Variables,
    words: DoctorWords,
}

impl ModelTrials {
    /// Reads a tree file for a home. Nothing is sent.
    pub fn read(
        path: &Path,
        home: &Path,
        allowed: Scripts,
        user: Variables,
        words: DoctorWords,
    ) -> Result<Self, SourceError> {
        let (file, text) = source::read_tree(path, home)?;
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        Ok(Self { file, text, folder, allowed, user, words })
    }

    /// The text of the file, which answers about it are recorded for.
    #[must_use]
    pub const fn text(&self) -> &Text {
        &self.text
    }

    /// What trying its models would send where.
    #[must_use]
    pub fn egress(&self) -> Vec<Egress> {
        let is_called = |source: &ModelSource| match source {
            ModelSource::Provider(source) => providers::missing(source, &self.user).is_none(),
            ModelSource::Scripted { .. } => false,
        };
        let models = self.file.models.iter().filter(|(_, source)| is_called(source));
        let called: Vec<ModelName> = models.map(|(name, _)| name.clone()).collect();
        // A trial needs no input.
        Egress::all(&self.file, &called, InputValues::Known)
    }

    /// Tries every model, several at once, and lists them in the order of the file. What the user refuses is not sent.
    /// Each model has this many milliseconds.
    pub async fn run(
        &self,
        refused: &[Egress],
        kind: TrialKind,
        timeout_ms: u64,
    ) -> Result<Vec<ModelFinding>, HttpSetupError> {
        let clients = ProviderClients::new(limits(timeout_ms))?;
        let trial = &Trial { trials: self, refused, clients, kind };
        let tried = stream::iter(self.file.models.iter().enumerate())
            .map(|(place, (name, source))| async move { (place, trial.run(name, source).await) });
        let mut findings: Vec<(usize, ModelFinding)> = tried.buffer_unordered(AT_ONCE_MAX).collect().await;
        findings.sort_by_key(|(place, _)| *place);
        Ok(findings.into_iter().map(|(_, finding)| finding).collect())
    }
}

/// Everything together takes at most this long. The inner bounds are wider or much narrower, so the error is the
/// same whichever part of a call hangs.
fn limits(timeout_ms: u64) -> HttpLimits {
    let total = Duration::from_millis(timeout_ms);
    HttpLimits { connect: total / 2, head: total * 2, idle: total * 2, total, ..HttpLimits::default() }
}

/// How the models of a file are tried.
struct Trial<'t> {
    trials: &'t ModelTrials,
    /// What the user does not allow.
    refused: &'t [Egress],
    clients: ProviderClients,
    kind: TrialKind,
}

impl Trial<'_> {
    async fn run(&self, name: &ModelName, source: &ModelSource) -> ModelFinding {
        match source {
            ModelSource::Scripted { script } => {
                let finding = ModelFinding::new(name, SCRIPTED, None);
                self.scripted(finding, script)
            }
            ModelSource::Provider(source) => self.of_provider(name, source).await,
        }
    }

    async fn of_provider(&self, name: &ModelName, source: &ProviderSource) -> ModelFinding {
        let ModelTrials { file, user, words, .. } = self.trials;
        let mut finding = ModelFinding::new(name, source.provider.as_str(), Some(source.model.clone()));
        let variables = providers::variables(source);
        finding.keys =
            variables.map(|variable| KeyFinding::new(variable, providers::is_set(variable, user))).collect();
        if let Some(variable) = providers::missing(source, user) {
            let set = format!("type `export {variable}=…` with your key");
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
        let model = match providers::model(file, name, source, &self.clients, user) {
            Ok(model) => model,
            // It says where, and what to write instead.
            Err(error) => return finding.failed(FileError::from(error).to_string(), None),
        };
        if let Some(refused) = self.refused.iter().find(|refused| refused.model == *name) {
            let remedy =
                format!("if you trust this file and that host, {}", (words.allow_host)(refused.host()));
            return finding.failed(format!("you have not allowed {}", refused.line()), Some(remedy));
        }
        let server = model.service().unwrap_or_default().to_owned();
        let started = SystemClock::new().now_ms();
        let tried = match self.kind {
            TrialKind::Call => model.try_out().await.map(Some),
            TrialKind::Reach => model.reach().await.map(|()| None),
        };
        let ended = SystemClock::new().now_ms();
        finding.limits = LimitsFinding::from_announced(&model.announced());
        match tried {
            Ok(used) => {
                finding.server = Some(ServerFinding { url: server, answers: true });
                let elapsed_ms = ended.saturating_sub(started);
                finding.call = used.map(|used| self.call(name, used, Time(started), elapsed_ms));
                finding
            }
            Err(failed) => {
                finding.server = Some(ServerFinding { url: server, answers: failed.is_answered });
                let remedy = remedy(source, &failed, words);
                finding.failed(failed.fault.message, remedy)
            }
        }
    }

    /// A call that was answered, at the price that a tree would pay.
    fn call(&self, name: &ModelName, used: Used, started: Time, elapsed_ms: u64) -> CallFinding {
        let price = self.trials.file.definition.models.get(name).and_then(|model| model.price.as_ref());
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
        let ModelTrials { folder, allowed, .. } = self.trials;
        let path = folder.join(script);
        let shown = path.display().to_string();
        let read = source::read_script(folder, script, *allowed);
        let parsed = match read {
            Ok(text) => Script::parse(&shown, &text).map(|_| ()).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        match parsed {
            Ok(()) => {
                finding.status = ModelStatus::Scripted;
                finding.script = Some(script.to_owned());
                finding
            }
            Err(error) => finding.failed(format!("cannot use the script {shown}: {error}"), None),
        }
    }
}

/// What to do about a failed trial. Faults about settings say it themselves.
fn remedy(source: &ProviderSource, failed: &TrialFault, words: &DoctorWords) -> Option<String> {
    let is_own_server = source.base_url.is_some() || providers::key_env(source).is_none();
    Some(match failed.fault.kind {
        FaultKind::Auth => match providers::key_env(source) {
            Some(variable) => {
                format!(
                    "check the key in {variable}: it may be wrong, expired, or not allowed to use this model"
                )
            }
            None => "the server requires a key: name its variable as `key_env`".to_owned(),
        },
        FaultKind::OutOfCredit => "add credit to the account of this key".to_owned(),
        FaultKind::RateLimit => match failed.fault.retry_after_ms {
            Some(ms) => format!("try again in {}; a run waits automatically", Millis(ms)),
            None => "try again later; a run waits automatically".to_owned(),
        },
        FaultKind::Timeout => words.more_time.to_owned(),
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
