//! `spinney doctor`: what works here. Without a file it lists the keys of all providers; with one it tries each of the
//! file's models.

mod home;
mod report;
mod trial;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use spinney::tree_file::TreeFile;
use spinney_drivers::http::HttpLimits;
use spinney_drivers::providers::{ProviderClients, usual_key_env};
use spinney_kernel::definition::ModelProvider;
use spinney_kernel::words::Millis;
use tokio::sync::Semaphore;

use self::report::{KeyFinding, ModelFinding, ProviderFinding, Report};
use self::trial::Trial;
use crate::args;
use crate::exit::Exit;
use crate::hint::{YOUR_FILE, command};
use crate::terminal::out;
use crate::tree_file::providers;
use crate::tree_file::source::{self, Scripts};

/// Models that are tried at the same time.
const AT_ONCE_MAX: usize = 8;
/// Longest time that may be given to each model.
const TIMEOUT_MS_MAX: u64 = 600_000;

pub(super) async fn doctor(home: &Path, args: &args::Doctor) -> Result<Exit> {
    if args.timeout.ms() > TIMEOUT_MS_MAX {
        let (given, most) = (Millis(args.timeout.ms()), Millis(TIMEOUT_MS_MAX));
        bail!("--timeout of {given} is too long: write at most {most}");
    }
    let models = match &args.file {
        Some(path) => Some(tried(path, source::read_tree(path, home)?, args).await?),
        None => None,
    };
    let providers = if models.is_none() { keys() } else { Vec::new() };
    let report = Report::new(home::look(home).await, providers, models);
    if args.json {
        out::json(&serde_json::to_string(&report)?)?;
    } else {
        out::line(&report.to_string())?;
        if args.file.is_none() {
            let doctor = command(home, &["doctor", YOUR_FILE]);
            out::note(&format!("`{doctor}` tries the models of a tree file, with one small call each"));
        }
    }
    Ok(if report.ok { Exit::Completed } else { Exit::Failed })
}

/// Every provider, and whether its usual key is set.
fn keys() -> Vec<ProviderFinding> {
    let key = |variable| KeyFinding::of(variable, providers::is_set(variable));
    let known = ModelProvider::ALL
        .into_iter()
        .map(|provider| ProviderFinding { provider: provider.word(), key: usual_key_env(provider).map(key) });
    known.chain([ProviderFinding { provider: trial::SCRIPTED, key: None }]).collect()
}

/// Tries every model of a file, several at once, and lists them in the order of the file.
async fn tried(path: &Path, file: TreeFile, args: &args::Doctor) -> Result<Vec<ModelFinding>> {
    let allowed = if args.allow_outside { Scripts::Anywhere } else { Scripts::Below };
    let folder = path.parent().unwrap_or(Path::new("")).to_owned();
    let clients = ProviderClients::new(limits(args.timeout.ms()))?;
    let trial = Arc::new(Trial { file, folder, allowed, clients, makes_calls: !args.no_calls });
    let slots = Arc::new(Semaphore::new(AT_ONCE_MAX));
    let tasks: Vec<_> = trial
        .file
        .models
        .keys()
        .map(|name| {
            let (trial, slots, name) = (Arc::clone(&trial), Arc::clone(&slots), name.clone());
            tokio::spawn(async move {
                let _slot = slots.acquire().await;
                trial.of(&name).await
            })
        })
        .collect();
    let mut findings = Vec::with_capacity(tasks.len());
    for task in tasks {
        findings.extend(task.await?);
    }
    Ok(findings)
}

/// Everything together takes at most this long. The inner bounds are wider or much narrower, so that the error is the
/// same whichever part of a call hangs.
fn limits(timeout_ms: u64) -> HttpLimits {
    let total = Duration::from_millis(timeout_ms);
    HttpLimits { connect: total / 2, head: total * 2, idle: total * 2, total, ..HttpLimits::default() }
}
