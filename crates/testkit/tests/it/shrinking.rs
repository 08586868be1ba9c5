//! Rights only shrink downwards, on the real runtime: a child and a grandchild try everything to get more than their
//! parent has, through their tools and through spawns of roles that want everything.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use spinney_drivers::files::{FileTool, Files};
use spinney_kernel::budget::Resource;
use spinney_kernel::context::Message;
use spinney_kernel::definition::{Allow, Approval, Caps, Definition, HostRequests, Network, Recursion};
use spinney_kernel::port::model::ModelAttempt;
use spinney_kernel::primitives::{Body, limit};
use spinney_kernel::record::{Event, ExitKind, Spawned};
use spinney_kernel::world::TreeState;
use spinney_testkit::sim::is_within;
use spinney_testkit::spinney::StartOptions;
use spinney_testkit::spinney::bus::RecordedEvent;
use spinney_testkit::spinney::function_tool::{FunctionTool, RawCall};
use spinney_testkit::spinney::tree::TreeSnapshot;
use spinney_testkit::{TestHome, definition, recorded};

use crate::escape_attempts::{After, Comes, TRIES};
use crate::observed::name;

const SECRET: &str = "SECRET";
const FIXTURE: &str = "root $5.00 tokens=500000 steps=200 tool_calls=200 retries=9 timeout=1000s turns=9 / a later turns=9 / b later turns=9\n\
    root / plain later turns=9\nroot / greedy later turns=9\nroot / online later turns=9\nroot / deepest later turns=9\n\
    root / boss later turns=9\nroot / armed later turns=9\nroot / rich later turns=9\nroot / costly later turns=9\n\
    root / wealthy later turns=9\nroot / outside later turns=9\nroot / sib later turns=9";

/// The most that the child may use.
const CEILING_NANOS: u64 = 500_000_000;
const CHILDREN_MAX: u32 = 2;
const DEPTH_MAX: u32 = 3;

/// A lead with few rights, and roles that want more of each.
fn prison() -> Definition {
    let mut prison = definition(FIXTURE);
    prison.limits.depth_max = DEPTH_MAX;
    prison.goal = "Keep SECRET-goal.".to_owned();
    let allowed = ["b", "plain", "greedy", "online", "deepest", "boss", "armed", "rich", "costly", "wealthy"];
    let tools = [
        "spawn_agent",
        "wait_agent",
        "send_message",
        "followup_task",
        "list_agents",
        "cancel_agent",
        "look",
        "gated",
        "read_file",
        "write_file",
        "list_files",
    ];
    let few = Caps {
        models: Allow::only([name("m")]),
        below: Allow::only([name("m")]),
        tools: Allow::only(tools.map(name)),
        spawn: Allow::only(allowed.map(name)),
        network: Network::Denied,
        host_requests: HostRequests::Refused,
        folders: None,
        depth_max: DEPTH_MAX,
    };
    let all = Caps { network: Network::Denied, ..Caps::all(limit::DEPTH_CAP) };
    for (role, definition) in &mut prison.roles {
        definition.caps = match role.as_str() {
            "root" | "outside" => Caps::all(limit::DEPTH_CAP),
            "greedy" | "wealthy" => all.clone(),
            "online" => Caps { network: Network::Any, ..few.clone() },
            "deepest" => Caps { depth_max: limit::DEPTH_CAP, ..few.clone() },
            "boss" => Caps { spawn: Allow::All, ..few.clone() },
            "armed" => Caps { tools: Allow::only([name("look"), name("run")]), ..few.clone() },
            "rich" | "costly" => Caps { models: Allow::All, below: Allow::All, ..few.clone() },
            _ => few.clone(),
        };
        match role.as_str() {
            "deepest" => definition.recursive = Recursion::Allowed,
            "costly" => definition.model = name("cheap"),
            "wealthy" => {
                definition.budget.limit = definition.budget.limit.with(Resource::Cost, 900_000_000_000);
            }
            _ => {}
        }
        let Some(turns) = definition.turns.as_mut() else { continue };
        match role.as_str() {
            "root" => turns.prompt = Body::text("You know SECRET-prompt."),
            "greedy" => turns.approvals = [(name("gated"), Approval::Allow)].into_iter().collect(),
            "a" => turns.approvals = [(name("gated"), Approval::Deny)].into_iter().collect(),
            _ => {}
        }
        if role.as_str() != "root" {
            turns.children_max = Some(CHILDREN_MAX);
        }
    }
    prison
}

