//! What a request to Gemini may contain. The names of all levels that change what a call costs are on the list; functions
//! and schemas are the program's own and are not read.

use spinney_drivers::wire::NameKind;

use super::super::allow_list::{AllowList, Listed};
use super::super::call_request::bad;
use super::super::error::GatewayError;
use super::super::json_tape::{AmbiguousKey, JsonKind, JsonNode};
use super::super::request_check::RequestCheck;
use super::super::route::CallFormat;
use super::config::answers;
use super::names::{GeminiField, fields as fields_of, items, plain, snake};

/// Service tiers that cost no more than the price table says.
const TIERS: [&str; 3] = ["flex", "standard", "unspecified"];
/// What a request may ask of the model's thinking.
const THINKING: [&str; 3] = ["includeThoughts", "thinkingBudget", "thinkingLevel"];

/// Checks the fields of a body.
pub(super) fn fields(
    check: &mut RequestCheck<'_>,
    root: JsonNode<'_>,
    is_streamed: bool,
) -> Result<(), GatewayError> {
    for field in fields_of(root)? {
        let (name, value) = (field.name.as_ref(), field.value);
        spelling(check, NamePlace::Root, &field)?;
        // An empty object may be a switch.
        if value.is_null() || (value.is_nothing() && value.kind() != JsonKind::Object) {
            continue;
        }
        match name {
            "generationConfig" => config(check, value, is_streamed)?,
            "serviceTier" => {
                let tier = value.text().unwrap_or_default().to_ascii_lowercase();
                let why = format!("another value has other prices: leave it out, or send `{}`", TIERS[1]);
                check.unless(TIERS.contains(&tier.as_str()), NameKind::Field, name, &why)?;
            }
            "toolConfig" => only_keys(check, NameKind::Field, value, &["functionCallingConfig"])?,
            "tools" => {
                for tool in items(value) {
                    tool_fields(check, tool)?;
                }
            }
            _ => listed(check, NamePlace::Root, &field)?,
        }
    }
    Ok(())
}

/// Checks a name by what the list says about it. Other servers read names of other APIs, in whatever spelling.
fn listed(
    check: &mut RequestCheck<'_>,
    place: NamePlace,
    field: &GeminiField<'_>,
) -> Result<(), GatewayError> {
    let found = place.find(&field.name);
    check.listed_as(found, NameKind::Field, &field.name)?;
    if check.is_own() || found != Listed::Unlisted {
        return Ok(());
    }
    check.listed_as(found, NameKind::Field, &snake(&field.name))
}

/// Where a name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NamePlace {
    Root,
    Config,
}

impl NamePlace {
    fn find(self, name: &str) -> Listed {
        match self {
            Self::Root => AllowList::get().find(CallFormat::Gemini, NameKind::Field, name),
            Self::Config => AllowList::get().find_config(name),
        }
    }
}

fn config(check: &mut RequestCheck<'_>, config: JsonNode<'_>, is_streamed: bool) -> Result<(), GatewayError> {
    for field in fields_of(config)? {
        let (name, value) = (field.name.as_ref(), field.value);
        spelling(check, NamePlace::Config, &field)?;
        if value.is_null() {
            continue;
        }
        match name {
            // A stream does not say whether an answer is missing.
            "candidateCount" => {
                let is_fine = !is_streamed || answers(config)? == 1;
                let why = "a stream of several answers may end before all are counted: ask for one, or for no stream";
                check.unless(is_fine, NameKind::Field, name, why)?;
            }
            "responseModalities" => {
                let is_text =
                    |kind: &JsonNode<'_>| kind.text().is_some_and(|kind| kind.eq_ignore_ascii_case("text"));
                let why = "output other than text is billed separately: leave it out";
                check.unless(items(value).iter().all(is_text), NameKind::Field, name, why)?;
            }
            "thinkingConfig" => only_keys(check, NameKind::Field, value, &THINKING)?,
            _ => listed(check, NamePlace::Config, &field)?,
        }
    }
    Ok(())
}

/// Tools that the program runs are functions. All others are the provider's, and a key alone turns each on.
fn tool_fields(check: &mut RequestCheck<'_>, tool: JsonNode<'_>) -> Result<(), GatewayError> {
    if tool.kind() != JsonKind::Object {
        return Err(bad("a tool is not an object"));
    }
    for GeminiField { name, value, .. } in fields_of(tool)? {
        if value.is_null() {
            continue;
        }
        match AllowList::get().find(CallFormat::Gemini, NameKind::Tool, &name) {
            Listed::Allowed => {}
            Listed::Refused(why) => check.refuse(NameKind::Tool, &name, why)?,
            Listed::Unlisted => {
                check.refuse(NameKind::Tool, &name, "the provider may run it and bill it separately")?;
            }
        }
    }
    Ok(())
}

/// Refuses the keys of an object that are not among these, at the provider's own address.
pub(super) fn only_keys(
    check: &mut RequestCheck<'_>,
    kind: NameKind,
    value: JsonNode<'_>,
    allowed: &[&str],
) -> Result<(), GatewayError> {
    for GeminiField { name, value, .. } in fields_of(value)? {
        let is_fine = allowed.contains(&name.as_ref()) || value.is_null() || !check.is_own();
        check.unless(
            is_fine,
            kind,
            &name,
            "it is not on the list, so its cost has no bound: leave it out",
        )?;
    }
    Ok(())
}

/// Refuses what only some servers read, or read otherwise: at an address of the user's own, names in another spelling than
/// that of JSON, and output caps under other names.
fn spelling(
    check: &mut RequestCheck<'_>,
    place: NamePlace,
    field: &GeminiField<'_>,
) -> Result<(), GatewayError> {
    let name = field.name.as_ref();
    if check.is_own() || field.value.is_null() {
        return Ok(());
    }
    if field.is_snake && place.find(name) != Listed::Unlisted {
        let written = field.key.text().unwrap_or_default();
        return Err(bad(format!("some servers do not read `{written}`: write `{name}`")));
    }
    if place.find(name) != Listed::Unlisted {
        return Ok(());
    }
    if let Some(known) = AllowList::get().gemini_names().find(|known| plain(known) == plain(name)) {
        // The name of a field of another level, or in another spelling.
        if known != name {
            let written: String = name.chars().filter(|letter| !letter.is_control()).take(64).collect();
            return Err(AmbiguousKey::OtherCase { written, name: known.to_owned() }.into());
        }
    }
    if check.is_cap(|cap| plain(cap) == plain(name)) || check.is_other_cap(name, field.value)? {
        let why = "some servers read their output cap from it, instead of the one that is held: leave it out";
        check.refuse(NameKind::Field, name, why)?;
    }
    Ok(())
}
