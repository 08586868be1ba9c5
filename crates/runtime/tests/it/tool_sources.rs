//! Sources of tools: each is asked once per tree when it starts or is resumed; what it says decides whether the tree
//! runs, and the journal keeps it.

use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use spinney::function_tool::RawCall;
use spinney::tree::verify;
use spinney::{Drivers, FunctionTool, Home, ResumeError, Shutdown, StartError, TreeFile};
use spinney_journal::{HeadCursor, Journal};
use spinney_kernel::definition::Definition;
use spinney_kernel::port::{OfferedTool, Pending, ToolDiscovery, ToolSource};
use spinney_kernel::primitives::{Fault, FaultKind};
use spinney_kernel::record::ExitKind;
use spinney_kernel::world::TreeState;
use spinney_store::MemoryJournal;
use spinney_testkit::scripted::{Script, ScriptedModel};
use spinney_testkit::{Recorder, settled};
use tokio::sync::{Notify, Semaphore};

/// Offers each tree a tool that is named after it, and says so in another way each time.
struct Server {
    asked: AtomicUsize,
    answer: Mutex<Answer>,
    /// A caller is waiting.
    waits: Notify,
    gate: Semaphore,
}

#[derive(Clone)]
enum Answer {
    Offers,
    Waits,
    Never,
    Fails(Fault),
    Nothing,
    Builtin,
}

impl Server {
    fn new(answer: Answer) -> Arc<Self> {
        let (asked, answer) = (AtomicUsize::new(0), Mutex::new(answer));
        Arc::new(Self { asked, answer, waits: Notify::new(), gate: Semaphore::new(0) })
    }
}

/// A server as its driver.
struct Connected(Arc<Server>);

impl ToolSource for Connected {
    fn name(&self) -> &str {
        "server"
    }

    fn tools(&self, discovery: ToolDiscovery) -> Pending<Result<Vec<OfferedTool>, Fault>> {
        let server = Arc::clone(&self.0);
        Box::pin(async move {
            let time = server.asked.fetch_add(1, Ordering::Relaxed) + 1;
            let name = discovery.definition.name.clone();
            let answer = server.answer.lock().unwrap().clone();
            let tool = match answer {
                Answer::Offers => format!("look_{name}"),
                Answer::Waits => {
                    server.waits.notify_one();
                    server.gate.acquire().await.unwrap().forget();
                    format!("look_{name}")
                }
                Answer::Never => pending().await,
                Answer::Fails(fault) => return Err(fault),
                Answer::Nothing => return Ok(Vec::new()),
                Answer::Builtin => "spawn_agent".to_owned(),
            };
            let looks = FunctionTool::sync(move |_: RawCall| Ok::<_, String>(format!("{name} looks")));
            let looks = looks.described(format!("Looks around, said {time} times."));
            Ok(vec![OfferedTool::new(tool.parse().unwrap(), Arc::new(looks))])
        })
    }
}

struct Scene {
    journal: Arc<dyn Journal>,
    server: Arc<Server>,
    model: Arc<Recorder<ScriptedModel>>,
}

impl Scene {
    fn new(answer: Answer) -> Self {
        let script = "
rules:
- { when: { turn: 1, goal_contains: one }, call: [{ tool: look_one, args: {} }] }
- { when: { turn: 1, goal_contains: two }, call: [{ tool: look_two, args: {} }] }
- { think_ms: 60000, say: '{{ last }}' }
";
        let model = Script::parse("s.yaml", script).unwrap().model();
        let journal = Arc::new(MemoryJournal::new());
        Self { journal, server: Server::new(answer), model: Arc::new(Recorder::new(model)) }
    }

    fn drivers(&self) -> Drivers {
        Drivers::new()
            .with_model("m".parse().unwrap(), Arc::clone(&self.model) as _)
            .with_tool_source(Arc::new(Connected(Arc::clone(&self.server))))
    }

    fn home(&self) -> Home {
        Home::open(Arc::clone(&self.journal), self.drivers())
    }

    async fn is_empty(&self) -> bool {
        self.journal.head_page(&[], HeadCursor::START, 1).await.unwrap().heads.is_empty()
    }
}

fn definition(name: &str) -> Definition {
    let file = format!(
        "name: {name}\ngoal: Be {name}.\nmodels: {{ m: {{ provider: scripted, script: none }} }}\nagents: {{ lead: {{ model: m, tools: [look_{name}] }} }}\n"
    );
    TreeFile::parse("tree.yaml", &file).unwrap().definition
}

async fn refused(scene: &Scene) -> String {
    let Err(StartError::NoDriver(error)) = scene.home().start(definition("one")).await else {
        panic!("it started");
    };
    assert!(scene.is_empty().await, "nothing runs, and nothing is written");
    error.to_string()
}