/// What all agents do except the one that tries.
const REST: &str = r#"
  - { when: { goal_contains: Spend }, say: "{% for n in range(80) %}more{% endfor %}", call: [{ tool: look }] }
  - { when: { goal_contains: Fail }, fail: { kind: server } }
  - when: { goal_contains: Deeper, turn: 1 }
    call: [{ tool: spawn_agent, args: { agent: deepest, goal: "{{ goal }} Deeper." } }]
  - when: { goal_contains: Reach, turn: 1 }
    call:
      - { tool: run }
      - { tool: gated }
      - { tool: ask_human, args: { question: May I? } }
      - { tool: spawn_agent, args: { agent: outside, goal: Reach on. } }
      - { tool: spawn_agent, args: { agent: plain, goal: Reach on., model: cheap } }
      - { tool: spawn_agent, args: { agent: wealthy, goal: Spend., budget: { cost_usd: 100 } } }
      - { tool: read_file, args: { path: "../s/outputs/secret.txt" } }
      - { tool: write_file, args: { path: "../s/outputs/secret.txt", text: CHANGED } }
      - { tool: cancel_agent, args: { agent: s } }
  - when: { agent: root, turn: 1 }
    say: SECRET-said
    call:
      - { tool: look, args: { at: SECRET-args } }
      - { tool: spawn_agent, args: { agent: sib, id: s, goal: Stay., detach: true } }
      - { tool: spawn_agent, args: { agent: sib, id: q, goal: Be quick. } }
  - when: { agent: root, turn: 2 }
    call: [{ tool: spawn_agent, args: { agent: a, id: a, goal: Work., budget: { cost_usd: 0.50 } } }]
  - { when: { agent: root, turn: 3 }, call: [{ tool: wait_agent, args: { agents: [s] } }] }
  - { when: { agent: sib, goal_contains: Stay }, think_ms: 60000, say: stayed }
  - { when: { agent: a, turn: 1 }, call: [{ tool: spawn_agent, args: { agent: b, id: b, goal: Work on. } }] }
  - { say: done }
tools: { look: { say: seen } }
"#;

/// A tree after an attempt.
struct Tried {
    attempts: Vec<Arc<ModelAttempt>>,
    recorded: Vec<RecordedEvent>,
    snapshot: TreeSnapshot,
    /// How often a tool ran that no agent below the root may call.
    ran: usize,
    /// Every file of the home that does not belong to the child, the grandchild or anything below them, by path.
    files: BTreeMap<String, String>,
}

/// Runs the tree in which the agent of this role makes these calls in its first turn.
async fn tried(role: &str, calls: &str) -> Tried {
    let script = format!("rules:\n  - {{ when: {{ agent: {role}, turn: 1 }}, call: [{calls}] }}\n{REST}");
    let ran = Arc::new(AtomicUsize::new(0));
    let forbidden = || {
        let ran = Arc::clone(&ran);
        FunctionTool::sync(move |_: RawCall| {
            ran.fetch_add(1, Ordering::Relaxed);
            Ok::<_, String>("it ran")
        })
    };
    let stage = TestHome::new(&script).with_tool("run", forbidden()).with_tool("gated", forbidden());
    let folder = tempfile::tempdir().unwrap();
    let files = Files::default();
    let home = stage.home_with(|drivers| {
        let drivers = drivers.with_workspaces(folder.path().join("workspace"));
        FileTool::ALL
            .into_iter()
            .fold(drivers, |drivers, tool| drivers.with_tool(tool.name(), files.tool(tool)))
    });
    let id = home.draw_id();
    let workspace = folder.path().join("workspace").join(id.to_string());
    for agent in ["root", "s", "q"] {
        let outputs = workspace.join(agent).join("outputs");
        fs::create_dir_all(&outputs).unwrap();
        fs::write(outputs.join("secret.txt"), "SECRET-file").unwrap();
    }
    fs::write(folder.path().join("secret.txt"), "SECRET-file").unwrap();
    let tree = home.start_with(prison(), StartOptions::default().with_id(id)).await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(100_000), tree.ended()).await;
    assert!(ended.is_ok(), "{role} {calls}: it hangs");
    let mut found = BTreeMap::new();
    walk(folder.path(), &workspace, &mut found);
    Tried {
        attempts: stage.model().attempts(),
        recorded: recorded(&tree).await,
        snapshot: tree.snapshot().await.unwrap(),
        ran: ran.load(Ordering::Relaxed),
        files: found,
    }
}

