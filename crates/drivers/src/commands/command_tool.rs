//! The driver of a tool that a tree file defines: a command with places for the arguments of a call, in the box of the
//! agent that calls it.

use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value};
use spinney_kernel::definition::{CommandTemplate, HostRequests, OnLost, ToolSpec};
use spinney_kernel::port::Pending;
use spinney_kernel::port::model::AttemptError;
use spinney_kernel::port::tool::{Tool, ToolAnswer, ToolAttempt};

use super::args::KEPT_BYTES;
use super::tool::{Commands, SHOWN_BYTES, SLACK_MS};
use crate::sandbox::{BoxedCommand, BoxedInput};
use crate::workspace::OutputKind;

/// What such a tool does and how it is called.
#[derive(Clone, Debug)]
pub struct CommandToolSpec {
    pub description: String,
    /// The JSON Schema of its arguments, as text.
    pub schema: String,
    pub command: CommandTemplate,
    /// Whether a call that was lost may be made again.
    pub repeatable: bool,
    pub timeout_ms: u64,
    /// What kind of outputs it makes: what it prints is saved under names of it.
    pub kind: Option<OutputKind>,
}

pub(super) struct CommandTool {
    pub(super) commands: Commands,
    pub(super) spec: CommandToolSpec,
}

impl CommandToolSpec {
    /// The command of a call. It can also read all arguments as JSON from its standard input.
    fn command(&self, arguments: &str, begin: Option<&Path>) -> Result<BoxedCommand, String> {
        let map: Map<String, Value> = match arguments.trim() {
            "" => Map::new(),
            text => {
                serde_json::from_str(text).map_err(|error| format!("the arguments are no object: {error}"))?
            }
        };
        let words = self.command.fill(&map).map_err(|error| error.to_string())?;
        let mut command = BoxedCommand::new(words);
        command.folder = begin.map(Path::to_owned);
        command.input = BoxedInput::Bytes(Value::Object(map).to_string().into_bytes());
        command.timeout = Duration::from_millis(self.timeout_ms);
        command.kept_bytes = KEPT_BYTES;
        Ok(command)
    }
}

impl Tool for CommandTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            description: self.spec.description.clone(),
            schema: self.spec.schema.clone(),
            lost: if self.spec.repeatable { OnLost::Repeatable } else { OnLost::Presumed },
            timeout_ms: Some(self.spec.timeout_ms + SLACK_MS),
            shown_bytes: Some(SHOWN_BYTES),
            ..ToolSpec::default()
        }
    }

    fn call(&self, attempt: ToolAttempt) -> Pending<Result<ToolAnswer, AttemptError>> {
        let (commands, spec) = (self.commands.clone(), self.spec.clone());
        Box::pin(async move {
            let arguments = attempt.args.clone();
            let command = |_: &Path, begin: Option<&Path>| spec.command(&arguments, begin);
            Ok(commands.run(attempt, HostRequests::Refused, spec.kind.clone(), command).await)
        })
    }
}
