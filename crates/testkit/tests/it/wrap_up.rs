//! The last call of an agent that runs out of room, decision by decision.

use insta::assert_snapshot;
use spinney_testkit::{Scenario, check};

/// It has no tools: if the model calls some anyway, they do not run, and its text is the partial result.
#[test]
fn tools_that_a_last_call_asks_for_are_not_called() {
    assert_snapshot!(check("root turns=2 wrap tools=read", "said #1 Go. | read {}\ndone #2\nsaid #3 So far. | read {}"), @"
    #1 ended: done, spent $0.003 tokens=3 steps=1
    #2 asked by root
    #2 started: held tool_calls=1
    #2 ended: done, spent tool_calls=1
    #3 last call (max_steps; 291 in without 0 messages, 100 out) asked by root
    #3 started: held $0.10 tokens=391 steps=1
    #3 ended: done, spent $0.007 tokens=7 steps=1
    root ended: failed (max_steps), spent $0.01 tokens=10 steps=2 tool_calls=1
    root failed, spent $0.01 tokens=10 steps=2 tool_calls=1
    ");
}

/// After an empty last call the earlier text counts.
#[test]
fn a_last_call_that_says_nothing_leaves_what_was_said_before() {
    let mut play = Scenario::grow("root turns=9 / child later turns=2 wrap tools=read");
    play.run(
        "said #1 Go. | spawn_agent {\"agent\":\"child\",\"goal\":\"Help.\",\"id\":\"child\"}
        said #3 Half. | read {}
        done #4
        said #5 | read {}",
    );
    let contexts = spinney_testkit::contexts_of(
        play.world().tree(),
        play.batches().iter().flat_map(|batch| &batch.events),
    );
    let recorded: Vec<String> = crate::observed::window(&contexts, &crate::observed::name("root"))
        .map(|message| message.text().into_owned())
        .collect();
    assert_snapshot!(recorded.last().unwrap(), @"
    child failed (max_steps: no answer after 2 turns, the most allowed: raise `limits.max_steps`, or ask for less); partial result:
    Half.
    ");
}

/// A last call that fails for good ends its agent as if there had been none; a lost or failed attempt is retried as
/// usual.
#[test]
fn an_agent_whose_last_call_fails_ends_as_it_would_have_without_it() {
    assert_snapshot!(check("root turns=2 wrap tools=read", "said #1 Go. | read {}\ndone #2\nlost #3\nfailed #3 auth\nfailed #3 auth"), @"
    #1 ended: done, spent $0.003 tokens=3 steps=1
    #2 asked by root
    #2 started: held tool_calls=1
    #2 ended: done, spent tool_calls=1
    #3 last call (max_steps; 291 in without 0 messages, 100 out) asked by root
    #3 started: held $0.10 tokens=391 steps=1
    #3 attempt failed: lost, spent $0.10 tokens=391, presumed $0.10 tokens=391
    #3 started again (2): held $0.10 tokens=391 steps=1
    #3 attempt failed: Auth, spent nothing
    #3 switched: cheap, cap 100
    #3 started again (3): held $0.01 tokens=391 steps=1 retries=1
    #3 ended: failed (Auth), spent retries=1
    root ended: failed (max_steps), spent $0.103 tokens=394 steps=1 tool_calls=1 retries=1
    root failed, spent $0.103 tokens=394 steps=1 tool_calls=1 retries=1
    ");
}

/// It replaces a call that can never fit, waits in line like any other, and ends its agent as exhausted.
#[test]
fn a_last_call_takes_the_place_of_one_that_can_never_fit() {
    assert_snapshot!(
        check(
            "root $2.00 reserve=10% / a turns=9 wrap out=1500 tools=read\nroot / b",
            "call b $0.30\nsaid #1 Go. | read {}\ncharge b $0.90\ndone #3\ndone #2 $0.30\nsaid #5 So far.",
        ),
        @"
        #2 asked by b
        #2 started: held $0.30 tokens=300 steps=1
        #1 ended: done, spent $0.003 tokens=3 steps=1
        #3 asked by a
        #3 started: held tool_calls=1
        b charged $0.90
        #3 ended: done, spent tool_calls=1
        #4 asked by a
        #4 ended: refused (cost ceiling of `root`: limit $2.00 less $0.20 in reserve, spent $0.903, held $0.30, asked $1.50: answer with what you have, or ask for less), spent nothing
        #5 last call (cost of root; 303 in without 0 messages, 897 out) asked by a
        #5 waiting: budget of root
        a's active time stands: 600000ms left
        #2 ended: done, spent $0.30 tokens=300 steps=1
        #5 switched: m, cap 597
        #5 started: held $0.597 tokens=900 steps=1
        a's active time runs: 600000ms left
        #5 ended: done, spent $0.007 tokens=7 steps=1
        a ended: exhausted (cost of root), spent $0.01 tokens=10 steps=2 tool_calls=1
        root idle, spent $1.21 tokens=310 steps=3 tool_calls=1, of $2.00
          a exhausted, spent $0.01 tokens=10 steps=2 tool_calls=1
          b idle, spent $1.20 tokens=300 steps=1, of $1.80
        "
    );
}

/// After the root's last call comes the ordinary call that does not fit, which waits for a raise.
#[test]
fn after_the_roots_last_call_the_tree_halts_until_its_ceiling_is_raised() {
    assert_snapshot!(
        check(
            "root $2.00 turns=9 wrap out=1500 tools=read",
            "said #1 Go. | read {}\ncharge root $1.20\ndone #2\nsaid #4 So far.\nraise root $3.00\nsaid #6 All of it.\nsaid #7 All of it.",
        ),
        @"
        #1 ended: done, spent $0.003 tokens=3 steps=1
        #2 asked by root
        #2 started: held tool_calls=1
        root charged $1.20
        #2 ended: done, spent tool_calls=1
        #3 asked by root
        #3 ended: refused (cost ceiling of `root`: limit $2.00, spent $1.203, held $0.00, asked $1.50: answer with what you have, or ask for less), spent nothing
        #4 last call (cost of root; 291 in without 0 messages, 797 out) asked by root
        #4 started: held $0.797 tokens=1088 steps=1
        #4 ended: done, spent $0.007 tokens=7 steps=1
        #5 asked by root
        tree halted: cost of root
        #5 waiting: halted
        root raised by $3.00
        tree unhalted
        message from the runtime to root: The budget was raised. Your last answer is kept as the output so far: continue.
        #5 ended: cancelled, spent nothing
        #6 asked by root
        #6 started: held $1.50 tokens=1957 steps=1
        #6 ended: done, spent $0.01 tokens=10 steps=1
        root ended: completed, spent $1.22 tokens=20 steps=3 tool_calls=1
        stale
        root completed, spent $1.22 tokens=20 steps=3 tool_calls=1
        "
    );
}

/// Below 256 output tokens, or with `wrap_up: off`, there is none: the agent ends, or the tree halts, at once.
#[test]
fn where_there_is_no_room_for_an_answer_there_is_no_last_call() {
    for wrap in ["wrap", ""] {
        let fixture = format!("root $9.00 / a $1.60 turns=9 {wrap} out=1500 tools=read");
        let mut play = Scenario::grow(&fixture);
        play.run("said #1 Go. | read {}\ncharge a $1.40\ndone #2");
        assert!(!play.log().contains("last call"), "{}", play.log());
        assert!(play.log().contains("a ended: exhausted (cost of a)"), "{}", play.log());
    }
}