fn walk(at: &Path, workspace: &Path, found: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(at).unwrap().flatten() {
        let path = entry.path();
        let is_theirs =
            at == workspace && !["root", "s", "q"].contains(&&*entry.file_name().to_string_lossy());
        if path.is_dir() && !is_theirs {
            walk(&path, workspace, found);
        } else if path.is_file() {
            let shown = path.to_string_lossy().into_owned();
            found.insert(shown, fs::read_to_string(&path).unwrap_or_default());
        }
    }
}

impl Tried {
    fn spawned(&self) -> impl Iterator<Item = &Spawned> {
        self.recorded.iter().filter_map(|recorded| {
            if let Event::AgentSpawned(spawned) = &recorded.event { Some(spawned.as_ref()) } else { None }
        })
    }

    /// The results of an agent's first calls: text, and whether it was refused.
    fn came_to(&self, agent: &str) -> Vec<(String, bool)> {
        let of = |attempt: &&Arc<ModelAttempt>| attempt.origin.agent().as_str() == agent && attempt.turn == 2;
        let Some(second) = self.attempts.iter().find(of) else { return Vec::new() };
        let result = |message: &Arc<Message>| {
            let Message::Result { text, is_error, .. } = message.as_ref() else { return None };
            Some((text.clone(), *is_error))
        };
        second.packet.messages.iter().filter_map(result).collect()
    }

    /// Every right that an agent has and its parent does not, every ceiling that was exceeded, and everything that was
    /// seen, called or changed and should not have been.
    fn escapes(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut seen = |is_escape: bool, what: String| found.extend(is_escape.then_some(what));
        seen(self.ran > 0, format!("a forbidden tool ran {} times", self.ran));
        for attempt in self.attempts.iter().filter(|attempt| attempt.origin.depth() > 0) {
            let (who, model) = (attempt.origin.agent(), &attempt.model);
            let is_below = attempt.origin.path.iter().any(|agent| agent.as_str() == "a");
            seen(is_below && model.as_str() != "m", format!("{who} called {model}"));
            seen(format!("{:?}", attempt.packet).contains(SECRET), format!("{who} knows a secret"));
            seen(attempt.origin.depth() > DEPTH_MAX as usize, format!("{who} is too deep"));
        }
        let (mut born, mut live) = (BTreeMap::new(), BTreeMap::<&str, u32>::new());
        for recorded in &self.recorded {
            if let Event::AgentSpawned(spawned) = &recorded.event {
                born.insert(spawned.agent.as_str(), spawned.as_ref());
                let Some(parent) = &spawned.parent else { continue };
                let (who, above) = (&spawned.agent, born[parent.as_str()]);
                seen(!is_within(&spawned.caps, &above.caps), format!("{who} has more rights than {parent}"));
                seen(!above.caps.spawn.has(&spawned.role), format!("{parent} spawned {}", spawned.role));
                seen(spawned.due.deadline > above.due.deadline, format!("{who} may take longer"));
                let live = live.entry(parent.as_str()).or_default();
                *live += 1;
                seen(
                    parent.as_str() != "root" && *live > CHILDREN_MAX,
                    format!("{parent} has {live} children"),
                );
            }
            if let Event::AgentEnded { agent, spent, .. } = &recorded.event {
                let own = born[agent.as_str()];
                for resource in Resource::ALL {
                    let above = own
                        .parent
                        .as_ref()
                        .and_then(|parent| born[parent.as_str()].terms.limit.get(resource));
                    let most =
                        own.terms.limit.get(resource).unwrap_or(u64::MAX).min(above.unwrap_or(u64::MAX));
                    seen(
                        spent.get(resource) > most,
                        format!("{agent} used {} {resource}", spent.get(resource)),
                    );
                }
                let is_more = agent.as_str() == "a" && spent.get(Resource::Cost) > CEILING_NANOS;
                seen(is_more, "a used more than it was given".to_owned());
                if let Some(parent) = &own.parent {
                    live.entry(parent.as_str()).and_modify(|live| *live -= 1);
                }
            }
        }
        for (who, how) in [("root", "completed"), ("s", "completed"), ("q", "completed")] {
            let view = self.snapshot.agents.iter().find(|view| view.agent.as_str() == who);
            let is_as_it_should = view.is_some_and(|view| view.status.to_string() == how);
            seen(!is_as_it_should, format!("{who} is {:?}", view.map(|view| view.status)));
        }
        seen(self.files.len() != 4, format!("files came or went: {:?}", self.files));
        for (path, text) in &self.files {
            seen(text != "SECRET-file", format!("{path} says {text}"));
        }
        found
    }
}

