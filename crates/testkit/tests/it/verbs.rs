//! Verbs as other programs see them: each has its own reply type, and requests, replies and views survive
//! serialization.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;
use spinney::tree::TreeSnapshot;
use spinney_kernel::context::Contexts;
use spinney_kernel::primitives::{AgentId, Body, CallId, CheckpointName};
use spinney_kernel::record::WaitReason;
use spinney_kernel::rules::request::{
    Accepted, AskReply, Broadcast, BroadcastReply, Checkpoint, CheckpointReply, HoldReply, OtherReply,
    Outside, Pause, RefreshReply, Reply, Request, RollbackReply, Send, SendReply, SpawnReply, StartReply,
    Unpause, Verb, WaitReply,
};
use spinney_testkit::Scenario;

fn name(text: &str) -> AgentId {
    text.parse().unwrap()
}

fn again<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) {
    let text = serde_json::to_string(value).unwrap();
    assert_eq!(&serde_json::from_str::<T>(&text).unwrap(), value, "{text}");
}

/// One of each; the lists of verbs and of replies grow together.
fn replies() -> Vec<Reply> {
    let checkpoint: CheckpointName = "before".parse().unwrap();
    let (agent, call) = (name("a"), CallId(3));
    vec![
        Accepted {}.into(),
        AskReply { question: call }.into(),
        BroadcastReply { messages: vec![0, 2] }.into(),
        CheckpointReply { name: checkpoint.clone() }.into(),
        HoldReply::Started { call }.into(),
        HoldReply::Waiting { call, why: WaitReason::Paused }.into(),
        HoldReply::Refused { call, refusal: spinney_kernel::definition::Refusal::TreeHalted }.into(),
        RefreshReply { messages: 1 }.into(),
        RollbackReply { agent: agent.clone(), messages: 4, cancelled: vec![name("b")], prior: checkpoint }
            .into(),
        SendReply::Delivered.into(),
        SendReply::Queued.into(),
        SpawnReply { agent: agent.clone(), call: Some(call) }.into(),
        StartReply { agent }.into(),
        WaitReply::Waiting { call, why: WaitReason::Message }.into(),
        WaitReply::Over.into(),
    ]
}

#[test]
fn every_reply_is_the_same_after_it_was_written_and_read() {
    for reply in replies() {
        again(&reply);
    }
}

#[test]
fn a_reply_to_another_verb_is_an_error_and_no_panic() {
    let other = SpawnReply::try_from(Reply::from(SendReply::Queued));
    assert_eq!(other, Err(OtherReply));
    let own = SendReply::try_from(Reply::from(SendReply::Queued));
    assert_eq!(own, Ok(SendReply::Queued));
}

/// A verb that does not mention people from outside is closed to them.
#[test]
fn a_verb_is_closed_to_other_processes_unless_it_opens_itself() {
    let open = [
        Request::from(Pause { agent: name("a") }),
        Unpause::now(name("a")).into(),
        Send::plain(name("a"), Body::text("x")).into(),
        Checkpoint::manual(name("a"), None).into(),
        Broadcast { from: name("a"), to: vec![name("b")], categories: Vec::new() }.into(),
    ];
    let closed =
        [Request::from(Scenario::spawn("a", "b")), Unpause { agent: name("a"), until_resumed: true }.into()];
    assert!(open.iter().all(|request| request.outside() == Outside::Open));
    assert!(closed.iter().all(|request| request.outside() == Outside::Closed));
    open.iter().chain(&closed).for_each(again);
}

#[test]
fn a_view_of_a_tree_is_the_same_after_it_was_written_and_read() {
    let mut play = Scenario::grow("root $9.00 / a / b");
    play.run("call a $0.10\nask b Which?\npause b");
    let snapshot = |play: &Scenario| {
        let mut contexts = Contexts::new(play.world().tree());
        play.batches().iter().flat_map(|batch| &batch.events).for_each(|event| contexts.apply(event));
        TreeSnapshot::at(play.world(), &contexts)
    };
    again(&snapshot(&play));
    play.run("finish root ok\ndone #1 $0.10");
    let ended = snapshot(&play);
    assert_eq!(serde_json::to_value(ended.state).unwrap(), serde_json::json!({ "ended": "completed" }));
    again(&ended);
}
