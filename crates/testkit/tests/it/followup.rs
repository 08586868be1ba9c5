//! A completed child takes one more task, and still knows what it did.

use insta::assert_snapshot;
use spinney_kernel::primitives::limit;
use spinney_testkit::{Scenario, check};

use crate::observed::name;

const FIXTURE: &str = "root $9.00 turns=20 / helper later turns=3";

#[test]
fn a_completed_child_continues_under_the_next_name() {
    assert_snapshot!(check(FIXTURE, "
        said #1 You do it. | spawn_agent {\"agent\":\"helper\",\"goal\":\"Count the trees.\",\"id\":\"h\"}
        said #3 There are seven.
        said #4 Which ones? | followup_task {\"agent\":\"h\",\"task\":\"Name them.\"}
        said #6 Ash, oak and five more.
        said #7 Thanks.
    "), @"
    #1 ended: done, spent $0.01 tokens=10 steps=1
    h spawned by root: $8.99
    #3 asked by h
    #3 started: held $0.10 tokens=589 steps=1
    h's active time runs: 600000ms left
    #3 ended: done, spent $0.016 tokens=16 steps=1
    h ended: completed, spent $0.016 tokens=16 steps=1
    #2 ended: children h completed, spent nothing
    #4 asked by root
    #4 started: held $0.10 tokens=803 steps=1
    #4 ended: done, spent $0.011 tokens=11 steps=1
    h-2 spawned by root: $8.963
    h-2 told 1 messages as its own of h
    message from root to h-2: You have a new task: see your first message. You still have the context of your earlier work.
    #6 asked by h-2
    #6 started: held $0.10 tokens=772 steps=1
    h-2's active time runs: 600000ms left
    #6 ended: done, spent $0.023 tokens=23 steps=1
    h-2 ended: completed, spent $0.023 tokens=23 steps=1
    #5 ended: children h-2 completed, spent nothing
    #7 asked by root
    #7 started: held $0.10 tokens=1020 steps=1
    #7 ended: done, spent $0.007 tokens=7 steps=1
    root ended: completed, spent $0.067 tokens=67 steps=5
    root completed, spent $0.067 tokens=67 steps=5
      h completed, spent $0.016 tokens=16 steps=1
      h-2 completed, spent $0.023 tokens=23 steps=1
    ");
}

/// It reads its earlier messages, then its new task; nothing of its parent.
#[test]
fn a_followup_knows_what_the_child_knew_and_its_new_task() {
    let mut play = Scenario::grow(FIXTURE);
    play.run(
        "
        said #1 You do it. | spawn_agent {\"agent\":\"helper\",\"goal\":\"Count the trees.\",\"id\":\"h\"}
        said #3 I look. | read {}
        done #4
        said #5 There are seven.
        said #6 Which ones? | followup_task {\"agent\":\"h\",\"task\":\"Name them.\"}
        ",
    );
    let contexts = spinney_testkit::contexts_of(
        play.world().tree(),
        play.batches().iter().flat_map(|batch| &batch.events),
    );
    let texts: Vec<String> =
        crate::observed::window(&contexts, &name("h-2")).map(|message| message.text().into_owned()).collect();
    assert!(texts[0].contains("Your task: Name them."), "{}", texts[0]);
    assert_eq!(texts[1], "I look.");
    assert_eq!(texts[3], "There are seven.");
    assert!(texts[4].starts_with("You have a new task"), "{texts:?}");
    assert_eq!(texts.len(), 5, "{texts:?}");
    let headers = play.world().agents().agent(play.world().agents().find(&name("h-2")).unwrap());
    assert_eq!(headers.progress.window.headers().len(), texts.len());
}

#[test]
fn a_followup_that_cannot_be_is_refused_as_advice() {
    let fixture = "root $9.00 turns=20 / helper later turns=1 / other later turns=3";
    let mut play = Scenario::grow(fixture);
    play.run(
        "
        said #1 Go. | spawn_agent {\"agent\":\"helper\",\"goal\":\"Fail.\",\"id\":\"f\"} | spawn_agent {\"agent\":\"other\",\"goal\":\"Wait.\",\"id\":\"w\",\"detach\":true}
        said #3 I look. | read {}
        done #5
        said #6 Once more. | followup_task {\"agent\":\"f\",\"task\":\"Again.\"} | followup_task {\"agent\":\"w\",\"task\":\"Again.\"} | followup_task {\"agent\":\"root\",\"task\":\"Again.\"} | followup_task {\"agent\":\"nobody\",\"task\":\"Again.\"} | followup_task {\"agent\":\"f\",\"task\":\"\"}
        ",
    );
    let errors: Vec<String> =
        play.log().lines().filter(|line| line.contains("error:")).map(str::to_owned).collect();
    assert_snapshot!(errors.join("\n"), @"
    root tool 0 error: `f` is failed, and its context is gone: spawn another agent with everything it needs to know
    root tool 1 error: `w` is still at work: send it a message, or wait for it
    root tool 2 error: `root` is not a child of `root`: name one of your own children
    root tool 3 error: unknown agent `nobody`: the tree's events name every agent
    root tool 4 error: `f` is failed, and its context is gone: spawn another agent with everything it needs to know
    ");
}

/// What is kept of ended children is bounded: the oldest is dropped first, and everything with the parent.
#[test]
fn only_the_last_few_who_completed_can_be_given_another_task() {
    let mut play = Scenario::grow(FIXTURE);
    let mut call = 1;
    for child in 0..=limit::FINISHED_KEPT_MAX {
        play.run(&format!(
            "said #{call} Go. | spawn_agent {{\"agent\":\"helper\",\"goal\":\"Part {child}.\",\"id\":\"h{child}\"}}\nsaid #{} Done.",
            call + 2
        ));
        call += 3;
    }
    let agents = play.world().agents();
    let finished = |child: usize| {
        let child = agents.find(&name(&format!("h{child}"))).unwrap();
        agents.finished(agents.root().unwrap(), child).is_some()
    };
    assert!(!finished(0) && finished(1) && finished(limit::FINISHED_KEPT_MAX));
    play.run(&format!("said #{call} That is all."));
    let agents = play.world().agents();
    assert!(agents.all().all(|child| agents.finished(agents.root().unwrap(), child).is_none()));
}
