//! `spinney doctor`: what works here. Without a file it lists the keys of all providers; with one it tries each of the
//! file's models.

use std::path::Path;

use anyhow::{Result, bail};
use spinney_host::doctor::{
    BoxFinding, DoctorReport, DoctorWords, HomeFinding, ModelFinding, ModelTrials, ProgramFinding, TrialKind,
    provider_keys,
};
use spinney_host::trust::allowed_hosts::AllowedHosts;
use spinney_host::trust::egress::Egress;
use spinney_host::user::configuration::Configuration;
use spinney_host::user::variables::Variables;
use spinney_kernel::primitives::Millis;
use spinney_terminal::out;

use crate::args;
use crate::exit::Exit;
use crate::hint::{YOUR_FILE, accept_loss, command};
use crate::permission::ask_egress;

/// Longest time that may be given to each model.
const TIMEOUT_MS_MAX: u64 = 600_000;

const WORDS: DoctorWords = DoctorWords {
    other_home: "use --home for another one",
    accept_loss,
    allow_host: |host| format!("add --allow-host {host}"),
    more_time: "try again with a longer --timeout, such as 60s",
};

pub(super) async fn doctor(home: &Path, args: &args::Doctor) -> Result<Exit> {
    if args.timeout.ms() > TIMEOUT_MS_MAX {
        let (given, most) = (Millis(args.timeout.ms()), Millis(TIMEOUT_MS_MAX));
        bail!("--timeout of {given} is too long: write at most {most}");
    }
    let configuration = Configuration::read()?;
    let user = Variables::read(&configuration)?;
    let (providers, models) = match &args.file {
        Some(path) => (Vec::new(), Some(tried(path, home, args, &configuration, user).await?)),
        None => (provider_keys(&user), None),
    };
    let programs = if models.is_none() { ProgramFinding::look_for_all().await } else { Vec::new() };
    let (home_found, box_found) = (HomeFinding::look(home, WORDS).await, BoxFinding::look().await);
    let report = DoctorReport::new(home_found, box_found, programs, providers, models);
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

/// Tries every model of a file, and asks before keys go to its servers.
async fn tried(
    path: &Path,
    home: &Path,
    args: &args::Doctor,
    configuration: &Configuration,
    user: Variables,
) -> Result<Vec<ModelFinding>> {
    let allowed = AllowedHosts::new(&args.allowed.allow_host, configuration, &user);
    let trials = ModelTrials::read(path, home, args::scripts(args.allow_outside), user, WORDS)?;
    let egress = trials.egress();
    let refused = ask_egress(trials.text(), &egress, &allowed)?;
    let refused = refused.iter().flat_map(|question| question.refused());
    let refused: Vec<Egress> = refused.map(|egress| (*egress).clone()).collect();
    let kind = if args.no_calls { TrialKind::Reach } else { TrialKind::Call };
    Ok(trials.run(&refused, kind, args.timeout.ms()).await?)
}
