//! Rights only shrink downwards, and are checked by the kernel, not by the prompt.

use std::collections::BTreeSet;

use proptest::prelude::*;

use spinney_kernel::budget::{Ceilings, Resource};
use spinney_kernel::definition::{
    Allow, BudgetSpec, Caps, Definition, FolderAccess, FolderGrants, HostRequests, Lend, Network, OnLow,
    Refusal, TreeLimits,
};
use spinney_kernel::port::Rights;
use spinney_kernel::primitives::{AgentId, ModelName, ToolName};
use spinney_kernel::record::Event;
use spinney_kernel::rules::request::{Hold, HoldFor, Request, Spawn, SpawnReply};
use spinney_testkit::Scenario;
use spinney_testkit::sim::{deadline, is_within};

use crate::observed::{agent, attempts, births, events, name, refused, taken};

fn models<const N: usize>(names: [&str; N]) -> Allow<ModelName> {
    Allow::list(names.map(name))
}

fn spawn_x(parent: &str, role: &str) -> Spawn {
    Spawn { id: Some(name("x")), ..Scenario::spawn(parent, role) }
}

fn caps_of(play: &Scenario, agent: &str) -> Caps {
    let id: AgentId = name(agent);
    let born = births(play).into_iter().find(|spawned| spawned.agent == id);
    born.map_or_else(|| panic!("{agent} was not spawned"), |spawned| spawned.caps)
}

/// L15: a child whose model is not on its parent's list is refused before any model is called.
#[test]
fn l15_a_model_outside_the_parents_list_is_refused_before_any_call() {
    let mut play = Scenario::grow_as("root / a\nroot / b later", |tree| {
        tree.roles[0].caps.models = models(["m"]);
        tree.roles[2].model = name("cheap");
    });
    let refusal = Refusal::ModelNotAllowed { model: name("cheap"), allowed: vec![name("m")] };
    let by_choice = Spawn { model: Some(name("cheap")), ..spawn_x("root", "a") };
    assert_eq!(refused(&mut play, agent("root", Request::Spawn(by_choice))), refusal);
    assert_eq!(refused(&mut play, agent("root", Request::Spawn(spawn_x("a", "b")))), not_yours("root", "a"));
    assert_eq!(refused(&mut play, agent("a", Request::Spawn(spawn_x("a", "b")))), refusal);
    assert_eq!(attempts(&play), 0);
}

fn not_yours(by: &str, agent: &str) -> Refusal {
    Refusal::NotYours { by: name(by), agent: name(agent) }
}

/// L15: no list and an empty list both allow every model.
#[test]
fn l15_no_list_and_an_empty_list_allow_all() {
    assert_eq!(models([]), Allow::All);
    for list in [Allow::All, models([])] {
        let mut play = Scenario::grow_as("root / a", |tree| tree.roles[0].caps.models = list.clone());
        play.must(Request::Spawn(Spawn { model: Some(name("cheap")), ..spawn_x("root", "a") }));
    }
}

/// L15: a list that shrank to nothing allows nothing: it does not become the empty list that allows all.
#[test]
fn l15_two_lists_with_nothing_in_common_allow_nothing() {
    let shared = models(["m"]).and(&models(["cheap"]));
    assert_eq!(shared, Allow::Only(BTreeSet::new()));
    assert!(!shared.has("m") && !shared.has("cheap"));
}

/// L16 (decision part): lists intersect down the tree.
#[test]
fn lists_of_models_intersect_down_the_tree() {
    let play = Scenario::grow_as("root / a / b", |tree| {
        for role in &mut tree.roles {
            role.1.model = name("cheap");
        }
        tree.roles[0].caps.models = models(["m", "cheap"]);
        tree.roles[1].caps.models = models(["cheap", "free"]);
    });
    assert_eq!(caps_of(&play, "a").models, models(["cheap"]));
    assert_eq!(caps_of(&play, "b").models, models(["cheap"]));
}

