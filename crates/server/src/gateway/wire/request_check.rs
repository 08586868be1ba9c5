//! What a request may contain. At the providers' own addresses every name must be on the [`AllowList`]. At other
//! addresses only names known to cost more are refused, because other servers have their own fields. Values that change
//! the cost of a call are checked in both cases. The user can allow a name for a program; its cost then has no bound.

use std::collections::BTreeSet;

use http::HeaderMap;
use spinney_drivers::prices::refused_param;
use spinney_drivers::wire::{NameKind, Permitted, RequestName};

use super::allow_list::{AllowList, Listed};
use super::call_request::{CallHead, CallUpstream, bad};
use super::error::{GatewayError, GatewayErrorKind, RefusedName};
use super::json_tape::{AmbiguousKey, JsonKind, JsonNode, folded};
use super::output_caps::cap_names;
use super::route::{CallFormat, ProviderApi};

/// Service tiers that cost no more than the price table says.
const TIERS: [&str; 5] = ["auto", "default", "flex", "standard", "standard_only"];
/// Fields whose presence alone turns a feature on, even as an empty object.
const SWITCHES: [&str; 5] =
    ["code_execution", "file_search", "search_parameters", "web_search", "web_search_options"];
/// Other names under which some servers read an output cap.
const OTHER_CAPS: [&str; 10] = [
    "max_completion_tokens",
    "max_gen_len",
    "max_length",
    "max_new_tokens",
    "max_output_tokens",
    "max_tokens",
    "max_tokens_to_sample",
    "maxOutputTokens",
    "n_predict",
    "num_predict",
];
/// Fields of servers that hand requests on or have more to offer, with what they do.
const ELSEWHERE_REFUSED: [(&str, &str); 12] = [
    ("chat_template", "a template may repeat the input"),
    ("connectors", "searches are billed separately"),
    ("context_window_fallback_dict", "another model may answer, at another price"),
    ("custom_llm_provider", "another provider may answer, at another price"),
    ("enable_enhancement", "searches are billed separately"),
    ("enable_search", "searches are billed separately"),
    ("extra_body", "further fields are read from it, and nothing checks them"),
    ("extra_headers", "further headers are read from it, and nothing checks them"),
    ("extra_query", "further parameters are read from it, and nothing checks them"),
    ("prompt_id", "the server keeps the prompt, so the input is not in the request"),
    ("providerOptions", "another model may answer, and tools of the server may run"),
    ("search_options", "searches are billed separately"),
];
/// The cache lifetimes of OpenAI that the price table covers.
const CACHE_TTL: [&str; 1] = ["30m"];

/// Checks one request, and collects the names that passed only because the user allowed them.
pub(super) struct RequestCheck<'c> {
    format: CallFormat,
    upstream: CallUpstream,
    permitted: &'c Permitted,
    outside_bound: BTreeSet<RequestName>,
}

impl<'c> RequestCheck<'c> {
    pub(super) fn new(head: &CallHead<'c>) -> Self {
        let CallHead { format, upstream, permitted, .. } = *head;
        Self { format, upstream, permitted, outside_bound: BTreeSet::new() }
    }

    pub(super) const fn format(&self) -> CallFormat {
        self.format
    }

    /// Whether the request goes to the provider's own address.
    pub(super) fn is_own(&self) -> bool {
        self.upstream == CallUpstream::Provider
    }

    /// The names that passed only because the user allowed them.
    pub(super) fn outside_bound(self) -> BTreeSet<RequestName> {
        self.outside_bound
    }

    /// Checks the betas and the query.
    pub(super) fn head(&mut self, headers: &HeaderMap, query: Option<&str>) -> Result<(), GatewayError> {
        let header = match self.format.api() {
            ProviderApi::Anthropic => Some("anthropic-beta"),
            ProviderApi::OpenAi => Some("openai-beta"),
            ProviderApi::Gemini => None,
        };
        for (header, value) in
            header.iter().flat_map(|name| headers.get_all(*name).iter().map(move |value| (name, value)))
        {
            let Ok(value) = value.to_str() else { return Err(bad(format!("`{header}` is not plain text"))) };
            for beta in value.split(',').map(str::trim).filter(|beta| !beta.is_empty()) {
                self.listed(NameKind::Beta, beta)?;
            }
        }
        for parameter in query.unwrap_or_default().split('&').filter(|parameter| !parameter.is_empty()) {
            let name = parameter.split('=').next().unwrap_or_default();
            // A key of Gemini's goes no further.
            if name != "key" || self.format != CallFormat::Gemini {
                self.listed(NameKind::Query, name)?;
            }
        }
        Ok(())
    }

