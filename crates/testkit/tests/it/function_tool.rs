//! Tools from closures.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use spinney_kernel::definition::{Lost, Tool as Spec};
use spinney_kernel::port::tool::{Answer, Tool};
use spinney_kernel::report::Used;
use spinney_testkit::FunctionTool;

use crate::scene::tool_attempt;

fn answered(text: &str, is_error: bool) -> Answer {
    Answer { text: text.to_owned(), is_error, parts: Vec::new(), used: Used::NOTHING }
}

#[tokio::test]
async fn a_closure_answers_or_complains() {
    let tool = FunctionTool::sync(Spec::default(), |attempt| match attempt.args.as_str() {
        "{}" => Err("nothing to search".to_owned()),
        args => Ok(format!("{} found {args}", attempt.tool)),
    });
    assert_eq!(tool.call(tool_attempt("[1]")).await, Ok(answered("search found [1]", false)));
    assert_eq!(tool.call(tool_attempt("{}")).await, Ok(answered("nothing to search", true)));
}

#[tokio::test]
async fn a_closure_may_wait_and_runs_only_when_awaited() {
    let runs = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&runs);
    let tool = FunctionTool::new(Spec::default(), move |attempt| {
        counted.fetch_add(1, Ordering::Relaxed);
        async move {
            tokio::task::yield_now().await;
            Ok(attempt.key)
        }
    });
    drop(tool.call(tool_attempt("{}")));
    assert_eq!(runs.load(Ordering::Relaxed), 0);
    assert_eq!(tool.call(tool_attempt("{}")).await, Ok(answered("k", false)));
    assert_eq!(runs.load(Ordering::Relaxed), 1);
}

#[test]
fn a_closure_is_described_by_its_spec() {
    let given = Spec { schema: "{}".to_owned(), ..Spec::default() };
    let plain = FunctionTool::new(given.clone(), |_| ready(Ok(String::new())));
    assert_eq!(plain.spec(), given);
    let tool = plain.described("Searches.").repeatable().timeout_ms(50);
    let spec =
        Spec { description: "Searches.".to_owned(), lost: Lost::Repeatable, timeout_ms: Some(50), ..given };
    assert_eq!(tool.spec(), spec);
}