/// L18 (decision part): an unknown role, one outside a list of roles, and a tool the parent lacks are typed refusals,
/// and the agent that asked continues.
#[test]
fn a_refused_spawn_is_typed_and_the_agent_continues() {
    let mut play = Scenario::grow_as("root / a\nroot / b\nroot / c", |tree| {
        tree.roles[1].caps.spawn = Allow::only([name("b")]);
        tree.roles[1].caps.tools = Allow::only([name("read"), name("write")]);
    });
    let mut ask = |spawn: Spawn| refused(&mut play, agent("a", Request::Spawn(spawn)));
    let known = vec![name("b")];
    assert_eq!(ask(spawn_x("a", "ghost")), Refusal::UnknownRole { role: name("ghost"), known });
    assert_eq!(ask(spawn_x("a", "c")), Refusal::RoleNotAllowed { role: name("c"), allowed: vec![name("b")] });
    let tools = Some(vec![name("read"), name("run"), name("kill")]);
    let lacking = Refusal::ToolNotAllowed {
        tools: vec![name("kill"), name("run")],
        allowed: vec![name("read"), name("write")],
    };
    assert_eq!(ask(Spawn { tools, ..spawn_x("a", "b") }), lacking);
    play.clear_log().run("spawn a x as b\ncall a $0.10\ndone #1 $0.10\nfinish a ok");
    insta::assert_snapshot!(play.log(), @"
    x spawned by a: no ceiling
    #1 asked by a
    #1 started: held $0.10 tokens=100 steps=1
    #1 ended: done, spent $0.10 tokens=100 steps=1
    a ending: completed
    x ended: cancelled (`a` ended), spent nothing
    a ended: completed, spent $0.10 tokens=100 steps=1
    ");
}

/// A role that lists its tools gets those; asking for another one is asking for more.
#[test]
fn a_spawn_cannot_give_a_role_tools_it_does_not_have() {
    let mut play =
        Scenario::grow_as("root / a", |tree| tree.roles[1].caps.tools = Allow::only([name("read")]));
    let more = Spawn { tools: Some(vec![name("write")]), ..spawn_x("root", "a") };
    let refusal = Refusal::ToolNotAllowed { tools: vec![name("write")], allowed: vec![name("read")] };
    assert_eq!(refused(&mut play, agent("root", Request::Spawn(more))), refusal);
    let none = Spawn { tools: Some(Vec::new()), ..spawn_x("root", "a") };
    play.must(Request::Spawn(none));
    assert_eq!(caps_of(&play, "x").tools, Allow::only([]), "no tools is no tools");
}

/// `r/a w/b` may read `/a` and write `/b`.
fn folders(text: &str) -> Option<FolderGrants> {
    Some(text.split_whitespace().fold(FolderGrants::default(), |grants, word| {
        let (access, path) = word.split_at(1);
        grants.with(name(path), if access == "w" { FolderAccess::Write } else { FolderAccess::Read })
    }))
}

/// L8: folders only shrink downwards: a role that lists none gets its parent's, one that lists more is refused with what
/// is too much, and one with an empty list has none.
#[test]
fn l8_folders_only_shrink_downwards() {
    let table = [
        // The parent, the role, what its agent has.
        (None, None, Ok(None)),
        (None, Some(""), Ok(Some(""))),
        (None, Some("r/a"), Err("r/a")),
        (Some("r/a w/b"), None, Ok(Some("r/a w/b"))),
        (Some("r/a w/b"), Some(""), Ok(Some(""))),
        (Some("r/a w/b"), Some("r/a/x r/b"), Ok(Some("r/a/x r/b"))),
        (Some("r/a w/b"), Some("w/a r/b r/c"), Err("w/a r/c")),
        (Some("w/a r/a/kept"), Some("w/a"), Err("w/a/kept")),
        (Some("w/a r/a/kept"), Some("w/a r/a/kept"), Ok(Some("w/a r/a/kept"))),
    ];
    for (parent, role, has) in table {
        let mut play = Scenario::grow_as("root / a later", |tree| {
            tree.folders = parent.and_then(folders);
            tree.roles[1].caps.folders = role.and_then(folders);
        });
        let asked = play.ask(spawn_x("root", "a")).map(|_| ());
        match has {
            Ok(has) => {
                assert_eq!(asked, Ok(()), "{parent:?} {role:?}");
                assert_eq!(caps_of(&play, "x").folders, has.and_then(folders), "{parent:?} {role:?}");
            }
            Err(beyond) => {
                let refusal = Refusal::FolderNotAllowed {
                    folders: folders(beyond).unwrap_or_default(),
                    allowed: parent.and_then(folders).unwrap_or_default(),
                };
                assert_eq!(asked, Err(refusal), "{parent:?} {role:?}");
            }
        }
    }
}

fn path() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(vec!["a", "b", "ab"]), 1..5)
        .prop_map(|names| format!("/{}", names.join("/")))
}

