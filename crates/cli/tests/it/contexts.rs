//! Contexts and windows as people see them: everything an agent knows, which part its window holds, and how people
//! change both.

use serde_json::{Value, json};

use crate::test_folder::{TestFolder, steady};

/// A lead whose window is soon full, and a tool that returns a few lines.
const CUT: &str = "
rules:
  - when: { turn: 5 }
    say: Enough is known.
  - say: 'Look {{ turn }}.'
    call: [ { tool: look, args: { number: '{{ turn }}' } } ]
tools:
  look:
    repeatable: true
    say: 'Line one of look {{ args.number }}.

      Line two of look {{ args.number }}, which is quite a bit longer than the first one: it goes on about this and that, about
      what was seen and what was not, about those who were there and those who came later, about the weather, the price
      of milk and the state of the roads, and then it is over.'
";
const WINDOW: &str = "window: { size: 512 }";

/// A tree with a second agent, which the lead spawns.
fn tree(stage: &TestFolder, lead: &str, helper: &str, script: &str) -> String {
    stage.file("tree.script.yaml", script);
    let text = format!(
        "name: test\ngoal: Try it.\nbudget: {{ cost_usd: 1 }}\nmodels:\n  fast: {{ provider: scripted, script: \
         tree.script.yaml, price: {{ input_per_mtok_usd: 0.25, output_per_mtok_usd: 1.25 }} }}\nentry: lead\n\
         agents:\n  lead: {{ model: fast, prompt: You lead., {lead} }}\n  helper: {{ model: fast, prompt: You help., \
         {helper} }}\n"
    );
    stage.file("tree.yaml", &text)
}

fn cut(stage: &TestFolder, script: &str) -> String {
    tree(stage, &format!("tools: [look], {WINDOW}"), "tools: []", script)
}

fn refused(stage: &TestFolder, args: &[&str]) -> String {
    let ended = stage.spinney(args);
    assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{}", ended.err);
    steady(&ended.err)
}

/// What a command prints to standard error.
fn noted(stage: &TestFolder, args: &[&str]) -> String {
    let ended = stage.spinney(args);
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), ""), "{}", ended.err);
    steady(&ended.err)
}

fn places(messages: &[Value], place: &str) -> usize {
    messages.iter().filter(|message| message["place"] == json!(place)).count()
}