    /// Checks the top-level fields of a body.
    pub(super) fn fields(&mut self, root: JsonNode<'_>) -> Result<(), GatewayError> {
        let mut has_tools = false;
        for member in root.members() {
            let Some(name) = member.key.text() else {
                // Other servers may accept such names. They cannot be names that we know.
                match self.upstream {
                    CallUpstream::Provider => return Err(bad("a field name is not valid text")),
                    CallUpstream::Elsewhere => continue,
                }
            };
            let (name, value) = (name.as_ref(), member.value);
            self.case(name)?;
            if self.is_other_cap(name, value)? {
                let why = "some servers read their output cap from it, instead of the one that is held: leave it out";
                self.refuse(NameKind::Field, name, why)?;
                continue;
            }
            let is_switch = value.kind() == JsonKind::Object && self.is_switch(name);
            if value.is_nothing() && !is_switch {
                continue;
            }
            match name {
                "tools" if std::mem::replace(&mut has_tools, true) => {
                    return Err(bad("`tools` appears twice in one object: send it once"));
                }
                "tools" if value.kind() != JsonKind::Array => return Err(bad("`tools` is not a list")),
                "tools" => self.tools(value)?,
                _ => self.field(name, value)?,
            }
        }
        Ok(())
    }

    /// Whether some servers read an output cap from a field that is not the cap of this format.
    pub(super) fn is_other_cap(&self, name: &str, value: JsonNode<'_>) -> Result<bool, GatewayError> {
        let is_one = match name {
            "options" => value.member("num_predict")?.is_some(),
            _ => OTHER_CAPS.contains(&name) && !cap_names(self.format).contains(&name),
        };
        Ok(is_one && self.upstream == CallUpstream::Elsewhere && !value.is_null())
    }

    /// Whether one of the names is meant under which servers read an output cap.
    pub(super) fn is_cap(&self, is_meant: impl Fn(&str) -> bool) -> bool {
        OTHER_CAPS.into_iter().any(is_meant)
    }

    /// Refuses names in a different letter case: some servers read `Max_Tokens` as `max_tokens`, and use the last of the two.
    fn case(&self, name: &str) -> Result<(), GatewayError> {
        let folded = folded(name);
        let is_read = || {
            AllowList::get().find(self.format, NameKind::Field, &folded) != Listed::Unlisted
                || refused_param(&folded).is_some()
                || OTHER_CAPS.contains(&folded.as_str())
        };
        if self.upstream == CallUpstream::Elsewhere
            && folded != name
            && !OTHER_CAPS.contains(&name)
            && is_read()
        {
            let written = name.chars().filter(|letter| !letter.is_control()).take(64).collect();
            return Err(AmbiguousKey::OtherCase { written, name: folded }.into());
        }
        Ok(())
    }