fn grants() -> impl Strategy<Value = FolderGrants> {
    let word = (prop::bool::ANY, path()).prop_map(|(writes, path)| {
        let access = if writes { "w" } else { "r" };
        format!("{access}{path}")
    });
    prop::collection::vec(word, 0..5).prop_map(|words| folders(&words.join(" ")).unwrap_or_default())
}

proptest! {
    /// L8: what is not beyond a parent's folders allows nothing at any path that the parent's do not allow, and what is
    /// beyond them is named at a path where it is.
    #[test]
    fn l8_what_is_covered_allows_nothing_more_at_any_path(own in grants(), parent in grants(), at in path()) {
        let beyond = own.beyond(&parent);
        if beyond.is_empty() {
            prop_assert!(own.access(&name(&at)) <= parent.access(&name(&at)));
        }
        for (path, access) in beyond.iter() {
            prop_assert_eq!(own.access(path), Some(access));
            prop_assert!(parent.access(path) < Some(access));
        }
    }
}

/// G26 (decision part): a child connects at most where its parent does, by the text of the rules.
#[test]
fn g26_a_child_connects_at_most_where_its_parent_does() {
    let parent = Caps { network: Network::hosts([name("*.example.org")]), ..Caps::all(3) };
    let child = |rule: &str| Caps { network: Network::hosts([name(rule)]), ..Caps::all(3) };
    let narrowed = parent.narrowed(&child("a.example.org:443")).map(|caps| caps.network);
    assert_eq!(narrowed, Ok(Network::hosts([name("a.example.org:443")])));
    assert_eq!(
        parent.narrowed(&Caps { network: Network::Denied, ..Caps::all(3) }).map(|caps| caps.network),
        Ok(Network::Denied)
    );
    let refused = parent.narrowed(&child("example.org")).map(drop);
    let (hosts, allowed) = (Network::hosts([name("example.org")]), parent.network.clone());
    assert_eq!(refused, Err(Refusal::HostNotAllowed { hosts, allowed }));
    let refusal = refused.err().map(|refusal| refusal.to_string()).unwrap_or_default();
    insta::assert_snapshot!(refusal, @"not granted here: `example.org`; granted here is `*.example.org`: do without, or ask a person to grant it");
    assert_eq!(
        parent.narrowed(&Caps { network: Network::Any, ..Caps::all(3) }).map(drop),
        Err(Refusal::NetworkNotAllowed)
    );
}

/// The root has what its role lists, and otherwise what the tree lists. A driver gets both by path.
#[test]
fn the_root_has_the_folders_of_its_role_or_of_the_tree() {
    let play = Scenario::grow_as("root / a", |tree| tree.folders = folders("r/data w/data/out"));
    assert_eq!(caps_of(&play, "root").folders, folders("r/data w/data/out"));
    let rights = Rights::from(&caps_of(&play, "a"));
    let expected = Rights::none()
        .with_network(Network::Any)
        .with_folder("/data", FolderAccess::Read)
        .with_folder("/data/out", FolderAccess::Write);
    assert_eq!(rights, expected);
    let play = Scenario::grow_as("root / a", |tree| {
        tree.folders = folders("r/data");
        tree.roles[0].caps.folders = folders("r/other");
    });
    assert_eq!(caps_of(&play, "root").folders, folders("r/other"));
    let refusal = Refusal::FolderNotAllowed {
        folders: folders("w/b").unwrap_or_default(),
        allowed: FolderGrants::default(),
    };
    insta::assert_snapshot!(refusal, @"not granted here: write `/b`; granted here is no folder: do without, or ask a person to grant it");
}

