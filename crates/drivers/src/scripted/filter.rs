//! The filters of scripts. Each bounds its result's size before it builds it: chained filters must not multiply
//! (`replace` into itself, `tojson` of JSON doubles its quotes).

use minijinja::value::{Kwargs, Rest, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State, Value, filters};

use super::template::RENDERED_BYTES_MAX;

/// All filters that a script may use.
pub(super) const NAMES: [&str; 15] = [
    "abs", "count", "d", "default", "first", "int", "join", "last", "length", "lower", "replace", "string",
    "tojson", "trim", "upper",
];

/// What a number or another small value counts: more than it prints.
const SMALL_BYTES: usize = 48;

/// Puts the bounded ones in the place of the engine's. The others build nothing.
pub(super) fn register(environment: &mut Environment<'_>) {
    environment.add_filter("join", join);
    environment.add_filter("lower", |value: &Value| text(value).map(|text| text.to_lowercase()));
    environment.add_filter("replace", replace);
    environment.add_filter("string", |value: &Value| text(value));
    environment.add_filter("tojson", tojson);
    environment.add_filter("trim", |value: &Value| text(value).map(|text| text.trim().to_owned()));
    environment.add_filter("upper", |value: &Value| text(value).map(|text| text.to_uppercase()));
    environment.add_filter("default", default);
    environment.add_filter("d", default);
}

/// The filter of the engine decides what counts as missing.
fn default(state: &State<'_, '_>, value: &Value, args: Rest<Value>) -> Result<Value, Error> {
    filters::default(state, value, args)
}

fn join(value: &Value, separator: Option<&str>) -> Result<String, Error> {
    let separator = separator.unwrap_or_default();
    let items = value.len().unwrap_or(0);
    let bytes = measured(value)?.saturating_add(items.saturating_mul(separator.len()));
    bounded(bytes)?;
    let texts = value.try_iter()?.map(|item| text(&item)).collect::<Result<Vec<_>, _>>()?;
    Ok(texts.join(separator))
}

fn replace(value: &Value, from: &str, to: &str) -> Result<String, Error> {
    let text = text(value)?;
    let found = text.matches(from).count();
    bounded(text.len().saturating_add(found.saturating_mul(to.len())))?;
    Ok(text.replace(from, to))
}

/// Takes no `indent`: that many spaces for every line would need a separate bound.
fn tojson(value: &Value) -> Result<Value, Error> {
    measured(value)?;
    let none = std::iter::empty::<(&str, Value)>().collect::<Kwargs>();
    let json = filters::tojson(value, None, none)?;
    bounded(json.as_str().map_or(0, str::len))?;
    Ok(json)
}

/// A value as it is printed.
fn text(value: &Value) -> Result<String, Error> {
    measured(value)?;
    Ok(value.to_string())
}

/// At least the bytes that a value takes when it is printed, if they are not too many.
fn measured(value: &Value) -> Result<usize, Error> {
    if value.is_undefined() {
        return Err(ErrorKind::UndefinedError.into());
    }
    let mut bytes = 0_usize;
    measure(value, &mut bytes)?;
    Ok(bytes)
}

/// Ends at the bound: lists may hold one value many times over. Goes as deep as arguments and templates are nested.
fn measure(value: &Value, bytes: &mut usize) -> Result<(), Error> {
    *bytes = bytes.saturating_add(value.as_str().map_or(SMALL_BYTES, str::len));
    bounded(*bytes)?;
    if matches!(value.kind(), ValueKind::Seq | ValueKind::Map | ValueKind::Iterable) {
        for item in value.try_iter()? {
            if value.kind() == ValueKind::Map {
                measure(&value.get_item(&item)?, bytes)?;
            }
            measure(&item, bytes)?;
        }
    }
    Ok(())
}

fn bounded(bytes: usize) -> Result<(), Error> {
    if bytes <= RENDERED_BYTES_MAX {
        return Ok(());
    }
    let detail = format!("a filter would build more than {RENDERED_BYTES_MAX} bytes");
    Err(Error::new(ErrorKind::InvalidOperation, detail))
}
