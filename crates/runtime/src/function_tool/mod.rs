//! A tool from a closure. What it takes is a type, and the model is shown that type's schema; what it returns is text, or
//! JSON. What the model got wrong, and what the closure says no to, comes back to the model as an error that it reads.
//!
//! ```
//! use schemars::JsonSchema;
//! use serde::Deserialize;
//! use spinney::FunctionTool;
//!
//! /// Says how warm it is in a city.
//! #[derive(Deserialize, JsonSchema)]
//! #[serde(deny_unknown_fields)]
//! struct Weather {
//!     /// The city, in English.
//!     city: String,
//!     /// Days from today; today if left out.
//!     #[serde(default)]
//!     days: u8,
//! }
//!
//! let tool = FunctionTool::new(async |ask: Weather| match ask.days {
//!     0..=7 => Ok(format!("21 degrees in {}", ask.city)),
//!     _ => Err("there is no forecast that far ahead: ask for 7 days at most"),
//! })
//! .repeatable();
//! # use spinney_kernel::port::tool::Tool;
//! assert_eq!(tool.spec().description, "Says how warm it is in a city.");
//! ```

mod arguments;
mod returns;
mod schema;

use std::fmt::Display;
use std::future::ready;
use std::sync::Arc;

use spinney_kernel::budget::Used;
use spinney_kernel::definition::{OnLost, ToolSpec as Spec};
use spinney_kernel::port::Pending;
use spinney_kernel::port::model::AttemptError;
use spinney_kernel::port::tool::{Tool, ToolAnswer, ToolAttempt};
use spinney_kernel::primitives::limit;

pub use arguments::{RawCall, ToolArguments, ToolRequest};
pub use returns::{Answered, IntoToolAnswer};

use returns::ToolOutput;

/// A tool that is a closure: the model reads both `Ok` and `Err`, the latter marked as an error.
///
/// The closure takes what implements [`ToolArguments`]: its arguments as its own type, the same in a [`ToolRequest`] if
/// it also needs the caller and the key, or the raw attempt ([`RawCall`]). It returns what implements [`IntoToolAnswer`].
#[derive(Clone)]
pub struct FunctionTool {
    spec: Arc<Spec>,
    function: Arc<Function>,
}

type Function = dyn Fn(ToolAttempt) -> Pending<Result<ToolOutput, Complaint>> + Send + Sync;

enum Complaint {
    /// The arguments are invalid, so nothing was called.
    Arguments(String),
    /// The closure returned an error.
    Said(String),
}

impl FunctionTool {
    /// An async tool. It runs when its call is first polled; dropping the call drops the closure's future.
    ///
    /// The type's own documentation describes the tool, unless [`described`](Self::described) replaces it.
    ///
    /// # Panics
    /// If the type does not serialize to a JSON object: models pass arguments by name.
    pub fn new<A, F, W, T, E>(function: F) -> Self
    where
        A: ToolArguments,
        F: Fn(A) -> W + Send + Sync + 'static,
        W: Future<Output = Result<T, E>> + Send + 'static,
        T: IntoToolAnswer,
        E: Display,
    {
        let (schema, description) = A::schema();
        let function = Arc::new(function);
        Self {
            spec: Arc::new(Spec { schema, description, ..Spec::default() }),
            function: Arc::new(move |attempt| {
                let function = Arc::clone(&function);
                Box::pin(async move {
                    let work = function(A::read(attempt).map_err(Complaint::Arguments)?);
                    match work.await {
                        Ok(value) => value.give().map_err(Complaint::Said),
                        // The alternate form includes the error's sources.
                        Err(error) => Err(Complaint::Said(format!("{error:#}"))),
                    }
                })
            }),
        }
    }

    /// A tool that answers at once. It must not block: use [`new`](Self::new) and a blocking thread for files and
    /// long computations.
    ///
    /// # Panics
    /// As [`new`](Self::new).
    pub fn sync<A, F, T, E>(function: F) -> Self
    where
        A: ToolArguments,
        F: Fn(A) -> Result<T, E> + Send + Sync + 'static,
        T: IntoToolAnswer + Send + 'static,
        E: Display + Send + 'static,
    {
        Self::new(move |args| ready(function(args)))
    }

    /// Sets the description for the model: what it does and when to use it.
    #[must_use]
    pub fn described(mut self, description: impl Into<String>) -> Self {
        self.spec_mut().description = description.into();
        self
    }

    /// Sets another JSON Schema of its arguments, as text.
    #[must_use]
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.spec_mut().schema = schema.into();
        self
    }

    /// Declares it idempotent under the same key: a call is restarted after a crash.
    #[must_use]
    pub fn repeatable(mut self) -> Self {
        self.spec_mut().lost = OnLost::Repeatable;
        self
    }

    /// Sets the timeout of one call; 60 seconds by default.
    #[must_use]
    pub fn timeout_ms(mut self, timeout_ms: u64) -> Self {
        self.spec_mut().timeout_ms = Some(timeout_ms);
        self
    }

    /// Sets how many bytes of its output are shown whole, up to 32 KiB; 2,048 characters and 50 lines by default. Of
    /// a longer output the model sees head and tail, and the whole is a file.
    #[must_use]
    pub fn shown_bytes(mut self, shown_bytes: u32) -> Self {
        self.spec_mut().shown_bytes = Some(shown_bytes);
        self
    }

    /// Sets the most that one call can cost. It is held before each call, and spent unless the answer sets the actual
    /// cost ([`Answered::cost_nanos`]).
    #[must_use]
    pub fn cost_nanos_max(mut self, nanos: u64) -> Self {
        self.spec_mut().cost_nanos_max = nanos;
        self
    }

    fn spec_mut(&mut self) -> &mut Spec {
        Arc::make_mut(&mut self.spec)
    }
}

impl Tool for FunctionTool {
    fn spec(&self) -> Spec {
        Spec::clone(&self.spec)
    }

    fn call(&self, attempt: ToolAttempt) -> Pending<Result<ToolAnswer, AttemptError>> {
        let Self { spec, function } = self.clone();
        Box::pin(async move {
            let unsaid = if spec.cost_nanos_max == 0 { Used::NOTHING } else { Used::Unknown };
            Ok(match function(attempt).await {
                Ok(ToolOutput { text, parts, cost_nanos }) => {
                    let used = cost_nanos.map_or(unsaid, Used::CostNanos);
                    ToolAnswer::text(text).with_parts(parts).with_used(used)
                }
                Err(Complaint::Said(text)) => ToolAnswer::failed(text).with_used(unsaid),
                Err(Complaint::Arguments(reason)) => {
                    let mut text = format!("bad arguments: {reason}");
                    if let Some(takes) = schema::described(&spec.schema) {
                        text.push_str(&format!("; this tool takes {takes}"));
                    }
                    text.truncate(text.floor_char_boundary(limit::NOTE_BYTES_MAX));
                    ToolAnswer::failed(text)
                }
            })
        })
    }
}
