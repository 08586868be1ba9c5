//! A tool call that a rule makes. Every string in its arguments is a template.

use minijinja::Value;
use serde_json::Value as Json;
use serde_saphyr::Location;
use spinney_kernel::definition::Builtin;
use spinney_kernel::primitives::TokenCount;
use spinney_kernel::record::ToolAsk;

use super::file::CallText;
use super::template::{Template, Templates};
use super::turn::tokens;

/// A tool call whose templates are compiled.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) tool: String,
    /// Where its tool is named.
    pub(super) place: Location,
    /// The role that it spawns, if it is written out.
    pub(super) spawns: Option<String>,
    args: Args,
    id: Option<String>,
}

#[derive(Debug)]
enum Args {
    /// As it is, so it may be no JSON.
    Raw(Template),
    Json(Part),
}

/// A JSON value whose strings are templates.
#[derive(Debug)]
enum Part {
    Text(Template),
    List(Vec<Part>),
    Map(Vec<(String, Part)>),
    Plain(Json),
}

impl Call {
    /// Checks what was written.
    pub(super) fn compile(
        text: &CallText,
        names: &[&str],
        templates: &mut Templates,
    ) -> Result<Self, String> {
        let mut add = |text: &str| templates.add(text, names);
        let args = match &text.args {
            None => Args::Json(Part::Map(Vec::new())),
            Some(Json::String(raw)) => Args::Raw(add(raw)?),
            Some(json) => Args::Json(Part::compile(json, &mut add)?),
        };
        let (tool, place) = (text.tool.value.clone(), text.tool.referenced);
        let starts = [Builtin::SpawnAgent, Builtin::DelegateToAgent].map(Builtin::as_str);
        let spawned = text.args.as_ref().filter(|_| starts.contains(&tool.as_str()));
        let spawns = spawned.and_then(|args| args.get("agent")?.as_str());
        let spawns = spawns.filter(|role| !role.contains("{{") && !role.contains("{%")).map(str::to_owned);
        Ok(Self { tool, place, spawns, args, id: text.id.clone() })
    }

    /// The call as the model asks for it; `id` if the script gave it none.
    pub(super) fn ask(&self, id: String, templates: &Templates, context: &Value) -> Result<ToolAsk, String> {
        let args = match &self.args {
            Args::Raw(raw) => templates.render(raw, context)?,
            Args::Json(part) => part.render(templates, context)?.to_string(),
        };
        let id = self.id.clone().unwrap_or(id);
        let counted = TokenCount::exact(tokens(&id) + tokens(&self.tool) + tokens(&args));
        Ok(ToolAsk { id, tool: self.tool.clone(), args, tokens: Some(counted), told_tokens: None })
    }
}

impl Part {
    /// Goes as deep as a script may be nested.
    fn compile(json: &Json, add: &mut dyn FnMut(&str) -> Result<Template, String>) -> Result<Self, String> {
        match json {
            Json::String(text) => add(text).map(Self::Text),
            Json::Array(items) => {
                let items = items.iter().map(|item| Self::compile(item, add));
                items.collect::<Result<_, _>>().map(Self::List)
            }
            Json::Object(entries) => {
                let entries = entries
                    .iter()
                    .map(|(key, value)| Self::compile(value, add).map(|part| (key.clone(), part)));
                entries.collect::<Result<_, _>>().map(Self::Map)
            }
            Json::Null | Json::Bool(_) | Json::Number(_) => Ok(Self::Plain(json.clone())),
        }
    }

    fn render(&self, templates: &Templates, context: &Value) -> Result<Json, String> {
        match self {
            Self::Text(text) => templates.render(text, context).map(Json::String),
            Self::List(items) => items.iter().map(|item| item.render(templates, context)).collect(),
            Self::Map(entries) => {
                let entry = |(key, part): &(String, Self)| {
                    part.render(templates, context).map(|value| (key.clone(), value))
                };
                entries.iter().map(entry).collect()
            }
            Self::Plain(json) => Ok(json.clone()),
        }
    }
}
