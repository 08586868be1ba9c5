//! The paths of Gemini, which name the model and what is asked of it, and keys in queries.

use super::super::route::is_plain_name;

/// What a path asks of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gateway::wire) struct GeminiPath<'p> {
    pub(in crate::gateway::wire) model: &'p str,
    pub(in crate::gateway::wire) method: GeminiMethod,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gateway::wire) enum GeminiMethod {
    Generate,
    Stream,
    Count,
    /// One that the gateway does not serve: batches, embeddings, predictions.
    Other,
}

impl<'p> GeminiPath<'p> {
    /// Reads a path without its version. None if it asks nothing of a model.
    pub(in crate::gateway::wire) fn new(path: &'p str) -> Option<Self> {
        let (model, method) = path.strip_prefix("/models/")?.rsplit_once(':')?;
        let method = match method {
            "generateContent" => GeminiMethod::Generate,
            "streamGenerateContent" => GeminiMethod::Stream,
            "countTokens" => GeminiMethod::Count,
            // A model of another server may have a tag, as in `llama3:8b`.
            method if is_verb(method) => GeminiMethod::Other,
            _ => return None,
        };
        // A name in the path reaches the provider.
        let method = if is_plain_name(model) { method } else { GeminiMethod::Other };
        Some(Self { model, method })
    }

    /// The model that a path with or without its version names.
    pub(in crate::gateway::wire) fn in_whole(path: &'p str) -> Option<Self> {
        let rest = ["/v1beta/", "/v1/"].into_iter().find_map(|version| path.strip_prefix(version));
        Self::new(rest.map_or(path, |rest| &path[path.len() - rest.len() - 1..]))
    }
}

/// Whether a word is a method of Google's APIs: `batchGenerateContent`, `embedContent`, `predict`.
fn is_verb(word: &str) -> bool {
    const BEGINNINGS: [&str; 8] =
        ["async", "batch", "count", "create", "embed", "generate", "predict", "stream"];
    BEGINNINGS.iter().any(|verb| word.starts_with(verb))
        && word.bytes().all(|byte| byte.is_ascii_alphabetic())
}

/// The keys in a query.
pub(in crate::gateway) fn query_keys(query: &str) -> impl Iterator<Item = &str> {
    query.split('&').filter_map(|parameter| parameter.strip_prefix("key="))
}

/// A query without keys; none if nothing else is in it.
pub(in crate::gateway::wire) fn without_key(query: &str) -> Option<String> {
    let is_other = |parameter: &&str| *parameter != "key" && !parameter.starts_with("key=");
    let rest: Vec<&str> = query.split('&').filter(is_other).collect();
    (!rest.is_empty()).then(|| rest.join("&"))
}
