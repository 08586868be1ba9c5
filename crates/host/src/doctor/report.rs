//! What was found: as lines for people, and as one JSON object for programs.

use std::fmt;

use serde::Serialize;
use spinney_kernel::budget::usd;
use spinney_kernel::port::model::{Allowance, Announced};
use spinney_kernel::primitives::{Millis, ModelName, grouped};
use spinney_view::wording::{counted, one_line};

use super::programs::ProgramFinding;
use super::sandbox::BoxFinding;

/// Longest name of a model that the names of others are aligned with.
const NAME_CHARS_MAX: usize = 24;
/// Longest text of an error or a remedy.
const TEXT_CHARS_MAX: usize = 600;

/// Everything that was found.
#[derive(Serialize)]
#[serde(tag = "type", rename = "doctor")]
pub struct DoctorReport {
    /// Whether everything works.
    pub ok: bool,
    version: &'static str,
    home: HomeFinding,
    #[serde(rename = "box")]
    sandbox: BoxFinding,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    programs: Vec<ProgramFinding>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    providers: Vec<ProviderFinding>,
    #[serde(skip_serializing_if = "Option::is_none")]
    models: Option<Vec<ModelFinding>>,
}

/// A home.
#[derive(Serialize)]
#[non_exhaustive]
pub struct HomeFinding {
    /// Whether it can be used.
    pub ok: bool,
    /// Its path.
    pub path: String,
    /// What there is to say about it.
    pub message: String,
}

/// A provider of models.
#[derive(Serialize)]
#[non_exhaustive]
pub struct ProviderFinding {
    /// Its name in tree files.
    pub provider: &'static str,
    /// The variable of its key, if it needs one.
    pub key: Option<KeyFinding>,
}

/// An environment variable. Its value is nowhere in here.
#[derive(Serialize)]
#[non_exhaustive]
pub struct KeyFinding {
    /// Its name.
    pub variable: String,
    /// Whether it has a value.
    pub is_set: bool,
}

/// A model of a tree file that was tried.
#[derive(Serialize)]
pub struct ModelFinding {
    name: ModelName,
    pub(super) status: ModelStatus,
    provider: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) keys: Vec<KeyFinding>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) server: Option<ServerFinding>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) call: Option<CallFinding>,
    #[serde(skip_serializing_if = "LimitsFinding::is_empty")]
    pub(super) limits: LimitsFinding,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) script: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) remedy: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ModelStatus {
    Ok,
    /// Its answers come from a script.
    Scripted,
    Failed,
}

#[derive(Serialize)]
pub(super) struct ServerFinding {
    pub(super) url: String,
    pub(super) answers: bool,
}

/// A call that was answered. What the provider did not report is null.
#[derive(Serialize)]
pub(super) struct CallFinding {
    pub(super) input_tokens: Option<u64>,
    pub(super) output_tokens: Option<u64>,
    pub(super) cost_nanos: Option<u64>,
    pub(super) elapsed_ms: u64,
}

#[derive(Default, Serialize)]
pub(super) struct LimitsFinding(Vec<LimitFinding>);

#[derive(Serialize)]
struct LimitFinding {
    of: &'static str,
    /// The noun for one of them.
    #[serde(skip)]
    one: &'static str,
    limit: u64,
    remaining: u64,
    reset_ms: u64,
}

impl DoctorReport {
    /// About a home, the box of commands, and programs and providers or the models of a file. Without a box or a program,
    /// everything else works.
    #[must_use]
    pub fn new(
        home: HomeFinding,
        sandbox: BoxFinding,
        programs: Vec<ProgramFinding>,
        providers: Vec<ProviderFinding>,
        models: Option<Vec<ModelFinding>>,
    ) -> Self {
        let failed = models.iter().flatten().any(|model| model.status == ModelStatus::Failed);
        let (ok, version) = (home.ok && !failed, env!("CARGO_PKG_VERSION"));
        Self { ok, version, home, sandbox, programs, providers, models }
    }
}

impl KeyFinding {
    pub(super) fn new(variable: &str, is_set: bool) -> Self {
        Self { variable: variable.to_owned(), is_set }
    }
}

impl ModelFinding {
    /// A model that nothing is wrong with so far.
    pub(super) fn new(name: &ModelName, provider: &'static str, model: Option<String>) -> Self {
        Self {
            name: name.clone(),
            status: ModelStatus::Ok,
            provider,
            model,
            keys: Vec::new(),
            server: None,
            call: None,
            limits: LimitsFinding::default(),
            script: None,
            error: None,
            remedy: None,
        }
    }

    pub(super) fn failed(self, error: String, remedy: Option<String>) -> Self {
        Self { status: ModelStatus::Failed, error: Some(error), remedy, ..self }
    }

    /// Without its key it cannot be called, and nothing answers instead.
    pub(super) fn keyless(self, remedy: String) -> Self {
        Self { status: ModelStatus::Failed, remedy: Some(remedy), ..self }
    }
}

impl LimitsFinding {
    pub(super) fn from_announced(announced: &Announced) -> Self {
        let limits = [
            ("requests", "request", announced.requests),
            ("tokens", "token", announced.tokens),
            ("input_tokens", "input token", announced.input_tokens),
            ("output_tokens", "output token", announced.output_tokens),
        ];
        let limit = |(of, one, allowance): (&'static str, &'static str, Option<Allowance>)| {
            let Allowance { limit, remaining, reset_ms } = allowance?;
            Some(LimitFinding { of, one, limit, remaining, reset_ms })
        };
        Self(limits.into_iter().filter_map(limit).collect())
    }

