//! Which variables a file would send to which hosts, and whether the user allows it. Their values are nowhere in here.

use spinney::tree_file::{FileProblem, ModelSource, Reach, TreeFile};
use spinney_drivers::http::HostName;
use spinney_kernel::primitives::ModelName;
use spinney_view::outline::{EgressOutline, VariableOutline};

use crate::prepared::StartRequest;
use crate::tree_file::source::TreeSource;
use crate::trust::allowed_hosts::AllowedHosts;
use crate::trust::egress::{Egress, InputValues};
use crate::trust::file_answers::FileAnswers;
use crate::user::configuration::Configuration;
use crate::user::state_files::StateFileError;
use crate::user::variables::Variables;

/// What a file sends, and whether each part of it is allowed.
pub(super) struct EgressCheck(Vec<(Egress, bool)>);

impl EgressCheck {
    /// Of every model of a provider that agents can use, whether its key is set here or not.
    pub(super) fn new(
        source: &TreeSource,
        request: &StartRequest<'_>,
        configuration: &Configuration,
        user: &Variables,
    ) -> Result<Self, StateFileError> {
        let is_provider = |source: &ModelSource| matches!(source, ModelSource::Provider(_));
        let started = Reach::new(&source.file.definition).pruned(source.file.definition.clone());
        let models = source.file.models.iter().filter(|(name, _)| started.models.contains_key(*name));
        let models = models.filter(|(_, source)| is_provider(source));
        let models: Vec<ModelName> = models.map(|(name, _)| name.clone()).collect();
        let (allowed, answers) =
            (AllowedHosts::new(request.hosts, configuration, user), FileAnswers::read(&source.text.hash())?);
        let all = Egress::all(&source.file, &models, InputValues::Given(&request.given.inputs));
        let judged = all.into_iter().map(|egress| {
            let is_allowed = egress.is_allowed(&allowed, &answers);
            (egress, is_allowed)
        });
        Ok(Self(judged.collect()))
    }

    /// What a start would ask about.
    pub(super) fn problems(&self, file: &TreeFile, allow_host: fn(&HostName) -> String) -> Vec<FileProblem> {
        let refused = self.0.iter().filter(|(_, is_allowed)| !is_allowed);
        let problem = |(egress, _): &(Egress, bool)| {
            let model = &egress.model;
            let has_address = matches!(file.models.get(model), Some(ModelSource::Provider(source)) if source.base_url.is_some());
            let key = if has_address { "base_url" } else { "provider" };
            let error =
                file.bad_model(model, key, format!("sends {}, and you have not allowed that", egress.line()));
            let help = format!("if you trust this file and that host, {}", allow_host(egress.host()));
            FileProblem::warning(error.with_help(help))
        };
        refused.map(problem).collect()
    }

    pub(super) fn outline(&self) -> Vec<EgressOutline> {
        let one = |(egress, is_allowed): &(Egress, bool)| EgressOutline {
            host: egress.host().to_string(),
            model: egress.model.clone(),
            variables: egress
                .variables
                .iter()
                .map(|(name, sent_as)| VariableOutline {
                    name: name.clone(),
                    sent_as: sent_as.iter().map(|sent_as| sent_as.as_str()).collect(),
                })
                .collect(),
            allowed: *is_allowed,
            line: egress.line(),
        };
        self.0.iter().map(one).collect()
    }
}