/// Journals from before folders have none and are written as before.
#[test]
fn rights_without_folders_are_written_as_they_always_were() {
    let caps = serde_json::to_string(&Caps::all(3)).unwrap_or_default();
    assert_eq!(caps, r#"{"models":"all","tools":"all","spawn":"all","network":"granted","depth_max":3}"#);
    assert_eq!(serde_json::from_str::<Caps>(&caps).ok().and_then(|caps| caps.folders), None);
    let caps = Caps { folders: folders("r/a"), ..Caps::all(3) };
    let text = serde_json::to_string(&caps).unwrap_or_default();
    assert!(text.contains(r#""folders":{"read":["/a"]}"#), "{text}");
    assert_eq!(serde_json::from_str::<Caps>(&text).ok(), Some(caps));
}

/// A set of rights is within another only if each right is.
#[test]
fn rights_with_one_more_of_anything_are_not_within() {
    let base = Caps {
        models: Allow::only([name("m")]),
        below: Allow::only([name("m")]),
        tools: Allow::only([name("read")]),
        spawn: Allow::only([name("a")]),
        network: Network::Denied,
        host_requests: HostRequests::Refused,
        folders: None,
        depth_max: 2,
    };
    assert!(is_within(&base, &base) && is_within(&base, &Caps::all(2)));
    for more in [
        Caps { models: Allow::All, ..base.clone() },
        Caps { models: Allow::only([name("m"), name("cheap")]), ..base.clone() },
        Caps { below: Allow::All, ..base.clone() },
        Caps { tools: Allow::All, ..base.clone() },
        Caps { tools: Allow::only([name("run")]), ..base.clone() },
        Caps { spawn: Allow::All, ..base.clone() },
        Caps { spawn: Allow::only([name("a"), name("b")]), ..base.clone() },
        Caps { network: Network::Any, ..base.clone() },
        Caps { host_requests: HostRequests::Ask, ..base.clone() },
        Caps { folders: folders("r/data"), ..base.clone() },
        Caps { depth_max: 3, ..base.clone() },
    ] {
        assert!(!is_within(&more, &base), "{more:?}");
    }
}

/// Roles that want everything, or more of one right, below a lead that has little.
fn prison(tree: &mut Definition) {
    tree.limits = TreeLimits { depth_max: 4, ..tree.limits };
    let lead = Caps {
        models: Allow::only([name("m")]),
        below: Allow::only([name("m")]),
        tools: Allow::only([name("read"), name("write")]),
        spawn: Allow::only(
            ["a", "b", "greedy", "online", "deep", "boss", "armed", "rich", "housed"].map(name),
        ),
        network: Network::Denied,
        host_requests: HostRequests::Refused,
        folders: None,
        depth_max: 3,
    };
    for (role, definition) in &mut tree.roles {
        definition.caps = match role.as_str() {
            "greedy" => Caps::all(99),
            "online" => Caps { network: Network::Any, ..lead.clone() },
            "deep" => Caps { depth_max: 99, ..lead.clone() },
            "boss" => Caps { spawn: Allow::All, ..lead.clone() },
            "armed" => Caps { tools: Allow::only([name("read"), name("run")]), ..lead.clone() },
            "rich" => Caps { models: Allow::All, below: Allow::All, ..lead.clone() },
            "housed" => Caps { folders: folders("w/data"), ..lead.clone() },
            _ => lead.clone(),
        };
    }
    tree.models[0].fallback = vec![name("cheap")];
}

/// What a spawn may ask for beyond its role.
fn wishes() -> Vec<Spawn> {
    let base = spawn_x("root", "a");
    let cost = |nanos| BudgetSpec::with_limit(Ceilings::NONE.with(Resource::Cost, nanos));
    let lend = BudgetSpec { lend: Some(Lend::Yes), ..cost(1_000_000_000_000) };
    let downgrade = BudgetSpec { on_low: Some(OnLow::Downgrade(name("cheap"))), ..cost(1_000_000_000) };
    let all = [name("read"), name("write"), name("run")];
    vec![
        base.clone(),
        Spawn { model: Some(name("cheap")), ..base.clone() },
        Spawn { model: Some(name("free")), ..base.clone() },
        Spawn { tools: Some(vec![name("run")]), ..base.clone() },
        Spawn { tools: Some(all.to_vec()), ..base.clone() },
        Spawn { budget: cost(1_000_000_000_000), ..base.clone() },
        Spawn { budget: lend, ..base.clone() },
        Spawn { budget: downgrade, ..base.clone() },
        Spawn { budget: BudgetSpec { timeout_ms: Some(99_000), ..BudgetSpec::default() }, ..base },
    ]
}

/// X6 (decision part: files are the sandbox's): of over a hundred attempts to get more models, tools, network, roles,
/// depth, time or money through a spawn, none gets anything its parent does not have.
#[test]
fn x6_no_spawn_gets_more_than_its_parent_has() {
    let fixture = "root $1.00 timeout=60s / a / b\nroot / greedy\nroot / online\nroot / deep\nroot / boss\n\
                   root / armed\nroot / rich\nroot / housed\nroot / outside";
    let seed = Scenario::grow_as("root $1.00 timeout=60s / a / b", |tree| {
        let plants = spinney_testkit::fixture::plants(fixture);
        tree.roles = spinney_testkit::fixture::definition(&plants).roles;
        prison(tree);
    });
    let (mut tried, mut born) = (0, 0);
    for parent in ["root", "a", "b"] {
        for role in ["greedy", "online", "deep", "boss", "armed", "rich", "housed", "outside"] {
            for wish in wishes() {
                let mut play = seed.clone();
                let request = Spawn { parent: name(parent), role: name(role), ..wish };
                tried += 1;
                if play
                    .ask_as(spinney_kernel::primitives::Actor::Agent(name(parent)), Request::Spawn(request))
                    .is_ok()
                {
                    born += 1;
                    escape(&mut play, parent);
                }
            }
        }
    }
    assert!(tried > 100 && born > 10, "{tried} tried, {born} born");
}

/// What agent `x`, once spawned, still may not have or do.
fn escape(play: &mut Scenario, parent: &str) {
    let (own, above) = (caps_of(play, "x"), caps_of(play, parent));
    assert!(is_within(&own, &above), "{own:?} is more than {above:?}");
    let deadline = |agent: &str| {
        let ix = play.world().agents().find(&name(agent)).unwrap_or_else(|| panic!("{agent} lives"));
        deadline(play.world(), ix)
    };
    assert!(deadline("x") <= deadline(parent) && deadline("x").is_some());
    for model in ["cheap", "free"] {
        let effect = HoldFor::Model { model: Some(name(model)), input_tokens: 0, output_cap: None };
        let refusal = refused(play, agent("x", Request::Hold(Hold { agent: name("x"), effect })));
        assert!(matches!(refusal, Refusal::ModelNotAllowed { .. }), "{refusal:?}");
    }
    let tool: ToolName = name("run");
    let effect = HoldFor::Tool { tool, args: String::new(), cost_nanos_max: 0, lost: Default::default() };
    let refusal = refused(play, agent("x", Request::Hold(Hold { agent: name("x"), effect })));
    assert!(matches!(refusal, Refusal::ToolNotAllowed { .. }), "{refusal:?}");
    let outside = Spawn { id: Some(name("y")), ..Scenario::spawn("x", "outside") };
    let refusal = refused(play, agent("x", Request::Spawn(outside)));
    assert!(matches!(refusal, Refusal::RoleNotAllowed { .. } | Refusal::DepthLimit { .. }), "{refusal:?}");
    let mut last = "x".to_owned();
    for role in ["a", "b", "greedy", "online", "deep", "boss"] {
        if let Ok(SpawnReply { agent, .. }) = play.ask(Scenario::spawn(&last, role)) {
            last = agent.to_string();
        }
    }
    assert!(play.view(&last).depth <= 3);
    play.run("call x $0.90\ncall x $0.90\ncall x $5.00\nfailed #1 server\npass 1s");
    assert!(taken(play, "root", Resource::Cost) <= 1_000_000_000);
    assert!(!events(play).iter().any(|event| matches!(event, Event::CallSwitched { .. })));
}
