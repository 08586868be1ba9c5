//! A model of a provider: each call is one attempt, always streamed.

use std::fmt;
use std::sync::Arc;

use spinney_kernel::definition::ModelProvider;
use spinney_kernel::port::Pending;
use spinney_kernel::port::model::{
    Announced, AttemptError, DeltaKind, Deltas, Model, ModelAnswer, ModelAttempt,
};

use super::clients::ProviderClients;
use super::provider;
use super::settle::{answered, missed};
use super::structured::structured;
use crate::http::{HttpClient, HttpHeader, LastAnnouncement, ModelKey, WireCall, origin, wire_request};
use crate::tokens::Tokenizer;
use crate::wire::{
    CacheTime, Endpoint, Keep, ServedFrom, ServiceTier, WireDelta, WireFault, WireFaultKind, WireFormat,
    WireParams, WireRequest,
};

/// What a model of a provider is called with.
#[derive(Clone, Debug)]
pub struct ProviderSetup {
    pub provider: ModelProvider,
    /// The model, by the provider's name.
    pub model: String,
    /// Where it is, if not at the provider's own place.
    pub base_url: Option<String>,
    pub key: Option<ModelKey>,
    /// Headers beyond those of the format.
    pub headers: Vec<HttpHeader>,
    pub params: WireParams,
}

/// A model that is called over the network.
#[derive(Debug)]
pub struct ProviderModel {
    client: HttpClient,
    provider: ModelProvider,
    format: WireFormat,
    endpoint: Endpoint,
    served_from: ServedFrom,
    model: String,
    key: Option<ModelKey>,
    headers: Vec<HttpHeader>,
    params: WireParams,
    tokenizer: Tokenizer,
    service: String,
    quota: Quota,
    announcement: LastAnnouncement,
}

/// Whose rate limits a call counts against: the service, the model, and a fingerprint of the key. Never printed.
struct Quota(String);

impl fmt::Debug for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Quota")
    }
}

/// Headers that the transport writes itself.
const OUR_HEADERS: [&str; 6] =
    ["accept-encoding", "connection", "content-length", "content-type", "host", "transfer-encoding"];

impl ProviderModel {
    /// A model with these settings, which are checked as far as that is possible without a call.
    ///
    /// # Errors
    /// Says which setting is wrong, and what to do.
    pub fn new(setup: ProviderSetup, clients: &ProviderClients) -> Result<Self, WireFault> {
        let ProviderSetup { provider: by, model, base_url, key, headers, mut params } = setup;
        let wrong = |message: &str| WireFault::new(WireFaultKind::BadRequest, message);
        let tokenizer = match base_url {
            None => provider::tokenizer(by, &model),
            Some(_) => Tokenizer::Bytes,
        };
        // Prices are those of the standard tier. An account can have another one as its default.
        params.tier = base_url.is_none().then_some(ServiceTier::Standard);
        // Others cache prompts on their own. Whether a server elsewhere understands the marks is unknown, so there
        // they are sent only on request.
        if by == ModelProvider::Anthropic && base_url.is_none() {
            params.cache = params.cache.or(Some(CacheTime::FiveMinutes));
        }
        let served_from = provider::served_from(by, base_url.as_deref());
        let base_url = base_url.or_else(|| provider::base_url(by).map(str::to_owned));
        let base_url = base_url.ok_or_else(|| wrong("the model's base_url is missing"))?;
        if base_url.contains(['?', '#']) {
            return Err(wrong(
                "the model's base_url has a query: write only the address, such as https://host/v1",
            ));
        }
        for header in &headers {
            let (HttpHeader::Plain { name, .. } | HttpHeader::Secret { name, .. }) = header;
            if OUR_HEADERS.iter().any(|ours| name.eq_ignore_ascii_case(ours)) {
                return Err(wrong(&format!("the header `{name}` is written by Spinney: leave it out")));
            }
        }
        let format = provider::format(by);
        let endpoint = format.endpoint(&base_url, &model);
        let client = clients.client(&endpoint.url).clone();
        let service = origin(&endpoint.url);
        let fingerprint = key.as_ref().map(ModelKey::fingerprint).unwrap_or_default();
        let quota = Quota(format!("{service} {model} {fingerprint}"));
        let announcement = LastAnnouncement::default();
        let new = Self {
            client,
            provider: by,
            format,
            endpoint,
            served_from,
            model,
            key,
            headers,
            params,
            tokenizer,
            service,
            quota,
            announcement,
        };
        let request =
            WireRequest { model: new.model.clone(), params: new.params.clone(), ..WireRequest::default() };
        new.wire_call(request).check()?;
        Ok(new)
    }

    pub(super) const fn client(&self) -> &HttpClient {
        &self.client
    }

    pub(super) const fn provider(&self) -> ModelProvider {
        self.provider
    }

    /// By the provider's name.
    pub(super) fn name(&self) -> &str {
        &self.model
    }

    pub(super) const fn served_from(&self) -> ServedFrom {
        self.served_from
    }

    pub(super) const fn params(&self) -> &WireParams {
        &self.params
    }

    /// Where its server is: scheme, host and port.
    pub(super) fn server(&self) -> &str {
        &self.service
    }

    pub(super) fn wire_call(&self, request: WireRequest) -> WireCall {
        WireCall {
            format: self.format,
            endpoint: self.endpoint.clone(),
            request,
            key: self.key.clone(),
            extra: self.headers.clone(),
            keep: Keep::Everything,
            served_from: self.served_from,
            announcement: self.announcement.clone(),
        }
    }
}

impl Model for ProviderModel {
    fn call(&self, attempt: Arc<ModelAttempt>, deltas: Deltas) -> Pending<Result<ModelAnswer, AttemptError>> {
        let (client, params) = (self.client.clone(), self.params.clone());
        let params = WireParams { structured: structured(self.provider, &self.model, &attempt), ..params };
        let (mut call, served_from) = (self.wire_call(WireRequest::default()), self.served_from);
        let model = self.model.clone();
        Box::pin(async move {
            call.request = wire_request(&attempt, &model, params).await?;
            let mut on_delta = |delta: WireDelta<'_>| match delta {
                WireDelta::Text(text) => deltas(DeltaKind::Text, text),
                WireDelta::Reasoning(text) => deltas(DeltaKind::Reasoning, text),
                WireDelta::CallStarted { .. }
                | WireDelta::CallArguments { .. }
                | WireDelta::CallFinished { .. } => {}
            };
            match client.ask(call, &mut on_delta).await {
                Ok(answer) => answered(answer),
                Err(failed) => Err(missed(*failed, served_from)),
            }
        })
    }

    fn tokens(&self, text: &str) -> u64 {
        self.tokenizer.bound(text)
    }

    fn estimate(&self, text: &str) -> Option<u64> {
        self.tokenizer.estimate(text)
    }

    fn tokenizer(&self) -> Option<&str> {
        Some(self.tokenizer.name())
    }

    fn service(&self) -> Option<&str> {
        Some(&self.service)
    }

    fn quota(&self) -> Option<&str> {
        Some(&self.quota.0)
    }

    fn announced(&self) -> Announced {
        self.announcement.read()
    }
}
