//! Answers that were cut at their output cap.

use insta::assert_snapshot;
use spinney_testkit::check;

/// G3 (without continuing): what was said is the partial result. Whoever asks for tools has not answered yet and goes
/// on.
#[test]
fn an_answer_that_was_cut_is_a_partial_result() {
    assert_snapshot!(
        check(
            "root $9.00 turns=5 / child later turns=5",
            "said #1 Go. | spawn_agent {\"agent\":\"child\",\"goal\":\"Help.\",\"id\":\"child\"}
            cut #3 Half of | read {\"path\":
            cut #4 Half of it
            cut #5 Not all",
        ),
        @"
        #1 ended: done, spent $0.003 tokens=3 steps=1
        child spawned by root: $8.997
        #3 asked by child
        #3 started: held $0.10 tokens=578 steps=1
        child's active time runs: 600000ms left
        #3 ended: done, spent $0.007 tokens=7 steps=1
        child tool 0 error: bad arguments for `read`: EOF while parsing a value at line 1 column 8; write one JSON object with the fields it takes
        #4 asked by child
        #4 started: held $0.10 tokens=747 steps=1
        #4 ended: done, spent $0.01 tokens=10 steps=1
        child ended: failed (output_truncated), spent $0.017 tokens=17 steps=2
        #2 ended: children child failed, spent nothing
        #5 asked by root
        #5 started: held $0.10 tokens=1198 steps=1
        #5 ended: done, spent $0.007 tokens=7 steps=1
        root ended: failed (output_truncated), spent $0.027 tokens=27 steps=4
        root failed, spent $0.027 tokens=27 steps=4
          child failed, spent $0.017 tokens=17 steps=2
        "
    );
}
