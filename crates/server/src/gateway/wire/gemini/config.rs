//! The output cap, which is one for each answer.

use super::super::call_request::bad;
use super::super::error::GatewayError;
use super::super::json_tape::JsonNode;
use super::super::output_caps::{CapPlace, OutputCaps, zero};
use super::names::{field, whole_number};

const CAP: &str = "maxOutputTokens";
const ANSWERS: &str = "candidateCount";

/// The caps of a request with this configuration, which may be null.
pub(super) fn caps(root: JsonNode<'_>, config: Option<JsonNode<'_>>) -> Result<OutputCaps, GatewayError> {
    let Some(config) = config.filter(|config| !config.is_null()) else {
        let place = match config {
            Some(null) => CapPlace { at: null.span(), before: format!("{{\"{CAP}\":"), after: "}" },
            None => {
                let inside = root.span().start + 1;
                let before = format!("\"generationConfig\":{{\"{CAP}\":");
                CapPlace { at: inside..inside, before, after: "}," }
            }
        };
        return Ok(OutputCaps::one(None, place, 1));
    };
    let inside = config.span().start + 1;
    let place = match config.is_nothing() {
        true => CapPlace { at: inside..inside, before: format!("\"{CAP}\":"), after: "" },
        false => CapPlace::field(inside, CAP),
    };
    let asked = match field(config, CAP)? {
        None => None,
        Some(cap) => match whole_number(cap) {
            Some(0) => return Err(zero(CAP)),
            tokens if tokens.is_some() || cap.is_null() => Some((cap.span(), tokens)),
            _ => return Err(bad(format!("`{CAP}` is not a whole number"))),
        },
    };
    Ok(OutputCaps::one(asked, place, answers(config)?))
}

/// How many answers are asked for.
pub(super) fn answers(config: JsonNode<'_>) -> Result<u64, GatewayError> {
    let Some(count) = field(config, ANSWERS)?.filter(|count| !count.is_null()) else { return Ok(1) };
    let Some(count) = whole_number(count) else {
        return Err(bad(format!("`{ANSWERS}` is not a whole number")));
    };
    Ok(count.max(1))
}
