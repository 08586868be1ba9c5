//! Checks answers against schemas. The only place that evaluates a schema: once per answer, and the result goes into
//! the journal. It opens no file and no connection, and it always ends: size and steps are bounded in advance.

mod asked;
mod cost;
mod plan;

use std::panic::{AssertUnwindSafe, catch_unwind};

use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;
use spinney_kernel::definition::{FieldMismatch, Mismatch, MismatchKind, OutputSchema, Refusal};
use spinney_kernel::primitives::limit;
use spinney_kernel::record::OnTimeout;
use spinney_kernel::rules::request::Request;

pub(crate) use asked::{refused, unfit_default};
use cost::Cost;
use plan::Plan;

/// Checks that this is a usable schema.
///
/// # Errors
/// What is wrong with it, and where.
pub(crate) fn check(schema: &str) -> Result<(), FieldMismatch> {
    let value = read(schema)?;
    Plan::new(&value)?;
    validator(&value).map(drop)
}

/// Refuses a request with an invalid schema. The kernel checks the rest of it.
pub(crate) fn check_request(request: &Request) -> Result<(), Refusal> {
    let refused = |schema: &OutputSchema| {
        check(schema.text()).map_err(|wrong| Refusal::BadSchema { reason: bad(wrong).describe() })
    };
    if let Request::Start(start) = request {
        let roles = start.definition.roles.values().filter_map(|role| role.turns.as_ref());
        return roles.filter_map(|turns| turns.output_schema.as_deref()).try_for_each(refused);
    }
    if let Request::Ask(ask) = request {
        let Some(schema) = ask.question.form.schema() else { return Ok(()) };
        refused(schema)?;
        let OnTimeout::Default(answer) = &ask.question.on_timeout else { return Ok(()) };
        let unfit = unfit_default(schema.text(), &answer.text);
        return unfit.map_or(Ok(()), |reason| Err(Refusal::BadQuestion { reason }));
    }
    if let Request::Spawn(spawn) = request {
        return spawn.frame.output_schema.as_deref().map_or(Ok(()), refused);
    }
    Ok(())
}

fn bad(wrong: FieldMismatch) -> Mismatch {
    Mismatch { kind: MismatchKind::Schema, wrong: vec![wrong], more: 0 }
}

/// The bare JSON of an answer that matches a schema.
///
/// # Errors
/// How it fails to match.
pub(crate) fn fit<'a>(schema: &str, answer: &'a str) -> Result<&'a str, Mismatch> {
    // A panic in the checker counts as a mismatch and affects nothing else.
    catch_unwind(AssertUnwindSafe(|| evaluate(schema, answer))).unwrap_or_else(|_| {
        Err(Mismatch::whole(MismatchKind::TooMuch, "expected something that can be checked"))
    })
}

fn evaluate<'a>(schema: &str, answer: &'a str) -> Result<&'a str, Mismatch> {
    let bare = bare(answer);
    if bare.len() > limit::CHECKED_BYTES_MAX {
        let (bytes, bytes_max) = (bare.len(), limit::CHECKED_BYTES_MAX);
        let expected = format!("expected at most {bytes_max} bytes, and it has {bytes}");
        return Err(Mismatch::whole(MismatchKind::TooMuch, expected));
    }
    let value: Value = serde_json::from_str(bare)
        .map_err(|error| Mismatch::whole(MismatchKind::NotJson, not_json(bare, &error)))?;
    let schema = read(schema).map_err(bad)?;
    let plan = Plan::new(&schema).map_err(bad)?;
    let validator = validator(&schema).map_err(bad)?;
    Cost::check(&plan, &value).map_err(|expected| Mismatch::whole(MismatchKind::TooMuch, expected))?;
    if validator.is_valid(&value) {
        return Ok(bare);
    }
    let mut errors = validator.iter_errors(&value);
    let wrong: Vec<FieldMismatch> =
        errors.by_ref().take(limit::MISMATCHES_SHOWN_MAX).map(|error| described(&error)).collect();
    // Counts only some of the further mismatches.
    let more = errors.take(MORE_MAX).count() as u32;
    Err(Mismatch { kind: MismatchKind::Value, wrong, more })
}

/// What is wrong with an answer that is not JSON, in words that help a model. Those of the parser do not.
fn not_json(answer: &str, error: &serde_json::Error) -> String {
    let place = format!("line {}, column {}", error.line(), error.column());
    let is_value = |c: char| matches!(c, '{' | '[' | '"' | '-' | '0'..='9');
    let begins = ["true", "false", "null"].iter().any(|word| answer.starts_with(word));
    let but = if answer.is_empty() {
        "it is empty".to_owned()
    } else if !answer.starts_with(is_value) && !begins {
        "it begins with other text".to_owned()
    } else if error.is_eof() {
        format!("it ends too early, at {place}")
    } else if serde_json::Deserializer::from_str(answer)
        .into_iter::<Value>()
        .next()
        .is_some_and(|first| first.is_ok())
    {
        format!("more follows the value, from {place} on")
    } else {
        format!("it is not JSON at {place}")
    };
    format!("expected one JSON value and nothing else, but {but}")
}

/// Most mismatches counted beyond those that are listed.
const MORE_MAX: usize = 100;

fn read(schema: &str) -> Result<Value, FieldMismatch> {
    serde_json::from_str(schema)
        .map_err(|error| FieldMismatch { path: String::new(), expected: error.to_string() })
}

/// Compiled with linear-time patterns. `format` is an annotation only, as in the newest draft.
fn validator(schema: &Value) -> Result<Validator, FieldMismatch> {
    let patterns =
        PatternOptions::regex().size_limit(limit::PATTERN_BYTES_MAX).dfa_size_limit(limit::PATTERN_BYTES_MAX);
    let options = jsonschema::options().with_pattern_options(patterns).should_validate_formats(false);
    options.offline().build(schema).map_err(|error| described(&error))
}

/// One mismatch, without repeating the answer.
fn described(error: &ValidationError<'_>) -> FieldMismatch {
    let mut expected = error.masked().to_string();
    // The mismatches of each alternative say more than that none matches.
    if let ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } =
        error.kind()
    {
        let first = context.iter().filter_map(|branch| branch.first());
        expected = first.map(|error| error.masked().to_string()).collect::<Vec<_>>().join(", and ");
    }
    expected.truncate(expected.floor_char_boundary(limit::MISMATCH_BYTES_MAX));
    FieldMismatch { path: error.instance_path().as_str().to_owned(), expected }
}

/// The answer without surrounding white space, and without the one fence that models like to put around JSON.
fn bare(answer: &str) -> &str {
    let answer = answer.trim();
    let fenced = || {
        let (info, rest) = answer.strip_prefix("```")?.split_once('\n')?;
        let inside = rest.strip_suffix("```")?;
        let is_word = info.trim().chars().all(|c| c.is_ascii_alphanumeric());
        (is_word && !inside.contains("```")).then(|| inside.trim())
    };
    fenced().unwrap_or(answer)
}

#[cfg(test)]
mod tests;