    fn field(&mut self, name: &str, value: JsonNode<'_>) -> Result<(), GatewayError> {
        match (self.format, name) {
            (_, "service_tier") => self.only(name, value, &TIERS, "has other prices"),
            (_, "speed") => self.only(name, value, &["standard"], "has other prices"),
            (_, "inference_geo") => self.only(name, value, &["global"], "has other prices"),
            (_, "n") if value.whole_number() == Some(1) => Ok(()),
            (_, "n") => self.refuse(NameKind::Field, name, "each additional answer is billed: leave it out"),
            (_, "modalities") => {
                let is_text =
                    value.kind() == JsonKind::Array && value.items().all(|item| item.is_text("text"));
                self.unless(
                    is_text,
                    NameKind::Field,
                    name,
                    "output other than text is billed separately: leave it out",
                )
            }
            (_, "context_management") => self.edits(value),
            (CallFormat::Messages, "safeguards") => {
                let is_known = |item: JsonNode<'_>| {
                    Ok::<_, GatewayError>(
                        item.member("type")?.is_some_and(|kind| kind.is_text("dangerous_tool_use")),
                    )
                };
                for item in value.items() {
                    if !is_known(item)? {
                        self.refuse(NameKind::Field, name, "other types may be billed: leave it out")?;
                    }
                }
                Ok(())
            }
            (CallFormat::Messages, "output_config") => {
                self.only_keys(name, value, &["effort", "format", "task_budget"])
            }
            (CallFormat::Responses, "reasoning") => match value.member("mode")? {
                Some(mode) if !mode.is_null() => {
                    self.only("reasoning", mode, &["standard"], "may run the model several times")
                }
                _ => Ok(()),
            },
            (CallFormat::Chat | CallFormat::Responses, "prompt_cache_options") => self.cache_ttl(value),
            // Checked separately.
            (format, name) if cap_names(format).contains(&name) => Ok(()),
            _ => self.listed(NameKind::Field, name),
        }
    }

    /// Checks a list of tools. Tools that the program runs cost nothing beyond their tokens. Tools that the provider runs
    /// are billed separately, and call the model again with more input than was held.
    pub(super) fn tools(&mut self, tools: JsonNode<'_>) -> Result<(), GatewayError> {
        for tool in tools.items() {
            self.tool(tool)?;
        }
        Ok(())
    }

    pub(super) fn tool(&mut self, tool: JsonNode<'_>) -> Result<(), GatewayError> {
        if let Some(callers) = tool.member("allowed_callers")?.filter(|callers| !callers.is_null())
            && !callers.items().all(|caller| caller.is_text("direct"))
        {
            let why =
                "the provider's code execution calls such a tool, and calls the model again: leave it out";
            self.refuse(NameKind::Tool, "allowed_callers", why)?;
        }
        let kind = tool.member("type")?.filter(|kind| !kind.is_null());
        let Some(kind) = kind else {
            // Some servers turn their own tool on by a key.
            let is_defined = self.format != CallFormat::Chat || tool.member("function")?.is_some();
            return self.unless(
                is_defined,
                NameKind::Tool,
                "untyped",
                "it defines no function: send its `type`",
            );
        };
        let Some(kind) = kind.text() else { return Err(bad("the `type` of a tool is not text")) };
        match (self.format, kind.as_ref()) {
            (CallFormat::Responses, "tool_search") => {
                let is_ours = tool.member("execution")?.is_some_and(|by| by.is_text("client"));
                self.unless(
                    is_ours,
                    NameKind::Tool,
                    "tool_search",
                    "the provider runs it and calls the model again",
                )
            }
            (CallFormat::Responses, "shell") => {
                let environment = tool.member("environment")?.filter(|environment| !environment.is_null());
                let is_ours = match environment {
                    None => true,
                    Some(environment) => {
                        environment.member("type")?.is_some_and(|kind| kind.is_text("local"))
                    }
                };
                self.unless(
                    is_ours,
                    NameKind::Tool,
                    "shell",
                    "it runs in the provider's container, which is billed separately",
                )
            }
            (CallFormat::Responses, "namespace") => {
                for tool in tool.member("tools")?.into_iter().flat_map(JsonNode::items) {
                    if tool.member("type")?.is_some_and(|kind| kind.is_text("namespace")) {
                        return Err(bad("a namespace of tools contains another namespace"));
                    }
                    self.tool(tool)?;
                }
                Ok(())
            }
            // The server runs the tools that the program does not. An unknown tool may be one of them.
            (format, kind) => match AllowList::get().find(format, NameKind::Tool, kind) {
                Listed::Allowed => Ok(()),
                Listed::Refused(why) => self.refuse(NameKind::Tool, kind, why),
                Listed::Unlisted => {
                    self.refuse(NameKind::Tool, kind, "the provider may run it and bill it separately")
                }
            },
        }
    }

    /// Edits that only drop content are free. Edits that summarise call the model again.
    fn edits(&mut self, management: JsonNode<'_>) -> Result<(), GatewayError> {
        let edits = match management.kind() {
            JsonKind::Array => Some(management),
            _ => management.member("edits")?,
        };
        for edit in edits.into_iter().flat_map(JsonNode::items) {
            let kind = edit.member("type")?.and_then(JsonNode::text).unwrap_or_default();
            match AllowList::get().find(self.format, NameKind::Edit, &kind) {
                Listed::Allowed => {}
                Listed::Refused(why) => self.refuse(NameKind::Edit, &kind, why)?,
                Listed::Unlisted => {
                    self.refuse(
                        NameKind::Edit,
                        &kind,
                        "it may call the model once more, which is billed separately",
                    )?;
                }
            }
        }
        Ok(())
    }

    /// Checks the cache lifetime in the options of a request or of one of its parts.
    pub(super) fn cache_ttl(&mut self, options: JsonNode<'_>) -> Result<(), GatewayError> {
        match options.member("ttl")?.filter(|ttl| !ttl.is_null()) {
            Some(ttl) => self.only("prompt_cache_options", ttl, &CACHE_TTL, "has no known price"),
            None => Ok(()),
        }
    }

    /// Checks the type of a part or an item. Returns whether it is on the list. If it passed without being on the list, only
    /// the model's context bounds it.
    pub(super) fn is_known(&mut self, kind: NameKind, name: &str) -> Result<bool, GatewayError> {
        self.listed(kind, name)?;
        Ok(AllowList::get().find(self.format, kind, name) == Listed::Allowed)
    }

    /// Whether an empty object may turn a feature on.
    fn is_switch(&self, name: &str) -> bool {
        SWITCHES.contains(&name) || (self.upstream == CallUpstream::Provider && !self.is_read(name))
    }

    pub(super) fn listed(&mut self, kind: NameKind, name: &str) -> Result<(), GatewayError> {
        self.listed_as(AllowList::get().find(self.format, kind, name), kind, name)
    }

    /// Checks a name by what the list says about it.
    pub(super) fn listed_as(
        &mut self,
        listed: Listed,
        kind: NameKind,
        name: &str,
    ) -> Result<(), GatewayError> {
        match (listed, self.upstream) {
            (Listed::Allowed, CallUpstream::Provider) => Ok(()),
            (Listed::Refused(why), _) => self.refuse(kind, name, why),
            (Listed::Allowed | Listed::Unlisted, CallUpstream::Elsewhere) => match refused_param(name) {
                Some(why) if kind == NameKind::Field && listed == Listed::Unlisted => {
                    self.refuse(kind, name, why)
                }
                _ => match ELSEWHERE_REFUSED.iter().find(|(refused, _)| *refused == name) {
                    Some((_, why)) if kind == NameKind::Field => self.refuse(kind, name, why),
                    _ => Ok(()),
                },
            },
            (Listed::Unlisted, CallUpstream::Provider) => {
                let why = format!(
                    "it is not on the list of {}, so its cost has no bound: leave it out",
                    AllowList::get().date
                );
                self.refuse(kind, name, &why)
            }
        }
    }

    /// Whether the gateway knows what a field of this format does.
    pub(super) fn is_read(&self, name: &str) -> bool {
        AllowList::get().find(self.format, NameKind::Field, name) == Listed::Allowed
    }

    pub(super) fn unless(
        &mut self,
        is_fine: bool,
        kind: NameKind,
        name: &str,
        why: &str,
    ) -> Result<(), GatewayError> {
        if is_fine { Ok(()) } else { self.refuse(kind, name, why) }
    }

    fn only(
        &mut self,
        name: &str,
        value: JsonNode<'_>,
        allowed: &[&str],
        why: &str,
    ) -> Result<(), GatewayError> {
        let is_allowed = allowed.iter().any(|allowed| value.is_text(allowed));
        let why = format!("another value {why}: leave it out, or send `{}`", allowed.join("`, `"));
        self.unless(is_allowed, NameKind::Field, name, &why)
    }

    fn only_keys(&mut self, name: &str, value: JsonNode<'_>, allowed: &[&str]) -> Result<(), GatewayError> {
        for member in value.members() {
            let is_allowed = member.key.text().is_some_and(|key| allowed.contains(&key.as_ref()));
            let is_fine = is_allowed || member.value.is_nothing() || self.upstream == CallUpstream::Elsewhere;
            self.unless(is_fine, NameKind::Field, name, "it has an unknown key, so its cost has no bound")?;
        }
        Ok(())
    }

    /// Refuses a name, unless the user allowed it.
    pub(super) fn refuse(&mut self, kind: NameKind, name: &str, why: &str) -> Result<(), GatewayError> {
        let Some(name) = RequestName::new(kind, name) else {
            let name: String = name.chars().filter(|letter| !letter.is_control()).take(64).collect();
            return Err(GatewayError::new(GatewayErrorKind::Refused, format!("`{name}`: {why}")));
        };
        if self.permitted.contains(&name) {
            self.outside_bound.insert(name);
            return Ok(());
        }
        let message = format!(
            "`{name}`: {why}; the person who started this run can allow it, but the budget does not bound its cost"
        );
        let mut error = GatewayError::new(GatewayErrorKind::Refused, message);
        error.refused = Some(RefusedName { name, why: why.to_owned() });
        Err(error)
    }
}
