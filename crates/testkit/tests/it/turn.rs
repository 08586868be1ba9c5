//! The turn: model, tools, results, model again, until there is an answer or a reason to stop.

use insta::assert_snapshot;
use spinney_testkit::{Scenario, check};

use crate::observed::name;

#[test]
fn an_agent_takes_turns_until_it_answers() {
    assert_snapshot!(check("root $9.00 turns=20", "
        said #1 Let me look. | read {\"path\":\"a\"} | write {}
        done #2
        done #3
        said #4 It says hello.
    "), @"
    #1 ended: done, spent $0.012 tokens=12 steps=1
    #2 asked by root
    #2 started: held tool_calls=1
    #3 asked by root
    #3 started: held tool_calls=1
    #2 ended: done, spent tool_calls=1
    #3 ended: done, spent tool_calls=1
    #4 asked by root
    #4 started: held $0.10 tokens=674 steps=1
    #4 ended: done, spent $0.014 tokens=14 steps=1
    root ended: completed, spent $0.026 tokens=26 steps=2 tool_calls=2
    root completed, spent $0.026 tokens=26 steps=2 tool_calls=2
    ");
}

/// L28: the model's mistakes are returned to it as errors, and the run continues.
#[test]
fn l28_unknown_tools_and_malformed_arguments_are_results_that_the_model_can_act_on() {
    assert_snapshot!(check("root $9.00 turns=20", "
        said #1 Hm. | raed {} | read {\"path\": | read [1] | spawn_agent {\"agent\":\"root\"} | Not A Name {} | spawn_agent {\"agent\":\"nobody\",\"goal\":\"x\"}
        said #2 Then without.
    "), @"
    #1 ended: done, spent $0.003 tokens=3 steps=1
    root tool 0 error: unknown tool `raed`: choose one of `spawn_agent`, `wait_agent`, `send_message`, `followup_task`, `list_agents`, `cancel_agent`, `ask_human`, `read_context`, `write_context`, `list_context`, `run_pipeline`, `wait_message`, `delegate_to_agent`, `hand_back`, `read`, `write`
    root tool 1 error: bad arguments for `read`: EOF while parsing a value at line 1 column 8; write one JSON object with the fields it takes
    root tool 2 error: bad arguments for `read`: they are not a JSON object; write one JSON object with the fields it takes
    root tool 3 error: bad arguments for `spawn_agent`: missing field `goal` at line 1 column 16; write one JSON object with the fields it takes
    root tool 4 error: unknown tool `Not`: choose one of `spawn_agent`, `wait_agent`, `send_message`, `followup_task`, `list_agents`, `cancel_agent`, `ask_human`, `read_context`, `write_context`, `list_context`, `run_pipeline`, `wait_message`, `delegate_to_agent`, `hand_back`, `read`, `write`
    root tool 5 error: unknown role `nobody`: choose one of `root`
    #2 asked by root
    #2 started: held $0.10 tokens=1773 steps=1
    #2 ended: done, spent $0.013 tokens=13 steps=1
    root ended: completed, spent $0.016 tokens=16 steps=2
    root completed, spent $0.016 tokens=16 steps=2
    ");
}

/// L29, L11 (the kernel's part): the turn after the last one is refused with a typed error, and not one more is made.
#[test]
fn l29_a_model_that_calls_tools_for_ever_is_stopped_at_its_limit() {
    let mut play = Scenario::grow("root $9.00 turns=20");
    for turn in 0..20 {
        assert_eq!(play.view("root").status.to_string(), "running");
        play.run(&format!("said #{} Again. | read {{}}\ndone #{}", 2 * turn + 1, 2 * turn + 2));
    }
    assert_snapshot!(play.log().lines().last().unwrap_or_default(), @"root ended: failed (max_steps), spent $0.12 tokens=120 steps=20 tool_calls=20");
    assert_eq!(play.world().agents().all().count(), 1);
    assert!(play.world().is_over());
}

#[test]
fn a_child_returns_its_answer_to_the_tool_call_that_spawned_it() {
    assert_snapshot!(check("root $9.00 turns=20 / helper later turns=3", "
        said #1 You do it. | spawn_agent {\"agent\":\"helper\",\"goal\":\"Help.\",\"id\":\"h\"} | read {}
        said #3 Helped.
        done #4
        said #5 All done.
    "), @"
    #1 ended: done, spent $0.01 tokens=10 steps=1
    h spawned by root: $8.99
    #3 asked by h
    #3 started: held $0.10 tokens=578 steps=1
    #4 asked by root
    #4 started: held tool_calls=1
    h's active time runs: 600000ms left
    #3 ended: done, spent $0.007 tokens=7 steps=1
    h ended: completed, spent $0.007 tokens=7 steps=1
    #2 ended: children h completed, spent nothing
    #4 ended: done, spent tool_calls=1
    #5 asked by root
    #5 started: held $0.10 tokens=815 steps=1
    #5 ended: done, spent $0.009 tokens=9 steps=1
    root ended: completed, spent $0.026 tokens=26 steps=3 tool_calls=1
    root completed, spent $0.026 tokens=26 steps=3 tool_calls=1
      h completed, spent $0.007 tokens=7 steps=1
    ");
}

#[test]
fn a_detached_child_is_heard_of_before_the_next_turn() {
    assert_snapshot!(check("root $9.00 turns=20 / helper later turns=3", "
        said #1 You do it. | spawn_agent {\"agent\":\"helper\",\"goal\":\"Help.\",\"id\":\"h\",\"detach\":true}
        said #2 Helped.
        said #3 I have an answer.
        said #4 And I have read what it found.
    "), @"
    #1 ended: done, spent $0.01 tokens=10 steps=1
    h spawned by root: $8.99
    #2 asked by h
    #2 started: held $0.10 tokens=578 steps=1
    root tool 0 answer: spawned h
    #3 asked by root
    #3 started: held $0.10 tokens=703 steps=1
    h's active time runs: 600000ms left
    #2 ended: done, spent $0.007 tokens=7 steps=1
    h ended: completed, spent $0.007 tokens=7 steps=1
    #3 ended: done, spent $0.017 tokens=17 steps=1
    #4 asked by root
    #4 started: held $0.10 tokens=903 steps=1
    #4 ended: done, spent $0.03 tokens=30 steps=1
    root ended: completed, spent $0.064 tokens=64 steps=4
    root completed, spent $0.064 tokens=64 steps=4
      h completed, spent $0.007 tokens=7 steps=1
    ");
}

#[test]
fn a_redirected_agent_reads_the_instruction_before_it_may_answer() {
    assert_snapshot!(check("root $9.00 turns=20", "
        redirect root Look at the other one.
        said #1 Done with the first.
        said #2 Done with the other.
    "), @"
    root redirected: Look at the other one.
    #1 ended: done, spent $0.02 tokens=20 steps=1
    #2 asked by root
    #2 started: held $0.10 tokens=700 steps=1
    #2 ended: done, spent $0.02 tokens=20 steps=1
    root ended: completed, spent $0.04 tokens=40 steps=2
    root completed, spent $0.04 tokens=40 steps=2
    ");
    assert_snapshot!(check("root $9.00 turns=20", "
        redirect root Look at the other one. stop
        failed #1 stopped
        said #2 Done with the other.
    "), @"
    root redirected: Look at the other one. stop
    #1 ended: failed (Stopped), spent nothing
    #2 asked by root
    #2 started: held $0.10 tokens=677 steps=1
    #2 ended: done, spent $0.02 tokens=20 steps=1
    root ended: completed, spent $0.02 tokens=20 steps=1
    root completed, spent $0.02 tokens=20 steps=1
    ");
}

#[test]
fn an_agent_whose_model_fails_for_good_fails_with_its_code() {
    assert_snapshot!(check("root $9.00 turns=20", "failed #1 invalid\nfailed #1 invalid"), @"
    #1 attempt failed: Invalid, spent nothing
    #1 switched: cheap, cap 100
    #1 started again (2): held $0.01 tokens=578 steps=1 retries=1
    #1 ended: failed (Invalid), spent retries=1
    root ended: failed (model_invalid), spent retries=1
    root failed, spent retries=1
    ");
}

#[test]
fn a_question_is_a_tool_call_that_a_person_answers() {
    assert_snapshot!(check("root $9.00 turns=20", "
        said #1 | ask_human {\"question\":\"Which one?\"}
        answer #2 The left one.
        said #3 Left it is.
    "), @"
    #1 ended: done, spent steps=1
    #2 root asks: Which one?
    #2 ended: answered The left one., spent nothing
    #3 asked by root
    #3 started: held $0.10 tokens=662 steps=1
    #3 ended: done, spent $0.011 tokens=11 steps=1
    root ended: completed, spent $0.011 tokens=11 steps=2
    root completed, spent $0.011 tokens=11 steps=2
    ");
}

#[test]
fn an_agent_may_list_message_wait_for_and_cancel_its_own() {
    assert_snapshot!(check("root $9.00 turns=20 / helper later turns=3", "
        said #1 | spawn_agent {\"agent\":\"helper\",\"goal\":\"One.\",\"id\":\"one\",\"detach\":true} | spawn_agent {\"agent\":\"helper\",\"goal\":\"Two.\",\"id\":\"two\",\"detach\":true}
        said #4 | list_agents {} | send_message {\"to\":\"two\",\"text\":\"hurry\"} | cancel_agent {\"agent\":\"one\"} | cancel_agent {\"agent\":\"root\"}
        failed #2 stopped
        said #5 | wait_agent {\"agents\":[\"one\",\"two\"]} | wait_agent {\"agents\":[\"nobody\"]}
        said #3 Quick.
        said #7 Quicker.
        said #8 All in.
    "), @"
    #1 ended: done, spent steps=1
    one spawned by root: $9.00
    #2 asked by one
    #2 started: held $0.10 tokens=577 steps=1
    root tool 0 answer: spawned one
    two spawned by root: $9.00
    #3 asked by two
    #3 started: held $0.10 tokens=577 steps=1
    root tool 1 answer: spawned two
    #4 asked by root
    #4 started: held $0.10 tokens=806 steps=1
    one's active time runs: 600000ms left
    two's active time runs: 600000ms left
    #4 ended: done, spent steps=1
    root tool 0 answer: root role=root parent=- depth=0 idle
    one role=helper parent=root depth=1 running
    two role=helper parent=root depth=1 running

    message from root to two: hurry
    root tool 1 answer: done
    one ending: cancelled ()
    root tool 2 answer: done
    root tool 3 error: `root` may not do this to `root`: an agent acts for itself, and signals only its descendants
    #5 asked by root
    #5 started: held $0.10 tokens=1273 steps=1
    #2 ended: failed (Stopped), spent nothing
    one ended: cancelled (), spent nothing
    #5 ended: done, spent steps=1
    #6 root waits
    root tool 1 error: unknown agent `nobody`: the tree's events name every agent
    #3 ended: done, spent $0.006 tokens=6 steps=1
    #7 asked by two
    #7 started: held $0.10 tokens=668 steps=1
    #7 ended: done, spent $0.008 tokens=8 steps=1
    two ended: completed, spent $0.014 tokens=14 steps=2
    #6 ended: children one cancelled, two completed, spent nothing
    #8 asked by root
    #8 started: held $0.10 tokens=2840 steps=1
    #8 ended: done, spent $0.007 tokens=7 steps=1
    root ended: completed, spent $0.021 tokens=21 steps=6
    root completed, spent $0.021 tokens=21 steps=6
      one cancelled
      two completed, spent $0.014 tokens=14 steps=2
    ");
}

#[test]
fn a_storm_of_tool_calls_in_one_answer_is_bounded() {
    let mut play = Scenario::grow("root $9.00 turns=2");
    let storm = " | read {}".repeat(5_000);
    play.run(&format!("said #1 Storm.{storm}"));
    let open = play.world().calls().all().count();
    assert_eq!(open, spinney_kernel::primitives::limit::ASKS_MAX);
    for call in 2..2 + open {
        play.run(&format!("done #{call}"));
    }
    assert_eq!(play.view("root").status.to_string(), "running");
    let root = play.world().agents().find(&name("root")).unwrap();
    assert_eq!(play.world().agents().agent(root).open.len(), 1);
}
