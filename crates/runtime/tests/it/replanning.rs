//! A person changes a pipeline while it runs: an instruction for steps, steps that are not wanted, its end.

use std::sync::Arc;

use spinney::bus::Watch;
use spinney::request::Replan;
use spinney::tree::{RequestError, verify};
use spinney::{Drivers, Home, Tree, TreeFile};
use spinney_journal::{Blocking, Journal};
use spinney_kernel::definition::Refusal;
use spinney_kernel::primitives::{Actor, AgentId, Running};
use spinney_kernel::record::{Event, Exit, NodeEnd, PlanChange, Skip};
use spinney_store::MemoryJournal;
use spinney_testkit::scripted::{Script, ScriptedModel};
use spinney_testkit::{Recorder, recorded};

const SCRIPT: &str = "
rules:
- { when: { last_contains: instruction-of-a-person }, say: 'as told' }
- { when: { agent: drafter }, think_ms: 1000, say: 'a draft' }
- { when: { agent: polisher }, say: 'polish is done' }
- { say: 'outline is done' }
";

struct Stage {
    tree: Tree,
    journal: Arc<dyn Journal>,
    model: Arc<Recorder<ScriptedModel>>,
}

/// A pipeline of three steps whose second runs.
async fn started() -> Stage {
    let file = "
name: report
goal: Write it.
budget: { cost_usd: 1 }
models: { m: { provider: scripted, script: none, price: { input_per_mtok_usd: 1, output_per_mtok_usd: 1 } } }
agents:
  outliner: { model: m }
  drafter: { model: m }
  polisher: { model: m }
pipeline:
  steps:
    - { id: outline, agent_id: outliner, task_description: Outline it., output_to: outline }
    - { id: draft, agent_id: drafter, task_description: Draft it., input_from: [outline], output_to: draft }
    - { id: polish, agent_id: polisher, task_description: Polish it., input_from: ['draft?'], output_to: polished }
";
    let definition = TreeFile::parse("tree.yaml", file).unwrap().definition;
    let model = Arc::new(Recorder::new(Script::parse("s.yaml", SCRIPT).unwrap().model()));
    let drivers = Drivers::new().with_model("m".parse().unwrap(), Arc::clone(&model) as _);
    let journal: Arc<dyn Journal> = Arc::new(MemoryJournal::new());
    let tree = Home::open(Arc::clone(&journal), drivers).start(definition).await.unwrap();
    let mut events = tree.watch(Watch::default());
    let is_draft = |event: &Event| matches!(event, Event::NodeStarted(start) if start.name == "draft");
    while !is_draft(&events.next_event().await.unwrap().unwrap().recorded.event) {}
    model.until_out(1).await;
    Stage { tree, journal, model }
}

fn root() -> AgentId {
    "pipeline".parse().unwrap()
}

impl Stage {
    async fn replan(&self, change: PlanChange, running: Running) -> Result<(), RequestError> {
        let replan = Replan { agent: root(), change, running };
        self.tree.request(Actor::PERSON, replan).await.map(drop)
    }

    /// How each step ended, and the result of the tree.
    async fn end(&self) -> (Vec<(String, NodeEnd)>, Exit, String) {
        self.tree.ended().await;
        let steps = recorded(&self.tree).await.into_iter().filter_map(|recorded| match recorded.event {
            Event::NodeEnded { name, end, .. } if name != "pipeline-1" && !name.starts_with("pipeline") => {
                Some((name, end))
            }
            _ => None,
        });
        let end = self.tree.snapshot().await.unwrap().end.unwrap();
        let verified = verify(self.journal.as_ref(), self.tree.id(), None).wait().unwrap();
        assert!(verified.decided);
        (steps.collect(), end.exit, end.shown.text)
    }

    /// Whether the last model call of an agent read a text.
    fn has_read(&self, agent: &str, text: &str) -> bool {
        let attempts = self.model.attempts();
        let own = attempts
            .iter()
            .rfind(|attempt| attempt.origin.path.last().is_some_and(|id| id.as_str().starts_with(agent)));
        own.is_some_and(|attempt| format!("{:?}", attempt.packet).contains(text))
    }
}

fn instruct(steps: &[&str]) -> PlanChange {
    let steps = steps.iter().map(|step| step.parse().unwrap()).collect();
    PlanChange::Instruct { text: "instruction-of-a-person".to_owned(), steps }
}

