//! The argument types of a tool's closure: its own type, the same with the attempt, or the raw attempt.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use spinney_kernel::port::tool::ToolAttempt;

use super::schema;

/// What the closure of a [`FunctionTool`](super::FunctionTool) takes: any type that deserializes from JSON and has a
/// schema, [`ToolRequest`] around one, or [`RawCall`].
pub trait ToolArguments: sealed::ToolArguments {}

impl<A: sealed::ToolArguments> ToolArguments for A {}

/// The arguments and their attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolRequest<A> {
    /// The arguments.
    pub args: A,
    /// The caller, the attempt, and the idempotency key: the same for every start of the same call.
    pub attempt: ToolAttempt,
}

/// A raw attempt, with its arguments as text. Such a tool has no schema unless it is given one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawCall(pub ToolAttempt);

pub(super) mod sealed {
    use super::ToolAttempt;

    pub trait ToolArguments: Sized {
        /// The schema of the arguments, and the type's description.
        fn schema() -> (String, String);

        fn read(attempt: ToolAttempt) -> Result<Self, String>;
    }
}

impl<A: DeserializeOwned + JsonSchema> sealed::ToolArguments for A {
    fn schema() -> (String, String) {
        schema::for_type::<A>()
    }

    fn read(attempt: ToolAttempt) -> Result<Self, String> {
        read(&attempt.args)
    }
}

impl<A: DeserializeOwned + JsonSchema> sealed::ToolArguments for ToolRequest<A> {
    fn schema() -> (String, String) {
        schema::for_type::<A>()
    }

    fn read(attempt: ToolAttempt) -> Result<Self, String> {
        Ok(Self { args: read(&attempt.args)?, attempt })
    }
}

impl sealed::ToolArguments for RawCall {
    fn schema() -> (String, String) {
        (String::new(), String::new())
    }

    fn read(attempt: ToolAttempt) -> Result<Self, String> {
        Ok(Self(attempt))
    }
}

/// The error names the field, including nested ones.
fn read<A: DeserializeOwned>(args: &str) -> Result<A, String> {
    let mut text = serde_json::Deserializer::from_str(args);
    let read = serde_path_to_error::deserialize(&mut text).map_err(|error| {
        let (path, reason) = (error.path().to_string(), without_place(error.inner()));
        if path == "." { reason } else { format!("`{path}`: {reason}") }
    })?;
    text.end().map_err(|error| without_place(&error))?;
    Ok(read)
}

/// A model cannot use column numbers.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.as_str(), |(reason, _)| reason).to_owned()
}