    const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// `ok    fast  …`: a word that says it all, a name, and a text.
struct Row<'r> {
    word: &'static str,
    name: &'r str,
    width: usize,
}

impl Row<'_> {
    fn line(&self, text: &str) -> String {
        let Row { word, name, width } = *self;
        format!("{word:<8} {name:<width$}  {text}").trim_end().to_owned()
    }

    /// A line below it.
    fn detail(&self, what: &str, text: &str) -> String {
        let indent = self.width + 11;
        let text = one_line(text, TEXT_CHARS_MAX);
        format!("{:indent$}{what:<7} {text}", "").trim_end().to_owned()
    }
}

impl fmt::Display for DoctorReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.models.iter().flatten().map(|model| model.name.as_str());
        let names = names.chain(self.providers.iter().map(|provider| provider.provider)).chain(["home"]);
        let names = names.chain(self.programs.iter().map(|program| program.program));
        let width = names.map(|name| name.chars().count()).max().unwrap_or_default().min(NAME_CHARS_MAX);
        let word = if self.home.ok { "ok" } else { "FAILED" };
        let home = format!("{}: {}", self.home.path, self.home.message);
        write!(f, "{}", Row { word, name: "home", width }.line(&one_line(&home, TEXT_CHARS_MAX)))?;
        let word = if self.sandbox.ok { "ok" } else { "REFUSED" };
        let row = Row { word, name: "box", width };
        write!(f, "\n{}", row.line(&self.sandbox.line()))?;
        for refused in &self.sandbox.refused {
            write!(f, "\n{}", row.detail("refused", refused))?;
        }
        for remedy in &self.sandbox.remedies {
            write!(f, "\n{}", row.detail("remedy", remedy))?;
        }
        for program in &self.programs {
            let (word, text) = program.words();
            write!(f, "\n{}", Row { word, name: program.program, width }.line(&text))?;
        }
        for provider in &self.providers {
            let (word, text) = provider.words();
            write!(f, "\n{}", Row { word, name: provider.provider, width }.line(&text))?;
        }
        let Some(models) = &self.models else { return Ok(()) };
        for model in models {
            let row = Row { word: model.status.as_str(), name: model.name.as_str(), width };
            for line in model.lines(&row) {
                write!(f, "\n{line}")?;
            }
        }
        write!(f, "\n\n{}", summary(models))
    }
}

/// How many models work.
fn summary(models: &[ModelFinding]) -> String {
    let count = |status| models.iter().filter(|model| model.status == status).count();
    let (scripted, failed) = (count(ModelStatus::Scripted), count(ModelStatus::Failed));
    let mut parts =
        vec![format!("{} of {} ready", models.len() - failed, counted(models.len() as u64, "model"))];
    if scripted > 0 {
        parts.push(format!("{scripted} from a script"));
    }
    if failed > 0 {
        parts.push(format!("{failed} failed"));
    }
    parts.join(", ")
}

impl ProviderFinding {
    fn words(&self) -> (&'static str, String) {
        match &self.key {
            None => ("ok", "needs no key".to_owned()),
            Some(KeyFinding { variable, is_set: true }) => ("ok", format!("{variable} is set")),
            Some(KeyFinding { variable, is_set: false }) => ("no key", format!("{variable} is not set")),
        }
    }
}

impl ModelStatus {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Scripted => "SCRIPTED",
            Self::Failed => "FAILED",
        }
    }
}

impl ModelFinding {
    fn lines(&self, row: &Row<'_>) -> Vec<String> {
        let model = self.model.as_deref().unwrap_or_default();
        let mut lines =
            vec![row.line(one_line(&format!("{} {model}", self.provider), TEXT_CHARS_MAX).as_str())];
        for KeyFinding { variable, is_set } in &self.keys {
            let state = if *is_set { "is set" } else { "is not set" };
            lines.push(row.detail("key", &format!("{variable} {state}")));
        }
        if let Some(ServerFinding { url, answers }) = &self.server {
            let state = if *answers { "answers" } else { "does not answer" };
            lines.push(row.detail("server", &format!("{url} {state}")));
        }
        if let Some(call) = &self.call {
            lines.push(row.detail("call", &call.to_string()));
        }
        for limit in &self.limits.0 {
            lines.push(row.detail("limit", &limit.to_string()));
        }
        if let Some(script) = &self.script {
            lines.push(row.detail("script", &format!("{script} answers")));
        }
        if let Some(error) = &self.error {
            lines.push(row.detail("error", error));
        }
        if let Some(remedy) = &self.remedy {
            lines.push(row.detail("remedy", remedy));
        }
        lines
    }
}

impl fmt::Display for CallFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.input_tokens.zip(self.output_tokens) {
            Some((input, output)) => write!(f, "{} in, {output} out", counted(input, "token"))?,
            None => f.write_str("answered without reporting usage")?,
        }
        match self.cost_nanos {
            Some(nanos) => write!(f, ", {}", usd(nanos))?,
            None => f.write_str(", cost unknown")?,
        }
        write!(f, ", {:#}", Millis(self.elapsed_ms))
    }
}

impl fmt::Display for LimitFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} left", grouped(self.remaining), counted(self.limit, self.one))?;
        if self.remaining < self.limit {
            write!(f, ", resets in {}", Millis(self.reset_ms))?;
        }
        Ok(())
    }
}