/// Two trees of one home get different tools from one source; a replay does not ask.
#[tokio::test(start_paused = true)]
async fn each_tree_has_the_tools_that_it_was_offered() {
    let scene = Scene::new(Answer::Offers);
    let home = scene.home();
    for name in ["one", "two"] {
        let tree = home.start(definition(name)).await.unwrap();
        let snapshot = settled(&tree).await;
        assert_eq!(snapshot.state, TreeState::Ended(ExitKind::Completed));
        assert!(snapshot.end.unwrap().shown.text.contains(&format!("{name} looks")), "{name}");
        verify(scene.journal.as_ref(), tree.id(), None).await.unwrap();
    }
    assert_eq!(scene.server.asked.load(Ordering::Relaxed), 2);
}

/// A resumed tree asks again for the tools to call, and its model reads what the journal recorded at the start. A tool that
/// is gone keeps the tree from running.
#[tokio::test(start_paused = true)]
async fn a_resumed_tree_keeps_the_tools_of_its_start() {
    let scene = Scene::new(Answer::Offers);
    let first = scene.home();
    let tree = first.start(definition("one")).await.unwrap();
    first.shutdown(Shutdown::Kill).await;

    *scene.server.answer.lock().unwrap() = Answer::Nothing;
    let gone = scene.home().resume(tree.id()).await.err().unwrap();
    assert!(matches!(gone, ResumeError::NoDriver(_)));
    insta::assert_snapshot!(gone, @"role `lead` may call tool `look_one`, but no such tool is registered: register it, or remove it from the role");

    *scene.server.answer.lock().unwrap() = Answer::Offers;
    let second = scene.home();
    let snapshot = settled(&second.resume(tree.id()).await.unwrap()).await;
    assert_eq!(snapshot.state, TreeState::Ended(ExitKind::Completed));
    assert_eq!(scene.server.asked.load(Ordering::Relaxed), 3);
    let attempts = scene.model.attempts();
    let described = attempts.iter().map(|attempt| attempt.packet.tools[0].description.as_str());
    assert!(described.clone().all(|text| text == "Looks around, said 1 times."), "{attempts:?}");
}

/// The tree of a slow source waits alone: another one starts meanwhile, and a shutdown does not wait for it.
#[tokio::test(start_paused = true)]
async fn a_slow_source_holds_up_only_its_own_tree() {
    let scene = Scene::new(Answer::Waits);
    let home = Arc::new(scene.home());
    let start = |name: &'static str| {
        let home = Arc::clone(&home);
        tokio::spawn(async move { home.start(definition(name)).await.map(|tree| tree.id()) })
    };
    let slow = start("one");
    scene.server.waits.notified().await;
    assert!(scene.is_empty().await);
    *scene.server.answer.lock().unwrap() = Answer::Offers;
    start("two").await.unwrap().unwrap();
    assert!(!slow.is_finished());
    scene.server.gate.add_permits(1);
    slow.await.unwrap().unwrap();

    *scene.server.answer.lock().unwrap() = Answer::Waits;
    let slow = start("one");
    scene.server.waits.notified().await;
    home.shutdown(Shutdown::Kill).await;
    assert_eq!(slow.await.unwrap().err(), Some(StartError::Shutdown));
}

#[tokio::test(start_paused = true)]
async fn a_source_that_fails_refuses_the_start_in_words() {
    let message = "no program `tools-server`".to_owned();
    let fault = Fault { message, ..Fault::new(FaultKind::Invalid) };
    insta::assert_snapshot!(refused(&Scene::new(Answer::Fails(fault))).await, @"`server` cannot be used: no program `tools-server`");
    let silent = Fault::new(FaultKind::Auth);
    insta::assert_snapshot!(refused(&Scene::new(Answer::Fails(silent))).await, @"`server` cannot be used: auth");
    insta::assert_snapshot!(refused(&Scene::new(Answer::Never)).await, @"`server` cannot be used: it did not answer within 30 seconds");
    insta::assert_snapshot!(refused(&Scene::new(Answer::Nothing)).await, @"role `lead` may call tool `look_one`, but no such tool is registered: register it, or remove it from the role");
}

#[tokio::test(start_paused = true)]
async fn a_tool_whose_name_is_taken_refuses_the_start() {
    insta::assert_snapshot!(refused(&Scene::new(Answer::Builtin)).await, @"`server` offers tool `spawn_agent`, but there is already one with that name: rename one of them");
    let scene = Scene::new(Answer::Offers);
    let twice = scene.drivers().with_tool_source(Arc::new(Connected(Arc::clone(&scene.server))));
    let error = Home::open(Arc::clone(&scene.journal), twice).start(definition("one")).await.err().unwrap();
    insta::assert_snapshot!(error, @"`server` offers tool `look_one`, but there is already one with that name: rename one of them");
}
