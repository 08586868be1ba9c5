//! Answers that were cut at their output cap.

use insta::assert_snapshot;
use spinney_testkit::check;

/// G3 (deciding): a tool call that was cut is dropped, and the answer continues once. One that is cut again is partial.
#[test]
fn a_cut_answer_is_continued_once_and_is_partial_if_cut_again() {
    assert_snapshot!(
        check(
            "root $9.00 turns=9 / child later turns=9",
            "said #1 Go. | spawn_agent {\"agent\":\"child\",\"goal\":\"Help.\",\"id\":\"child\"}
            cut #3 Half of | read {\"path\":
            cut #4 the rest
            cut #5 Not all
            said #6 but this",
        ),
        @"
        #1 ended: done, spent $0.003 tokens=3 steps=1
        child spawned by root: $8.997
        #3 asked by child
        #3 started: held $0.10 tokens=578 steps=1
        child's active time runs: 600000ms left
        #3 ended: done, spent $0.007 tokens=7 steps=1
        message from the runtime to child: Your answer was cut off at its output cap. Continue exactly where it stopped: do not repeat anything, do not explain, and be brief.
        #4 asked by child
        #4 started: held $0.10 tokens=796 steps=1
        #4 ended: done, spent $0.008 tokens=8 steps=1
        child ended: failed (output_truncated), spent $0.015 tokens=15 steps=2
        #2 ended: children child failed, spent nothing
        #5 asked by root
        #5 started: held $0.10 tokens=1196 steps=1
        #5 ended: done, spent $0.007 tokens=7 steps=1
        message from the runtime to root: Your answer was cut off at its output cap. Continue exactly where it stopped: do not repeat anything, do not explain, and be brief.
        #6 asked by root
        #6 started: held $0.10 tokens=1414 steps=1
        #6 ended: done, spent $0.008 tokens=8 steps=1
        root ended: completed, spent $0.033 tokens=33 steps=5
        root completed, spent $0.033 tokens=33 steps=5
          child failed, spent $0.015 tokens=15 steps=2
        "
    );
}

/// G3 (without room): without a turn, a step or money for another call, the text so far is the partial result.
#[test]
fn an_answer_that_was_cut_is_partial_where_no_other_turn_fits() {
    for fixture in ["root $9.00 turns=1", "root $9.00 steps=1 turns=5", "root $0.105 turns=5"] {
        let played = check(fixture, "cut #1 Half of it");
        assert!(played.contains("root ended: failed (output_truncated)"), "{fixture}: {played}");
        assert!(!played.contains("message from"), "{fixture}: {played}");
    }
}

/// A complete tool call is made although the answer was cut after it.
#[test]
fn whole_tool_calls_of_a_cut_answer_are_made() {
    let played = check("root $9.00 turns=5", "cut #1 Let me see. | read {\"path\":\"a\"}");
    assert!(!played.contains("output_truncated") && !played.contains("message from"), "{played}");
}
