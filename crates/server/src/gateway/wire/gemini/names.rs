//! Field names in Google's JSON. Each field of a message has two names, `maxOutputTokens` and `max_output_tokens`, and the
//! API takes both; the gateway reads both as the first.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::super::call_request::bad;
use super::super::error::GatewayError;
use super::super::json_tape::{AmbiguousKey, JsonKind, JsonNode, folded};

/// A field of an object.
#[derive(Clone, Debug)]
pub(super) struct GeminiField<'t> {
    /// In the spelling of JSON.
    pub(super) name: Cow<'t, str>,
    /// Whether it was written with underscores.
    pub(super) is_snake: bool,
    pub(super) key: JsonNode<'t>,
    pub(super) value: JsonNode<'t>,
}

/// The fields of an object by their names; none if it is something else.
///
/// # Errors
/// If a field appears twice, in whatever spelling: it is not certain which of the two is read.
pub(super) fn fields(object: JsonNode<'_>) -> Result<Vec<GeminiField<'_>>, GatewayError> {
    let mut fields = Vec::new();
    let mut seen = BTreeSet::new();
    for member in object.members() {
        let Some(written) = member.key.text() else { return Err(bad("a field name is not valid text")) };
        let name = camel(&written).map_or(written.clone(), Cow::Owned);
        // Only the case may differ, or the underscores.
        if !seen.insert(plain(&name)) {
            return Err(AmbiguousKey::Twice(shown(&name)).into());
        }
        let is_snake = name != written;
        fields.push(GeminiField { name, is_snake, key: member.key, value: member.value });
    }
    Ok(fields)
}

/// A field by its name.
///
/// # Errors
/// If it appears twice, or in a spelling that only some servers read.
pub(super) fn field<'t>(
    object: JsonNode<'t>,
    name: &'static str,
) -> Result<Option<JsonNode<'t>>, GatewayError> {
    let mut found = None;
    for field in fields(object)? {
        if field.name == name {
            found = Some(field.value);
        } else if plain(&field.name) == plain(name) {
            let written = shown(&field.name);
            return Err(AmbiguousKey::OtherCase { written, name: name.to_owned() }.into());
        }
    }
    Ok(found)
}

/// The items of a list. The API takes one item that is not in a list.
pub(super) fn items(list: JsonNode<'_>) -> Vec<JsonNode<'_>> {
    match list.kind() {
        JsonKind::Array => list.items().collect(),
        JsonKind::Null => Vec::new(),
        _ => vec![list],
    }
}

/// A whole number that is not negative. The API takes numbers in texts.
pub(super) fn whole_number(value: JsonNode<'_>) -> Option<u64> {
    let text = value.text();
    let digits =
        text.as_deref().filter(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()));
    value.whole_number().or_else(|| digits.map(|digits| digits.parse().unwrap_or(u64::MAX)))
}

/// The other spelling of a name that is written with underscores.
fn camel(name: &str) -> Option<String> {
    let is_snake = name.trim_start_matches('_').contains('_')
        && !name.contains("__")
        && !name.ends_with('_')
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    if !is_snake {
        return None;
    }
    let (mut camel, mut is_start) = (String::with_capacity(name.len()), false);
    for (at, letter) in name.chars().enumerate() {
        match letter {
            '_' if at > 0 => is_start = true,
            letter if std::mem::take(&mut is_start) => camel.push(letter.to_ascii_uppercase()),
            letter => camel.push(letter),
        }
    }
    Some(camel)
}

/// A name with underscores in place of capital letters.
pub(super) fn snake(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

/// What all spellings of a name have in common.
pub(super) fn plain(name: &str) -> String {
    folded(name).chars().filter(|letter| !matches!(letter, '_' | '-')).collect()
}

/// A name for an error.
fn shown(name: &str) -> String {
    name.chars().filter(|letter| !letter.is_control()).take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_two_spellings() {
        for (snake, name) in [
            ("max_output_tokens", "maxOutputTokens"),
            ("top_p", "topP"),
            ("parameters_json_schema", "parametersJsonSchema"),
            ("_response_json_schema", "_responseJsonSchema"),
        ] {
            assert_eq!(camel(snake).as_deref(), Some(name));
            assert_eq!(plain(snake), plain(name));
            assert_eq!(super::snake(name), snake);
        }
        for one in [
            "maxOutputTokens",
            "Max_Output_Tokens",
            "temperature",
            "_private",
            "maxOutput_tokens",
            "top__p",
            "top_",
        ] {
            assert_eq!(camel(one), None, "{one}");
        }
    }
}