/// O18: the step that runs is stopped and begins again with the instruction; what is done stays.
#[tokio::test(start_paused = true)]
async fn o18_a_step_that_runs_begins_again_with_the_instruction() {
    let stage = started().await;
    stage.replan(instruct(&["draft"]), Running::Stops).await.unwrap();
    let (steps, exit, answer) = stage.end().await;
    let [outline, stopped, draft, polish] = &steps[..] else { panic!("{steps:?}") };
    assert_eq!((outline.0.as_str(), outline.1.is_success()), ("outline", true));
    assert!(matches!(&stopped.1, NodeEnd::Failed { retried: true, .. }), "{stopped:?}");
    assert_eq!((draft.0.as_str(), draft.1.is_success(), polish.1.is_success()), ("draft", true, true));
    assert_eq!((exit, answer.as_str()), (Exit::Completed, "polish is done"));
    assert!(stage.has_read("polish", "as told") && !stage.has_read("polish", "instruction-of-a-person"));
    // The first one once, the stopped one, the one that followed, and the last.
    assert_eq!(stage.model.attempts().len(), 4);
}

/// O18: the step that runs finishes, and those after it read the instruction.
#[tokio::test(start_paused = true)]
async fn o18_steps_to_come_read_the_instruction() {
    let stage = started().await;
    stage.replan(instruct(&[]), Running::Finishes).await.unwrap();
    let (steps, _, answer) = stage.end().await;
    assert_eq!((steps.len(), answer.as_str()), (3, "as told"));
    assert!(stage.has_read("polish", "a draft"));
}

#[tokio::test(start_paused = true)]
async fn o18_steps_that_have_not_begun_can_be_skipped() {
    let stage = started().await;
    let skip = |step: &str| PlanChange::Skip { steps: vec![step.parse().unwrap()] };
    let refused = async |step: &str| match stage.replan(skip(step), Running::Finishes).await {
        Err(RequestError::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    };
    for begun in ["outline", "draft"] {
        assert_eq!(refused(begun).await, Refusal::StepBegan { step: begun.to_owned() });
    }
    assert!(matches!(refused("other").await, Refusal::UnknownStep { known, .. } if known.len() == 3));
    stage.replan(skip("polish"), Running::Finishes).await.unwrap();
    let (steps, exit, answer) = stage.end().await;
    assert_eq!(steps[2], ("polish".to_owned(), NodeEnd::Skipped { why: Skip::Person }));
    assert_eq!((exit, answer.as_str()), (Exit::Completed, "a draft"));
}

/// A pipeline that a person ends completes with what is done.
#[tokio::test(start_paused = true)]
async fn o18_a_pipeline_is_ended_with_what_is_done() {
    for running in [Running::Finishes, Running::Stops] {
        let stage = started().await;
        stage.replan(PlanChange::End, running).await.unwrap();
        let (steps, exit, answer) = stage.end().await;
        let is_draft_done = running == Running::Finishes;
        assert_eq!((steps.len(), steps[1].1.is_success()), (2, is_draft_done), "{steps:?}");
        assert_eq!((exit, answer.contains("outline is done")), (Exit::Completed, true), "{answer}");
        assert_eq!(answer.contains("a draft"), is_draft_done, "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_a_person_replans_and_only_a_pipeline() {
    let stage = started().await;
    let replan = |agent: AgentId| Replan { agent, change: PlanChange::End, running: Running::Finishes };
    let by_agent = stage.tree.request(Actor::Agent(root()), replan(root())).await;
    assert!(matches!(by_agent, Err(RequestError::Refused(Refusal::PersonOnly { .. }))), "{by_agent:?}");
    let step = stage.tree.request(Actor::PERSON, replan("draft".parse().unwrap())).await;
    assert!(matches!(step, Err(RequestError::Refused(Refusal::NoGraph { .. }))), "{step:?}");
    stage.end().await;
}

/// An instruction that no step would read is refused, and the most of them bar nothing else.
#[tokio::test(start_paused = true)]
async fn an_instruction_needs_a_step_that_reads_it() {
    let stage = started().await;
    let refused = async |change, running| match stage.replan(change, running).await {
        Err(RequestError::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    };
    for (step, running) in [("outline", Running::Stops), ("draft", Running::Finishes)] {
        let refusal = refused(instruct(&[step]), running).await;
        assert_eq!(refusal, Refusal::StepBegan { step: step.to_owned() });
    }
    for _ in 0..16 {
        stage.replan(instruct(&["polish"]), Running::Finishes).await.unwrap();
    }
    let refusal = refused(instruct(&["polish"]), Running::Finishes).await;
    assert!(matches!(refusal, Refusal::TooMany { count: 17, count_max: 16, .. }), "{refusal:?}");
    stage.replan(PlanChange::End, Running::Stops).await.unwrap();
    stage.end().await;
}