#[test]
fn a_context_is_shown_whole_and_says_what_the_window_leaves_out() {
    let stage = TestFolder::new();
    assert_eq!(stage.spinney(&["run", &cut(&stage, CUT)]).code, Some(0));
    insta::assert_snapshot!(stage.said(&["show", "lead"]), @r#"
    lead of tree [id]: completed, as of event 31
    10 messages, 4 of them left out of its window

    #1  system · system · 76 tokens
        You lead.

        Tools you may use:
        - look:

        When you are done, answer with a clear summary of the result.

        Your task: Try it.

    #2  dialog · assistant · 6 tokens out, 37 as input · left out
        Look 1.
        calls look {"number":"1"}

    #3  output · tool · from look · 116 tokens · left out
        Line one of look 1.
        Line two of look 1, which is quite a bit longer than the first one: it goes on about this and that, about what was seen and what was not, about those who were there and those who came later, about the weather, the price of milk and the state of the roads, and then it is over.
        [you have left $0.9999735]

    #4  dialog · assistant · 6 tokens out, 37 as input · left out
        Look 2.
        calls look {"number":"2"}

    #5  output · tool · from look · 116 tokens · left out
        Line one of look 2.
        Line two of look 2, which is quite a bit longer than the first one: it goes on about this and that, about what was seen and what was not, about those who were there and those who came later, about the weather, the price of milk and the state of the roads, and then it is over.
        [you have left $0.99990875]

    #6  dialog · assistant · 6 tokens out, 37 as input
        Look 3.
        calls look {"number":"3"}

    #7  output · tool · from look
        Line one of look 3.
        Line two of look 3, which is quite a bit longer than the first one: it goes on about this and that, about what was seen and what was not, about those who were there and those who came later, about the weather, the price of milk and the state of the roads, and then it is over.
        [you have left $0.99980575]

    #8  dialog · assistant · 6 tokens out, 37 as input
        Look 4.
        calls look {"number":"4"}

    #9  output · tool · from look · 116 tokens
        Line one of look 4.
        Line two of look 4, which is quite a bit longer than the first one: it goes on about this and that, about what was seen and what was not, about those who were there and those who came later, about the weather, the price of milk and the state of the roads, and then it is over.
        [you have left $0.999725]

    #10  dialog · assistant · 4 tokens out, 12 as input
        Enough is known.
    "#);
    let whole = stage.spinney(&["show", "last", "lead", "--json"]);
    insta::assert_snapshot!(steady(whole.out.lines().nth(1).unwrap()), @r#"{"number":2,"category":"dialog","role":"assistant","from":null,"tokens":37,"place":"left_out","is_error":false,"text":"Look 1.","asks":[{"id":"call_1_1","tool":"look","args":"{\"number\":\"1\"}"}],"output_tokens":6}"#);
}

#[test]
fn a_window_is_shown_with_its_shares_and_what_was_left_out() {
    let stage = TestFolder::new();
    assert_eq!(stage.spinney(&["run", &cut(&stage, CUT)]).code, Some(0));
    insta::assert_snapshot!(stage.said(&["window", "lead"]), @"
    lead of tree [id]: completed, as of event 31
      size      512 tokens: set by role `lead`
      preset    tools
      used      458 tokens of 7 messages, 89 %
      left out  4 messages of 306 tokens; last cut by event 22
      in short  64 tokens of context summarise what was left out
      prefix    3 of the 4 after the first extend the one before; the last that does not (event 24) differs from the digest on, after 1 message

      ██████████▓▓▓▓▓▓▓▓▓▒▒▒▒▒▒▒▒▒▒▒▒░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░········

       CATEGORY  USED  SHARE  LEFT OUT
    █  system      76     51
    ▓  context     64    153
    ▒  dialog      86    204  2 messages of 74 tokens
    ░  output     232    102  2 messages of 232 tokens
    ");
    insta::assert_snapshot!(stage.said(&["window", "last", "lead", "--json"]), @r#"{"tree":"[tree]","agent":"lead","state":"completed","seq":31,"size":512,"because":"set by role `lead`","preset":"tools","used":458,"messages":7,"unread":0,"images":0,"percent":89,"left_out":{"messages":4,"tokens":306},"images_left_out":0,"last_cut":22,"in_short":64,"summary":null,"prefix":{"packets":5,"diverged":1,"last":{"seq":24,"section":"digest","same_messages":1}},"thread":null,"categories":[{"category":"system","share":51,"used":76,"left_out":{"messages":0,"tokens":0}},{"category":"context","share":153,"used":64,"left_out":{"messages":0,"tokens":0}},{"category":"dialog","share":204,"used":86,"left_out":{"messages":2,"tokens":74}},{"category":"output","share":102,"used":232,"left_out":{"messages":2,"tokens":232}}]}"#);
}

#[test]
fn a_window_without_a_bound_says_so() {
    let stage = TestFolder::new();
    assert_eq!(stage.spinney(&["run", &stage.tree("", "rules: [ { say: done } ]")]).code, Some(0));
    insta::assert_snapshot!(stage.said(&["window", "lead"]), @"
    lead of tree [id]: completed, as of event 5
      size      no bound: role, model and spawner set none, so each call sends everything
      used      56 tokens of 2 messages
      left out  nothing

      ████████████████████████████████████████████████████████████▒▒▒▒▒▒▒▒▒▒▒▒

       CATEGORY  USED  LEFT OUT
    █  system      47
    ▒  dialog       9
    ");
}

#[test]
fn a_window_that_follows_from_its_model_says_so() {
    let stage = TestFolder::new();
    let tree = stage.tree("", "rules: [ { say: done } ]");
    let text = std::fs::read_to_string(&tree).unwrap().replace("provider:", "context: 1000, provider:");
    assert_eq!(stage.spinney(&["run", &stage.file("tree.yaml", &text)]).code, Some(0));
    let window = stage.said(&["window", "lead"]);
    insta::assert_snapshot!(window.lines().nth(1).unwrap(), @"  size      850 tokens: 85 % of the context of model `fast`");
}

/// P1: in a window of 100,000 tokens each category has exactly its share of the preset, and together they do not exceed
/// the window. With another size every share changes at once.
#[test]
fn p1_shares_are_those_of_the_preset_and_follow_the_size() {
    let shares = |window: &str| {
        let stage = TestFolder::new();
        let tree =
            tree(&stage, &format!("tools: [], window: {window}"), "tools: []", "rules: [ { say: done } ]");
        assert_eq!(stage.spinney(&["run", &tree]).code, Some(0));
        let shown = stage.spinney(&["window", "lead", "--json"]).result();
        let share =
            |row: &Value| (row["category"].as_str().unwrap().to_owned(), row["share"].as_u64().unwrap());
        let shares: Vec<(String, u64)> = shown["categories"].as_array().unwrap().iter().map(share).collect();
        assert!(shares.iter().map(|(_, share)| share).sum::<u64>() <= shown["size"].as_u64().unwrap());
        let words: Vec<String> =
            shares.iter().map(|(category, share)| format!("{category} {share}")).collect();
        words.join(", ")
    };
    let tools = "system 10000, context 30000, dialog 40000, output 20000";
    assert_eq!(shares("{ size: 100000 }"), tools);
    assert_eq!(shares("{ size: 100000, preset: tools }"), tools);
    let dialog = "system 10000, context 35000, dialog 50000, output 5000";
    assert_eq!(shares("{ size: 100000, preset: dialog }"), dialog);
    assert_eq!(shares("{ size: 50000 }"), "system 5000, context 15000, dialog 20000, output 10000");
    assert_eq!(shares("{ size: 8191 }"), "system 819, context 2457, dialog 3276, output 1638");
}

/// P7: 4 of 20 messages fit; all are on disk, and only the packet was cut.
#[test]
fn p7_show_lists_all_twenty_messages_of_which_four_fit() {
    let stage = TestFolder::new();
    let script = format!(
        "rules: [ {{ when: {{ turn: 10 }}, say: Enough. }}, {{ call: [ {{ tool: look, args: {{ number: '{{{{ turn }}}}' }} }} ] }} ]\n\
         tools: {{ look: {{ repeatable: true, say: 'Look {{{{ args.number }}}}: {}' }} }}",
        "some words ".repeat(75)
    );
    assert_eq!(stage.spinney(&["run", &cut(&stage, &script)]).code, Some(0));
    let messages = stage.spinney(&["show", "lead", "--json"]).json();
    let results = messages.iter().filter(|message| message["role"] == json!("tool"));
    for (message, number) in results.zip(1..) {
        assert!(message["text"].as_str().unwrap().starts_with(&format!("Look {number}: some")), "{message}");
    }
    assert_eq!(messages.len(), 20);
    assert_eq!(["window", "left_out", "unread"].map(|place| places(&messages, place)), [4, 16, 0]);
    insta::assert_snapshot!(stage.said(&["show", "lead"]).lines().nth(1).unwrap(), @"20 messages, 16 of them left out of its window");
}

/// P8: a packet with messages of every possible category is read without an error. INTERNAL messages appear in no
/// history that people see and in no event on the bus.
#[test]
fn p8_every_category_is_read_and_internal_ones_are_neither_shown_nor_shared() {
    let stage = TestFolder::new();
    let script = "
rules:
  - when: { agent: helper }
    say: Helped.
  - when: { turn: 1 }
    call:
      - { tool: spawn_agent, args: { agent: helper, goal: Help., id: helper } }
      - { tool: lose }
      - { tool: ask_human, args: { question: 'Which?' } }
  - when: { turn: 2 }
    say: Not what the schema asks for.
  - say: '{}'
tools: { lose: { error: It is gone. } }
";
    let lead =
        "tools: [spawn_agent, ask_human, lose], window: { size: 4000 }, output_schema: { type: object }";
    let tree = tree(&stage, lead, "tools: [], window: { size: 900 }", script);
    assert_eq!(stage.spinney(&["run", &tree]).code, Some(5));
    noted(&stage, &["send", "last", "lead", "The milk is sour.", "--category", "context"]);
    let question = stage.spinney(&["questions", "last", "--json"]).result();
    let number = question["question"].as_u64().unwrap_or_else(|| panic!("{question}")).to_string();
    noted(&stage, &["answer", "last", &number, "red"]);
    assert_eq!(stage.spinney(&["resume", "last"]).code, Some(0));
    let window = stage.spinney(&["window", "lead", "--json"]).result();
    let used = |row: &&Value| row["used"].as_u64().is_some_and(|used| used > 0);
    let categories = window["categories"].as_array().unwrap().iter().filter(used);
    let categories: Vec<&str> = categories.map(|row| row["category"].as_str().unwrap()).collect();
    assert_eq!(categories, ["system", "context", "dialog", "output", "error", "internal"]);
    let outputs = [
        stage.spinney(&["show", "lead", "--full"]).out,
        stage.spinney(&["show", "lead", "--json"]).out,
        stage.spinney(&["events", "last"]).out,
        stage.spinney(&["events", "last", "--json"]).out,
    ];
    for out in outputs {
        assert!(out.contains("It is gone.") && out.contains("The milk is sour."), "{out}");
        assert!(!out.contains("the window of helper"), "{out}");
        assert!(!out.contains("internal"), "{out}");
    }
}

/// P8 (histories): notes from the runtime to one agent count as tokens, but people do not see them as messages. That a
/// child has a smaller window is printed separately.
#[test]
fn what_is_internal_is_never_shown() {
    let stage = TestFolder::new();
    let script = "
rules:
  - when: { agent: helper }
    say: Helped.
  - when: { turn: 1 }
    call: [ { tool: spawn_agent, args: { agent: helper, goal: Help., id: helper } } ]
  - say: done
";
    let tree = tree(&stage, "tools: [spawn_agent], window: { size: 2000 }", "window: { size: 900 }", script);
    assert_eq!(stage.spinney(&["run", &tree]).code, Some(0));
    let window = stage.spinney(&["window", "lead", "--json"]).result();
    let categories = window["categories"].as_array().unwrap();
    assert!(categories.iter().any(|row| row["category"] == json!("internal")), "{window}");
    insta::assert_snapshot!(stage.said(&["show", "lead", "--full"]), @r#"
    lead of tree [id]: completed, as of event 17
    4 messages
    it was notified that helper has a smaller window: 900 tokens instead of 2,000 tokens

    #1  system · system · 555 tokens
        You lead.

        Tools you may use:
        - spawn_agent: give one self-contained task to a new agent, which knows nothing but its goal, and get its answer back here

        When you are done, answer with a clear summary of the result.

        Your task: Try it.

    #2  dialog · assistant · 12 tokens out, 52 as input
        calls spawn_agent {"agent":"helper","goal":"Help.","id":"helper"}

    #3  output · tool · from spawn_agent · 70 tokens
        Helped.
        [used $0.00001425, 49 tokens, 1 step; you have left $0.999832]

    #4  dialog · assistant · 1 token out, 9 as input
        done
    "#);
    let shown = stage.spinney(&["show", "lead", "--json"]);
    assert!(!shown.out.contains("internal") && !shown.out.contains("the window of helper"), "{}", shown.out);
    insta::assert_snapshot!(stage.said(&["show", "helper"]), @"
    helper of tree [id]: completed, as of event 12
    2 messages

    #1  system · system · 47 tokens
        You help.

        When you are done, answer with a clear summary of the result.

        Your task: Help.

    #2  dialog · assistant · 2 tokens out, 10 as input
        Helped.
    ");
}

/// Results that arrive out of order keep their own tokens.
#[test]
fn each_result_has_its_own_tokens_whichever_came_first() {
    let stage = TestFolder::new();
    let script = "
rules:
  - when: { turn: 1 }
    call: [ { tool: slow }, { tool: quick } ]
  - say: done
tools:
  slow: { think_ms: 200, say: x }
  quick: { say: 'This is a long text of very many words, more than the other one has by far and away.' }
";
    assert_eq!(stage.spinney(&["run", &stage.tree("slow, quick", script)]).code, Some(0));
    let messages = stage.spinney(&["show", "lead", "--json"]).json();
    let tokens = |tool: &str| {
        let found = messages.iter().find(|message| message["from"]["tool"] == json!(tool));
        found.unwrap()["tokens"].as_u64().unwrap()
    };
    assert!(tokens("slow") + 10 < tokens("quick"), "{messages:?}");
}

#[test]
fn a_tree_that_was_killed_shows_what_it_knew() {
    let stage = TestFolder::new();
    let script = CUT.replace("say: Enough is known.", "hang: true");
    let mut running = stage.play(&["run", &cut(&stage, &script)]);
    for _ in 0..4 {
        running.until("gets from look");
    }
    let seen =
        |stage: &TestFolder| (stage.said(&["window", "lead"]), stage.said(&["show", "lead", "--json"]));
    stage.spinney(&["send", "last", "lead", "Remember the milk.", "--category", "context"]);
    running.until("gets a message");
    let before = seen(&stage);
    running.kill();
    assert_eq!(seen(&stage), before);
    insta::assert_snapshot!(before.0, @"
    lead of tree [id]: running, as of event 31
      size      512 tokens: set by role `lead`
      preset    tools
      used      523 tokens of 7 messages (1 not read yet), 102 %
      left out  4 messages of 306 tokens; last cut by event 22
      in short  64 tokens of context summarise what was left out
      prefix    3 of the 4 after the first extend the one before; the last that does not (event 24) differs from the digest on, after 1 message

      ██████████▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▒▒▒▒▒▒▒▒▒▒▒░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░

       CATEGORY  USED  SHARE  LEFT OUT
    █  system      76     51
    ▓  context    141    153
    ▒  dialog      74    204  2 messages of 74 tokens
    ░  output     232    102  2 messages of 232 tokens
    ");
    let last: Value = serde_json::from_str(before.1.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&last["text"], &last["category"], &last["place"]),
        (&json!("Remember the milk."), &json!("context"), &json!("unread"))
    );
}

#[test]
fn long_texts_are_cut_for_people_unless_they_want_all() {
    let stage = TestFolder::new();
    let script = format!("rules: [ {{ say: '{} end.' }} ]", "many words ".repeat(80));
    assert_eq!(stage.spinney(&["run", &stage.tree("", &script)]).code, Some(0));
    let short = stage.said(&["show", "lead"]);
    assert!(short.ends_with("\n    … 885 bytes in all; --full shows them\n"), "{short}");
    assert!(stage.said(&["show", "lead", "--full"]).ends_with(" end.\n"));
}

/// Both children hang; the lead has a context message and waits.
const FAMILY: &str = "
rules:
  - when: { agent: helper }
    hang: true
  - when: { turn: 1 }
    call: [ { tool: spawn_agent, args: { agent: helper, goal: Help., id: one } }, { tool: spawn_agent, args: { agent: helper, goal: Help., id: two } } ]
  - say: done
";

/// P15: a person shares what one agent knows with others, whether or not the tree runs.
#[test]
fn p15_a_person_shares_an_agents_context_with_others() {
    let stage = TestFolder::new();
    let tree = tree(&stage, "tools: [spawn_agent]", "tools: []", FAMILY);
    let mut running = stage.play(&["run", &tree]);
    running.until("two starts");
    let milk = ["send", "last", "lead", "The milk is sour.", "--category", "context"];
    insta::assert_snapshot!(noted(&stage, &milk), @"sent to `lead`");
    insta::assert_snapshot!(noted(&stage, &["broadcast", "last", "--from", "lead", "--to", "one"]), @"shared what `lead` knows: `one` 1 message");
    insta::assert_snapshot!(noted(&stage, &["refresh", "last", "one"]), @"shared 1 message with `one`");
    insta::assert_snapshot!(noted(&stage, &["refresh", "last", "one"]), @"`one` already knew everything");
    running.kill();
    insta::assert_snapshot!(noted(&stage, &["broadcast", "last", "--from", "lead", "--to", "one", "--to", "lead/two"]), @"shared what `lead` knows: `one` nothing new, `two` 1 message; continue with: spinney resume [id]");
    insta::assert_snapshot!(noted(&stage, &["broadcast", "last", "--from", "lead", "--to", "two"]), @"shared what `lead` knows: `two` nothing new");
    insta::assert_snapshot!(noted(&stage, &["refresh", "last", "one", "--replace"]), @"shared 2 messages with `one`, replacing what it received before; continue with: spinney resume [id]");
    insta::assert_snapshot!(stage.said(&["show", "one"]), @"
    one of tree [id]: running, as of event 23
    5 messages, 2 of them left out of its window

    #1  system · system · 48 tokens
        You help.

        When you are done, answer with a clear summary of the result.

        Your task: Help.

    #2  context · user · from lead · 177 tokens · left out
        The milk is sour.

    #3  context · user · from lead · 137 tokens · left out
        You lead.

        Its task: Try it.

    #4  context · user · from lead · 137 tokens
        You lead.

        Its task: Try it.

    #5  context · user · from lead · 177 tokens
        The milk is sour.
    ");
    assert_eq!(stage.spinney(&["replay", "last", "--verify"]).code, Some(0));
}

/// P18: an unknown agent is an error that lists similar names, and never resolves to another agent.
#[test]
fn p18_an_agent_that_is_not_there_is_never_another_one() {
    let stage = TestFolder::new();
    let tree = tree(&stage, "tools: [spawn_agent]", "tools: []", FAMILY);
    let mut running = stage.play(&["run", &tree]);
    running.until("two starts");
    let others = || ["lead", "two"].map(|agent| stage.spinney(&["show", agent, "--json"]).out);
    let before = others();
    assert_eq!(noted(&stage, &["send", "last", "one", "Only you."]), "sent to `one`\n");
    assert_eq!(stage.spinney(&["show", "one", "--json"]).result()["text"], json!("Only you."));
    for round in ["running", "stopped"] {
        let errors = [
            refused(&stage, &["show", "leed"]),
            refused(&stage, &["window", "last", "nobody"]),
            refused(&stage, &["events", "last", "--agent", "leda"]),
            refused(&stage, &["refresh", "last", "tow"]),
            refused(&stage, &["broadcast", "last", "--from", "lead", "--to", "one", "--to", "tow"]),
            refused(&stage, &["pause", "last", "leadd"]),
            refused(&stage, &["cancel", "last", "nobody"]),
            refused(&stage, &["budget", "last", "nobody", "--add-usd", "1"]),
        ];
        if round == "running" {
            insta::assert_snapshot!(errors.concat(), @"
            spinney: no agent `leed` in this tree: did you mean `lead`?
            spinney: no agent `nobody` in this tree: known agents: lead, one, two
            spinney: no agent `leda` in this tree: did you mean `lead`?
            spinney: no agent `tow` in this tree: did you mean `two`?
            spinney: no agent `tow` in this tree: did you mean `two`?
            spinney: no agent `leadd` in this tree: did you mean `lead`?
            spinney: no agent `nobody` in this tree: known agents: lead, one, two
            spinney: no agent `nobody` in this tree: known agents: lead, one, two
            ");
            insta::assert_snapshot!(noted(&stage, &["send", "last", "thre", "Hi."]), @"sent to `thre`: no agent has that name yet (known agents: lead, one, two); it gets the message when it is spawned");
            running.signal("KILL");
        } else {
            assert!(errors.iter().all(|error| error.starts_with("spinney: no agent `")), "{errors:?}");
        }
    }
    running.end();
    assert_eq!(others(), before, "nobody else knows anything of it");
}

#[test]
fn what_cannot_be_shared_is_refused_with_the_reason() {
    let stage = TestFolder::new();
    insta::assert_snapshot!(refused(&stage, &["show", "lead"]), @"spinney: no home at .spinney: run a tree first, or set --home or SPINNEY_HOME");
    let waits = "rules: [ { when: { turn: 1 }, call: [ { tool: ask_human, args: { question: Which? } } ] }, { say: done } ]";
    assert_eq!(stage.spinney(&["run", &stage.tree("ask_human", waits)]).code, Some(5));
    insta::assert_snapshot!(refused(&stage, &["show", "ffff", "lead"]), @"spinney: no tree starts with `ffff`: `spinney ps` lists all trees");
    insta::assert_snapshot!(refused(&stage, &["window", "last"]), @"spinney: no agent `last` in this tree: known agents: lead");
    insta::assert_snapshot!(refused(&stage, &["refresh", "last", "lead"]), @"spinney: the root has no parent to refresh from: name one of its children");
    insta::assert_snapshot!(refused(&stage, &["broadcast", "last", "--from", "lead", "--to", "lead"]), @"spinney: `lead` cannot share with itself: name another agent");
    insta::assert_snapshot!(refused(&stage, &["send", "last", "lead", "Hi.", "--category", "internal"]), @"
    error: invalid value 'internal' for '--category <CATEGORY>'
      [possible values: context, dialog]

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(refused(&stage, &["broadcast", "last", "--from", "lead", "--to", "one", "--category", "output"]), @"
    error: invalid value 'output' for '--category <CATEGORY>'
      [possible values: context, system]

    For more information, try '--help'.
    ");
    assert_eq!(stage.spinney(&["cancel", "last"]).code, Some(0));
    insta::assert_snapshot!(refused(&stage, &["send", "last", "lead", "Hi.", "--category", "context"]), @"spinney: this tree cannot be continued: its root ended while its tools ran, so no message can follow: branch from a checkpoint");
    insta::assert_snapshot!(refused(&stage, &["refresh", "last", "lead"]), @"spinney: the tree has ended: start a new one; see how it ended: spinney resume [id]");
    insta::assert_snapshot!(refused(&stage, &["broadcast", "last", "--from", "lead", "--to", "one"]), @"spinney: the tree has ended: start a new one; see how it ended: spinney resume [id]");
    insta::assert_snapshot!(stage.said(&["show", "lead"]), @r#"
    lead of tree [id]: cancelled, as of event 7
    3 messages, 1 not read yet

    #1  system · system · 285 tokens
        Tools you may use:
        - ask_human: ask a person and wait for the answer, where neither you nor another agent can decide

        When you are done, answer with a clear summary of the result.

        Your task: Try it.

    #2  dialog · assistant · 6 tokens out, 44 as input
        calls ask_human {"question":"Which?"}

    #3  output · tool · from ask_human · failed · 9 tokens · not read yet
        cancelled
    "#);
}

/// After a rollback, `show` lists messages that the window dropped since the checkpoint at their old place.
#[test]
fn a_rollback_shows_what_was_known_then() {
    let ask = "say: Hm.\n    call: [ { tool: ask_human, args: { question: Which? } } ]";
    let asks = format!("when: {{ turn: 7 }}\n    {ask}\n  - when: {{ turn: 12 }}\n    {ask}");
    let script = CUT.replace("when: { turn: 5 }\n    say: Enough is known.", &asks);
    let stage = TestFolder::new();
    let file = tree(&stage, "tools: [look, ask_human], window: { size: 1100 }", "tools: []", &script);
    assert_eq!(stage.spinney(&["run", &file]).code, Some(5));
    let place_of = |message: &Value| (message["text"].clone(), message["place"].clone());
    let shown = || stage.spinney(&["show", "lead", "--json"]).json().iter().map(place_of).collect::<Vec<_>>();
    assert_eq!(stage.spinney(&["checkpoint", "make", "lead", "--name", "then"]).code, Some(0));
    let then = shown();
    assert!(then.iter().any(|(_, place)| place == "left_out"), "{then:?}");
    assert_eq!(stage.spinney(&["answer", "last", "14", "blue"]).code, Some(0));
    assert_eq!(stage.spinney(&["resume", "last"]).code, Some(5));
    let later = shown();
    assert!(later.len() > then.len() && later[..then.len()] != then, "the window was cut again: {later:?}");
    assert_eq!(stage.spinney(&["checkpoint", "rollback", "then"]).code, Some(0));
    let now = shown();
    assert_eq!(now[..then.len()], then);
    // And the outcome of the question.
    assert_eq!(now.len(), then.len() + 1, "{now:?}");
    assert!(now[then.len()].0.to_string().contains("rolled back"), "{now:?}");
    assert_eq!(stage.spinney(&["window", "lead"]).code, Some(0));
}

/// Issue 34: one answer had one count in `events` and another in `show`. What a provider reported is the same in both, and
/// what the answer takes as input of later calls says so.
#[test]
fn an_answer_has_the_same_output_tokens_in_events_and_show() {
    let stage = TestFolder::new();
    let script = "
rules:
  - { when: { turn: 1 }, say: Let me see., call: [ { tool: list_agents } ], usage: { input: 500, output: 321 } }
  - { say: It is done., usage: { input: 600, output: 45 } }
";
    assert_eq!(stage.spinney(&["run", &stage.tree("list_agents", script)]).code, Some(0));
    let events = stage.said(&["events"]);
    let used = events.lines().filter_map(|line| line.split_once(" used: "));
    assert_eq!(used.map(|(_, used)| used).collect::<Vec<_>>(), ["500 in, 321 out]", "600 in, 45 out]"]);
    let shown = stage.said(&["show", "lead"]);
    let answers: Vec<&str> = shown.lines().filter(|line| line.contains("assistant")).collect();
    insta::assert_snapshot!(answers.join("\n"), @"
    #2  dialog · assistant · 321 tokens out, 44 as input
    #4  dialog · assistant · 45 tokens out, 11 as input
    ");
    let json = stage.spinney(&["show", "lead", "--json"]).json();
    let outputs: Vec<Option<u64>> = json.iter().map(|message| message["output_tokens"].as_u64()).collect();
    assert_eq!(outputs, [None, Some(321), None, Some(45)]);
}
