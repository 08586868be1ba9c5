//! Each tree has its own drivers: one home runs trees of different files whose models have the same name.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::{BoxFuture, ready};
use spinney::tree::verify;
use spinney::tree_file::TreeFile;
use spinney::{DriverSource, Drivers, Home, NoDriver, ResumeError, Shutdown, StartError};
use spinney_journal::{HeadCursor, Journal};
use spinney_kernel::budget::Resource;
use spinney_kernel::definition::Definition;
use spinney_kernel::primitives::{Body, TreeId};
use spinney_kernel::record::ExitKind;
use spinney_kernel::rules::request::Send;
use spinney_kernel::world::TreeState;
use spinney_store::MemoryJournal;
use spinney_testkit::scripted::Script;
use spinney_testkit::settled;

/// The files by the names of their trees, as a host would know them. `missing` has no file any more.
struct Files;

impl DriverSource for Files {
    fn drivers<'a>(
        &'a self,
        _: TreeId,
        definition: &'a Definition,
    ) -> BoxFuture<'a, Result<Drivers, NoDriver>> {
        let made = match definition.name.as_str() {
            "missing" => Err(NoDriver::Source { message: "missing.yaml is gone".to_owned() }),
            name => {
                let script = format!(
                    "rules:\n- {{ when: {{ turn: 1 }}, call: [{{ tool: look, args: {{}} }}] }}\n- {{ think_ms: 60000, say: {name} answers }}\ntools: {{ look: {{ say: '{name} looks' }} }}"
                );
                let script = Script::parse("script.yaml", &script).unwrap();
                let drivers = Drivers::new().with_model("fast".parse().unwrap(), Arc::new(script.model()));
                Ok(script
                    .tools()
                    .into_iter()
                    .fold(drivers, |drivers, (name, tool)| drivers.with_tool(name, Arc::new(tool))))
            }
        };
        ready(made).boxed()
    }
}

fn definition(name: &str) -> Definition {
    let text = format!(
        "name: {name}\ngoal: Go.\nmodels: {{ fast: {{ provider: scripted, script: {name}.script.yaml }} }}\nagents: {{ lead: {{ model: fast, tools: [look] }} }}\n"
    );
    TreeFile::parse("tree.yaml", &text).unwrap().definition
}

/// Two files with a model `fast` run side by side, are killed in the middle and resumed in one process, each with its own
/// model and tool.
#[tokio::test(start_paused = true)]
async fn two_files_with_a_model_of_one_name_run_in_one_home() {
    let journal: Arc<dyn Journal> = Arc::new(MemoryJournal::new());
    let first = Home::open(Arc::clone(&journal), Files);
    let mut ids = Vec::new();
    for name in ["one", "two"] {
        let tree = first.start(definition(name)).await.unwrap();
        // Killed while its second call runs, which has read the tool's result.
        while tree.snapshot().await.unwrap().agents[0].spent.get(Resource::ToolCalls) == 0 {
            tokio::task::yield_now().await;
        }
        ids.push(tree.id());
        assert_eq!(first.tree(tree.id()).map(|tree| tree.id()), Some(tree.id()));
    }
    first.shutdown(Shutdown::Kill).await;
    assert!(ids.iter().all(|id| first.tree(*id).is_none()));

    let second = Home::open(Arc::clone(&journal), Files);
    let resumed = second.recover().await.unwrap();
    assert_eq!(resumed.iter().map(|(id, _)| *id).collect::<Vec<_>>(), ids);
    for ((id, tree), name) in resumed.into_iter().zip(["one", "two"]) {
        let snapshot = settled(&tree.unwrap()).await;
        assert_eq!(snapshot.state, TreeState::Ended(ExitKind::Completed));
        assert_eq!(snapshot.end.unwrap().shown.text, format!("{name} answers"));
        verify(journal.as_ref(), id, None).await.unwrap();
    }
}

/// A source that cannot make the drivers says why, at the start and when a tree is resumed. A request to such a tree is
/// still possible: nothing is called for it.
#[tokio::test(start_paused = true)]
async fn a_tree_whose_drivers_are_gone_does_not_run_and_takes_requests() {
    let gone = NoDriver::Source { message: "missing.yaml is gone".to_owned() };
    let journal: Arc<dyn Journal> = Arc::new(MemoryJournal::new());
    let home = Home::open(Arc::clone(&journal), Files);
    assert_eq!(home.start(definition("missing")).await.err(), Some(StartError::NoDriver(gone.clone())));
    assert!(home.page(&[], HeadCursor::START, 10).await.unwrap().heads.is_empty());

    let script =
        Script::parse("s.yaml", "rules: [{ think_ms: 60000, say: hm }]\ntools: { look: { say: x } }")
            .unwrap();
    let mut drivers = Drivers::new().with_model("fast".parse().unwrap(), Arc::new(script.model()));
    for (name, tool) in script.tools() {
        drivers = drivers.with_tool(name, Arc::new(tool));
    }
    let with_files = Home::open(Arc::clone(&journal), drivers);
    let id = with_files.start(definition("missing")).await.unwrap().id();
    with_files.shutdown(Shutdown::Kill).await;

    assert_eq!(home.resume(id).await.err(), Some(ResumeError::NoDriver(gone)));
    home.apply(id, Send::plain("lead".parse().unwrap(), Body::text("hello"))).await.unwrap();
    let page = home.page(&[TreeState::Suspended], HeadCursor::START, 10).await.unwrap();
    assert_eq!(page.heads.iter().map(|head| head.tree).collect::<Vec<_>>(), [id]);
}
