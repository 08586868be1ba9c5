//! What a role says about its questions applies to those that say nothing else.

use spinney_kernel::definition::{AskTimeout, QuestionPolicy, Turns};

fn policy(timeout_ms: Option<u64>, on_timeout: AskTimeout) -> Turns {
    Turns { questions: Some(Box::new(QuestionPolicy { timeout_ms, on_timeout })), ..Turns::default() }
}

/// Turns without a policy are written as before, so old journals and new ones have the same bytes.
#[test]
fn turns_without_a_policy_are_written_as_before() {
    let written = serde_json::to_string(&Turns::default()).unwrap();
    assert!(!written.contains("questions"), "{written}");
    let with = policy(Some(1_000), AskTimeout::Default("blue".to_owned()));
    let written = serde_json::to_string(&with).unwrap();
    assert_eq!(serde_json::from_str::<Turns>(&written).unwrap(), with);
}
