//! Loops: an agent that repeats a tool call with the same result is warned, and ends if it continues.

use insta::assert_snapshot;
use spinney_kernel::definition::{Refusal, Repeats};
use spinney_kernel::record::{Event, Exit};
use spinney_kernel::rules::decide;
use spinney_kernel::rules::request::Start;
use spinney_kernel::world::World;
use spinney_testkit::Scenario;

use crate::observed::name;

/// Has an agent make each of these calls in its own turn; each call is followed by its result.
fn turns(play: &mut Scenario, calls: &[(&str, &str)]) {
    for (call, result) in calls {
        if play.world().is_over() {
            return;
        }
        let turn = play.world().calls().all().next().unwrap().0;
        play.run(&format!("said {turn} Hm. | {call}"));
        // A refused call has no call of its own.
        let tool = play.world().calls().all().find(|(_, call)| !call.work.is_turn()).map(|(id, _)| id);
        if let Some(tool) = tool {
            play.run(&format!("done {tool} says={result}"));
        }
    }
}

fn told(play: &Scenario) -> Vec<u32> {
    let events = play.batches().iter().flat_map(|batch| &batch.events);
    let counts = events.filter_map(|event| match event {
        Event::RepeatsNoticed { count, .. } => Some(*count),
        _ => None,
    });
    counts.collect()
}

/// The code of the root's failure, if it has ended.
fn code(play: &Scenario) -> Option<String> {
    let events = play.batches().iter().flat_map(|batch| &batch.events);
    events.into_iter().find_map(|event| match event {
        Event::AgentEnded { agent, exit: Exit::Failed { error }, .. } if *agent == name("root") => {
            Some(error.code.to_string())
        }
        _ => None,
    })
}

const READ: (&str, &str) = ("read {\"path\":\"a\"}", "same");

