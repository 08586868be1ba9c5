//! The tools of a scene that has commands: they start nothing, and report what real ones would. What a call does is its
//! first word.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use spinney_kernel::definition::{OnLost, ToolSpec, ToolSubject};
use spinney_kernel::port::Pending;
use spinney_kernel::port::model::AttemptError;
use spinney_kernel::port::tool::{Tool, ToolAnswer, ToolAttempt};
use spinney_kernel::primitives::{
    CommandExit, CommandLimit, ConnectionEnd, ConnectionRefusal, OutputPath, WrittenFile,
};

use crate::fixture::parse;

/// `run_command` without a program.
#[derive(Clone, Copy, Debug)]
pub(super) struct GoldenCommand;

impl Tool for GoldenCommand {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            description: "runs a command".to_owned(),
            lost: OnLost::Presumed,
            subject: Some(ToolSubject::command("command")),
            ..ToolSpec::default()
        }
    }

    fn call(&self, attempt: ToolAttempt) -> Pending<Result<ToolAnswer, AttemptError>> {
        Box::pin(async move { Ok(answer(&attempt).await) })
    }
}

async fn answer(attempt: &ToolAttempt) -> ToolAnswer {
    let args: serde_json::Value = serde_json::from_str(&attempt.args).unwrap_or_default();
    let command = args["command"].as_str().unwrap_or_default();
    let (program, rest) = command.split_once(' ').unwrap_or((command, ""));
    let output = || -> OutputPath { parse(rest) };
    let done = || ToolAnswer::text("exit code 0").with_exit(CommandExit::Code(0));
    tokio::time::sleep(Duration::from_millis(5)).await;
    match program {
        "make" => {
            let bytes = format!("made by {}\n", attempt.origin.agent()).into_bytes();
            done().with_files(vec![WrittenFile { path: output(), bytes }])
        }
        "rm" => done().with_removed(vec![output()]),
        "false" => ToolAnswer::failed("exit code 1").with_exit(CommandExit::Code(1)),
        "kill" => ToolAnswer::failed("killed by signal 9").with_exit(CommandExit::Signal(9)),
        "fork" => ToolAnswer::failed("too many processes")
            .with_exit(CommandExit::PastLimit(CommandLimit::Processes)),
        "hang" => std::future::pending().await,
        "get" => {
            let connection = attempt.connections.open(rest, 443);
            connection.connected_to(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)));
            connection.sent(120);
            tokio::time::sleep(Duration::from_millis(7)).await;
            connection.received(4_096);
            connection.end(ConnectionEnd::Closed);
            drop(connection);
            attempt.connections.refused("other.example.org", 443, ConnectionRefusal::NotGranted);
            done()
        }
        _ => ToolAnswer::failed("there is no such program").with_exit(CommandExit::NotStarted),
    }
}
