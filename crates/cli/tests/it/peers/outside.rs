//! Agent programs of other people, started as their users start them: Claude Code and Codex, each with an empty home and an
//! environment of its own, and no way to any other machine.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use spinney_kernel::budget::Usage;

use super::peer::installed;
use crate::provider::{Answer, Provider, Question};
use crate::test_folder::{Ended, Playing, TestFolder};

/// How long a program may take. It needs two seconds on an idle machine.
const PROGRAM_MAX: Duration = Duration::from_secs(150);

/// The task of the main agent, and those of its two sub-agents.
pub(super) const TASK: &str = "Describe a small wood in two parts.";
pub(super) const OAKS: &str = "Describe the oaks.";
pub(super) const BIRCHES: &str = "Describe the birches.";
/// What the main agent says in the end.
pub(super) const DONE: &str = "Oaks and birches, and both are green.";

/// The user's own key. It must reach only the provider.
pub(super) const KEY: &str = "sk-user-5b1d";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    ClaudeCode,
    Codex,
}

impl Program {
    pub(super) const ALL: [Self; 2] = [Self::ClaudeCode, Self::Codex];

    pub(super) const fn model(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-sonnet-4-5",
            Self::Codex => "gpt-6.1-sol",
        }
    }

    /// The command line that gives it the task. It may run commands without asking.
    pub(super) fn words(self) -> Vec<String> {
        let (name, words): (_, &[&str]) = match self {
            Self::ClaudeCode => ("claude", &["-p", TASK, "--model", self.model(), "--allowedTools", "Bash"]),
            Self::Codex => (
                "codex",
                &["exec", "--skip-git-repo-check", "-s", "danger-full-access", "-m", self.model(), TASK],
            ),
        };
        let program = installed().join(name).display().to_string();
        std::iter::once(program).chain(words.iter().map(|&word| word.to_owned())).collect()
    }

    /// The environment of its user, who has a key and a provider.
    pub(super) fn environment(self, stage: &TestFolder, provider: &Provider) -> Vec<(&'static str, String)> {
        let url = &provider.url;
        let mut environment = vec![
            ("PATH", "/usr/local/bin:/usr/bin:/bin".to_owned()),
            ("HOME", stage.folder().display().to_string()),
            ("TERM", "dumb".to_owned()),
            // Whatever it wants from another machine ends here.
            ("HTTPS_PROXY", "http://127.0.0.1:9".to_owned()),
            ("NO_PROXY", "127.0.0.1".to_owned()),
        ];
        match self {
            Self::ClaudeCode => environment.extend([
                ("ANTHROPIC_BASE_URL", url.clone()),
                ("ANTHROPIC_API_KEY", KEY.to_owned()),
                ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
            ]),
            Self::Codex => environment.extend([
                ("OPENAI_BASE_URL", format!("{url}/v1")),
                ("OPENAI_API_KEY", KEY.to_owned()),
                ("CODEX_API_KEY", KEY.to_owned()),
            ]),
        }
        environment
    }

    /// Starts it at the provider itself, with no gateway between them.
    pub(super) fn play_directly(self, stage: &TestFolder, provider: &Provider) -> Playing {
        let mut words = self.words();
        if self == Self::Codex {
            words.extend(["-c".to_owned(), format!("openai_base_url=\"{}/v1\"", provider.url)]);
        }
        play(stage, &words, &self.environment(stage, provider))
    }

    /// The agent that asks, as the program names it; `None` is the main agent.
    pub(super) fn agent(self, question: &Question) -> Option<String> {
        let asked = &question.asked;
        let name = match self {
            Self::ClaudeCode => asked.header("x-claude-code-agent-id"),
            Self::Codex => asked.header("x-codex-parent-thread-id").and(asked.header("thread-id")),
        };
        name.map(str::to_owned)
    }

    /// How its model spawns a sub-agent.
    pub(super) fn spawns(self, answer: Answer, name: &str, task: &str) -> Answer {
        match self {
            // In the background the main agent would continue, and hear of the end of its sub-agents in more turns.
            Self::ClaudeCode => answer.calls(
                "Agent",
                json!({ "description": name, "prompt": task, "subagent_type": "general-purpose", "run_in_background": false }),
            ),
            Self::Codex => answer.calls(
                "collaboration/spawn_agent",
                json!({ "task_name": name, "message": task, "fork_turns": "none" }),
            ),
        }
    }

    /// How its model waits until this many sub-agents have ended, if it must: Claude Code waits on its own.
    pub(super) fn waits(self, question: &Question, parts: usize) -> Option<Answer> {
        let ended = question.users.iter().filter(|text| text.contains("FINAL_ANSWER")).count();
        (self == Self::Codex && ended < parts).then(|| {
            let usage =
                Usage { input: 227, cached_input: 1_511, output: 13, reasoning: 7, ..Usage::default() };
            Answer::says("", usage).calls("collaboration/wait_agent", json!({ "timeout_ms": 60_000 }))
        })
    }

    /// How its model runs a command.
    pub(super) fn runs(self, answer: Answer, command: &str) -> Answer {
        match self {
            Self::ClaudeCode => answer.calls("Bash", json!({ "command": command, "description": "waits" })),
            Self::Codex => {
                let arguments = json!({ "cmd": command, "yield_time_ms": 100_000 });
                answer.calls("exec", Value::String(format!("text(await tools.exec_command({arguments}))")))
            }
        }
    }

    /// The model of a main agent that has its task done by two sub-agents. Each turn has a usage that no other has.
    pub(super) fn answer(self, question: &Question) -> Answer {
        if !question.has(TASK) {
            return self.answer_of_a_part(question);
        }
        if question.results.is_empty() {
            let usage = Usage {
                input: 211,
                cached_input: 1_009,
                cache_write: 3_001,
                cache_write_1h: 5_003,
                output: 101,
                reasoning: 0,
                ..Usage::default()
            };
            let answer = Answer::says("Two describe it.", self.counted(usage));
            return self.spawns(self.spawns(answer, "oaks", OAKS), "birches", BIRCHES);
        }
        if let Some(wait) = self.waits(question, 2) {
            return wait;
        }
        let usage = Usage {
            input: 223,
            cached_input: 9_011,
            cache_write: 401,
            cache_write_1h: 0,
            output: 29,
            reasoning: 11,
            ..Usage::default()
        };
        Answer::says(DONE, self.counted(usage))
    }

    fn answer_of_a_part(self, question: &Question) -> Answer {
        if question.has(OAKS) {
            let usage = Usage {
                input: 307,
                cached_input: 2_003,
                cache_write: 601,
                cache_write_1h: 0,
                output: 37,
                reasoning: 0,
                ..Usage::default()
            };
            return Answer::says("The oaks are green.", self.counted(usage));
        }
        assert!(question.has(BIRCHES), "nobody expects this: {}", question.asked.text);
        let usage = Usage {
            input: 311,
            cached_input: 0,
            cache_write: 0,
            cache_write_1h: 2_411,
            output: 41,
            reasoning: 17,
            ..Usage::default()
        };
        Answer::says("The birches are green, too.", self.counted(usage))
    }

    /// The usage as this provider reports it: OpenAI keeps no cache for an hour, and Anthropic counts thoughts as output.
    const fn counted(self, usage: Usage) -> Usage {
        match self {
            Self::ClaudeCode => Usage { output: usage.output + usage.reasoning, reasoning: 0, ..usage },
            Self::Codex => Usage { cache_write_1h: 0, ..usage },
        }
    }
}

/// Starts a command in the folder of a stage, with this environment and nothing else.
pub(super) fn play(stage: &TestFolder, words: &[String], environment: &[(&'static str, String)]) -> Playing {
    let mut command = Command::new(PathBuf::from(&words[0]));
    command.args(&words[1..]).env_clear().envs(environment.iter().map(|(name, value)| (name, value)));
    command.current_dir(stage.folder()).stdin(Stdio::null());
    TestFolder::started(command)
}

/// Waits for the end of a program. None may hang, whatever happens to it.
pub(super) fn ended(playing: Playing) -> Ended {
    ended_within(playing, PROGRAM_MAX)
}

pub(super) fn ended_within(playing: Playing, most: Duration) -> Ended {
    let pid = playing.pid();
    let (ends, ended) = sync_channel(1);
    thread::spawn(move || ends.send(playing.end()));
    ended.recv_timeout(most).unwrap_or_else(|error| {
        let killed = Command::new("kill").args(["-KILL", &pid.to_string()]).status();
        panic!("the program does not end ({error}, {most:?} at most; killed: {killed:?})")
    })
}