/// X6: of over a hundred attempts of a child and a grandchild at more files, models, tools, budget, depth, roles,
/// network, children, knowledge or other agents' ids, none succeeds: each is refused, or changes nothing.
#[tokio::test(start_paused = true)]
async fn x6_of_over_a_hundred_attempts_at_more_than_a_parent_has_none_passes() {
    let (mut tried_in_all, mut born, mut kinds) = (0, 0, BTreeSet::new());
    let mut escapes = Vec::new();
    for role in ["a", "b"] {
        for (after, comes, calls) in TRIES {
            let tried = tried(role, calls).await;
            tried_in_all += 1;
            kinds.insert(after);
            assert_eq!(tried.snapshot.state, TreeState::Ended(ExitKind::Completed), "{role} {calls}");
            let came_to = tried.came_to(role);
            let is_refused = came_to.iter().all(|(_, is_error)| *is_error);
            // The spawned agent may use up the budget, so no other has another turn.
            if comes == Comes::No && (came_to.is_empty() || !is_refused) {
                escapes.push(format!("{role} {calls}: {came_to:?}"));
            }
            escapes.extend(tried.escapes().into_iter().map(|what| format!("{role} {calls}: {what}")));
            let below = |spawned: &&Spawned| !["root", "s", "q", "a", "b"].contains(&spawned.agent.as_str());
            born += tried.spawned().filter(below).count();
        }
    }
    assert!(escapes.is_empty(), "{} escapes:\n{}", escapes.len(), escapes.join("\n"));
    assert!(tried_in_all >= 100 && born >= 40, "{tried_in_all} tried, {born} born");
    for after in [After::Files, After::Models, After::Tools, After::Budget, After::Depth, After::Network] {
        assert!(kinds.contains(&after), "{after:?}");
    }
}

/// The root itself is allowed what is refused below it: this shows that the test above could fail.
#[tokio::test(start_paused = true)]
async fn an_agent_with_the_rights_may_do_what_is_refused_below() {
    let calls = r#"{ tool: run }, { tool: gated }, { tool: look },
      { tool: spawn_agent, args: { agent: outside, goal: Go., model: cheap } },
      { tool: spawn_agent, args: { agent: online, goal: Go. } },
      { tool: spawn_agent, args: { agent: sib, id: s, goal: Go. } },
      { tool: spawn_agent, args: { agent: sib, id: q, goal: Go. } },
      { tool: read_file, args: { path: outputs/secret.txt } }"#;
    let tried = tried("root", calls).await;
    let came_to = tried.came_to("root");
    assert_eq!(
        (came_to.len(), came_to.iter().filter(|(_, is_error)| *is_error).count()),
        (8, 0),
        "{came_to:?}"
    );
    assert_eq!(tried.ran, 2);
    assert!(tried.attempts.iter().any(|attempt| attempt.model.as_str() == "cheap"));
    assert_eq!(came_to[7].0, "SECRET-file");
    let escapes = tried.escapes();
    assert!(escapes.contains(&"a forbidden tool ran 2 times".to_owned()), "{escapes:?}");
}