/// G2: the agent is told after three equal calls in a row, and after six it ends with what it has.
#[test]
fn g2_three_equal_calls_in_a_row_are_told_and_six_end_the_agent() {
    let mut play = Scenario::grow("root $9.00 turns=20 repeats=3,6");
    turns(&mut play, &[READ; 9]);
    assert_snapshot!(play.log(), @"
    #1 ended: done, spent $0.003 tokens=3 steps=1
    #2 asked by root
    #2 started: held tool_calls=1
    #2 ended: done, spent tool_calls=1
    #3 asked by root
    #3 started: held $0.10 tokens=633 steps=1
    #3 ended: done, spent $0.003 tokens=3 steps=1
    #4 asked by root
    #4 started: held tool_calls=1
    #4 ended: done, spent tool_calls=1
    #5 asked by root
    #5 started: held $0.10 tokens=688 steps=1
    #5 ended: done, spent $0.003 tokens=3 steps=1
    #6 asked by root
    #6 started: held tool_calls=1
    #6 ended: done, spent tool_calls=1
    root told: read 3 times in a row, the end is at 6
    #7 asked by root
    #7 started: held $0.10 tokens=952 steps=1
    #7 ended: done, spent $0.003 tokens=3 steps=1
    #8 asked by root
    #8 started: held tool_calls=1
    #8 ended: done, spent tool_calls=1
    #9 asked by root
    #9 started: held $0.10 tokens=1007 steps=1
    #9 ended: done, spent $0.003 tokens=3 steps=1
    #10 asked by root
    #10 started: held tool_calls=1
    #10 ended: done, spent tool_calls=1
    #11 asked by root
    #11 started: held $0.10 tokens=1062 steps=1
    #11 ended: done, spent $0.003 tokens=3 steps=1
    #12 asked by root
    #12 started: held tool_calls=1
    #12 ended: done, spent tool_calls=1
    root ended: failed (loop_detected), spent $0.018 tokens=18 steps=6 tool_calls=6
    ");
    let Some(Event::AgentEnded { exit, said, .. }) = play.batches().last().unwrap().events.last() else {
        panic!("{}", play.log())
    };
    assert!(said.is_some(), "its last text is the partial result");
    assert_snapshot!(exit, @"failed (loop_detected: it called `read` 6 times in a row with the same arguments, and the result was the same each time: say in its prompt what to do instead, or raise `budget.repeats`)");
}

/// G2 (rows): another tool, other arguments or another result start a new row, and an agent may be told once per row.
#[test]
fn whatever_differs_starts_a_new_row() {
    for other in [("write {\"path\":\"a\"}", "same"), ("read {\"path\":\"b\"}", "same"), (READ.0, "other")] {
        let mut play = Scenario::grow("root $9.00 turns=40 repeats=3,6");
        turns(&mut play, &[READ, READ, other, READ, READ, READ, READ, other, READ, READ, READ]);
        assert_eq!(told(&play), [3, 3], "{other:?}");
        assert_eq!(code(&play), None, "{other:?}");
    }
}

/// G2 (waiting and looking): waiting and looking around is not a loop, however often, and ends a row.
#[test]
fn tools_that_wait_or_look_do_not_count() {
    let mut play = Scenario::grow("root $9.00 turns=40 repeats=3,6");
    turns(&mut play, &[("list_agents {}", ""); 12]);
    turns(&mut play, &[READ, READ, ("list_agents {}", ""), READ, READ, ("wait_agent {\"agents\":[]}", "")]);
    assert_eq!((told(&play), code(&play)), (vec![], None), "{}", play.log());
}

/// G2 (refusals): a call that is refused in the same way each time is also a loop.
#[test]
fn calls_that_are_refused_count() {
    let mut play = Scenario::grow("root $9.00 turns=40 repeats=3,6");
    turns(&mut play, &[("raed {}", ""); 9]);
    assert_eq!((told(&play), code(&play).as_deref()), (vec![3], Some("loop_detected")), "{}", play.log());
}

/// G2 (parallel calls): those of one answer count in the order in which the model asked for them, whichever returns
/// first. An agent ends only after a turn in which it could have acted on the notice.
#[test]
fn calls_of_one_answer_count_in_the_order_of_the_asks() {
    let mut play = Scenario::grow("root $9.00 turns=40 repeats=3,6");
    play.run("said #1 Hm. | write {} | read {} | read {} | read {}\ndone #5\ndone #4\ndone #2\ndone #3");
    assert_eq!(told(&play), [3]);
    let mut play = Scenario::grow("root $9.00 turns=40 repeats=3,6");
    play.run("said #1 Hm. | read {} | read {} | read {} | write {}\ndone #2\ndone #3\ndone #4\ndone #5");
    assert_eq!(told(&play), Vec::<u32>::new(), "it went on to something else");
    let mut play = Scenario::grow("root $9.00 turns=40 repeats=3,6");
    let storm = " | read {}".repeat(8);
    play.run(&format!("said #1 Hm.{storm}"));
    for call in 2..10 {
        play.run(&format!("done #{call}"));
    }
    assert_eq!((told(&play), code(&play)), (vec![8], None));
    play.run("said #10 Hm. | read {}\ndone #11");
    assert_eq!((told(&play), code(&play).as_deref()), (vec![8], Some("loop_detected")));
}

/// A message may be why the same call is worth another try.
#[test]
fn a_message_starts_a_new_row() {
    let mut play = Scenario::grow("root $9.00 turns=40 repeats=3,6");
    turns(&mut play, &[READ; 5]);
    play.run("send root try again");
    turns(&mut play, &[READ; 5]);
    assert_eq!((told(&play), code(&play)), (vec![3, 3], None), "{}", play.log());
}

/// G2 (key): `repeats` sets both numbers, and 0 turns one of them off.
#[test]
fn either_number_can_be_changed_or_turned_off() {
    for (repeats, expected) in [
        ("2,3", (vec![2], Some("loop_detected"))),
        ("0,4", (vec![], Some("loop_detected"))),
        ("3,0", (vec![3], None)),
        ("0,0", (vec![], None)),
    ] {
        let mut play = Scenario::grow(&format!("root $9.00 turns=40 repeats={repeats}"));
        turns(&mut play, &[READ; 12]);
        let code = code(&play);
        assert_eq!((told(&play), code.as_deref()), expected, "{repeats}: {}", play.log());
    }
}

#[test]
fn an_end_that_leaves_no_turn_after_the_notice_is_refused() {
    let definition = |repeats| {
        let mut play = Scenario::seed();
        let mut definition = spinney_testkit::definition("root $9.00 turns=5");
        definition.budget.repeats = Some(repeats);
        play.ask(Start::new(definition))
    };
    let refusal = definition(Repeats { notice: 3, end: 3 }).unwrap_err();
    assert_eq!(refusal, Refusal::BadRepeats { notice: 3, end: 3 });
    assert!(definition(Repeats { notice: 0, end: 1 }).is_ok());
}

/// A lead that has the same task done again and gets the same answer is in a loop; children that fail are not the same.
#[test]
fn the_same_task_with_the_same_answer_counts() {
    let fixture = "root $9.00 turns=40 repeats=3,6 / helper later turns=3";
    let spawn = "| spawn_agent {\"agent\":\"helper\",\"goal\":\"Help.\"}";
    let play = |answer: &dyn Fn(u32) -> String| {
        let mut play = Scenario::grow(fixture);
        for round in 0..7 {
            let turn = play.world().calls().all().next().map(|(id, _)| id);
            let Some(turn) = turn else { break };
            play.run(&format!("said {turn} You. {spawn}"));
            let child = play.world().calls().all().find(|(_, call)| call.is_running()).unwrap().0;
            play.run(&answer(round).replace("CALL", &child.to_string()));
        }
        play
    };
    let same = play(&|_| "said CALL Helped.".to_owned());
    assert_eq!((told(&same), code(&same).as_deref()), (vec![3], Some("loop_detected")), "{}", same.log());
    let other = play(&|round| format!("said CALL Helped {round}."));
    assert_eq!((told(&other), code(&other)), (vec![], None));
    let failed = play(&|_| "failed CALL stopped".to_owned());
    assert_eq!((told(&failed), code(&failed)), (vec![], None));
}

/// An agent can make its children stricter, not freer; their role says, or else the tree.
#[test]
fn a_child_repeats_as_its_role_or_the_tree_says_or_less() {
    let repeats = |role: Option<Repeats>, tree: Option<Repeats>, args: &str| {
        let mut play = Scenario::grow_as("root $9.00 turns=40 / helper later turns=3", |definition| {
            definition.budget.repeats = tree;
            definition.roles.values_mut().for_each(|helper| helper.budget.repeats = role);
        });
        let spawn = format!("{{\"agent\":\"helper\",\"goal\":\"Help.\",\"id\":\"h\"{args}}}");
        play.run(&format!("said #1 You. | spawn_agent {spawn}"));
        let child = play.world().agents().find(&name("h")).unwrap();
        let Repeats { notice, end } = play.world().agents().agent(child).terms.repeats;
        (notice, end)
    };
    let of = |notice, end| Some(Repeats { notice, end });
    let given = ",\"budget\":{\"repeats\":{\"notice\":2,\"end\":9}}";
    assert_eq!(repeats(None, None, ""), (3, 6));
    assert_eq!(repeats(None, of(4, 8), ""), (4, 8));
    assert_eq!(repeats(of(5, 7), of(4, 8), ""), (5, 7));
    assert_eq!(repeats(None, None, given), (2, 6));
    assert_eq!(repeats(of(0, 0), None, given), (2, 9));
    assert_eq!(repeats(None, None, ",\"budget\":{\"repeats\":{\"notice\":0,\"end\":2}}"), (0, 2));
    assert_eq!(repeats(None, None, ",\"budget\":{\"repeats\":{\"notice\":0,\"end\":0}}"), (3, 6));
}

/// Trees that started under older rules decide as they did.
#[test]
fn before_rules_5_nobody_counts() {
    let mut play = Scenario::grow_under(4, "root $9.00 turns=40 repeats=3,6");
    turns(&mut play, &[READ; 12]);
    assert_eq!((told(&play), code(&play)), (vec![], None));
    let refused = |rules, budget: &str| {
        let mut play = Scenario::grow_under(rules, "root $9.00 turns=40 / helper later turns=3");
        play.run(&format!(
            "said #1 You. | spawn_agent {{\"agent\":\"helper\",\"goal\":\"Help.\",\"budget\":{budget}}}"
        ));
        play.log().lines().find(|line| line.contains(" error: ")).unwrap_or_default().to_owned()
    };
    assert_snapshot!(refused(4, "{\"tokens\":9,\"repeats\":{}}"), @"root tool 0 error: bad arguments for `spawn_agent`: unknown field `repeats`, expected one of `cost_usd`, `tokens`, `steps`, `tool_calls`, `retries`, `timeout`, `lend`, `answer_reserve`, `on_low`, `wrap_up` at line 1 column 63; write one JSON object with the fields it takes");
    assert_snapshot!(refused(4, "{\"token\":9}"), @"root tool 0 error: bad arguments for `spawn_agent`: unknown field `token`, expected one of `cost_usd`, `tokens`, `steps`, `tool_calls`, `retries`, `timeout`, `lend`, `answer_reserve`, `on_low`, `wrap_up` at line 1 column 50; write one JSON object with the fields it takes");
    assert_snapshot!(refused(5, "{\"token\":9}"), @"root tool 0 error: bad arguments for `spawn_agent`: unknown field `token`, expected one of `cost_usd`, `tokens`, `steps`, `tool_calls`, `retries`, `timeout`, `lend`, `answer_reserve`, `on_low`, `wrap_up`, `repeats` at line 1 column 50; write one JSON object with the fields it takes");
}

/// G2 (crash): whatever was written when the process died, the row continues where it was, and an agent is told and
/// ended at the same calls as without a crash.
#[test]
fn a_crash_in_the_middle_of_a_row_changes_nothing() {
    let mut play = Scenario::grow("root $9.00 turns=20 repeats=3,6");
    turns(&mut play, &[READ; 9]);
    assert_eq!(code(&play).as_deref(), Some("loop_detected"));
    for cut in 1..play.batches().len() {
        let mut world = World::new(play.world().tree());
        play.batches()[..cut].iter().flat_map(|batch| &batch.events).for_each(|event| world.apply(event));
        for batch in &play.batches()[cut..] {
            let decided = decide(&mut world, &batch.input).unwrap().events;
            assert_eq!(decided, batch.events, "after a crash at batch {cut}");
        }
        assert_eq!(world, *play.world(), "after a crash at batch {cut}");
    }
}
