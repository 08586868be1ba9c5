//! What `--help` shows below the options, with examples. A test runs every example. A paragraph is one line here: the
//! parser wraps it to the terminal's width.

pub(super) const TOP: &str = "\
Trees:
  ID is a tree's id, any unique prefix of it, or `last`: the tree that started last in this home. Without an ID, commands \
use `last`. Name an agent by its id or its path, such as lead/helper.

Exit codes:
  0    completed, or the command succeeded
  1    failed
  2    invalid usage or file, or refused
  3    halted by a ceiling
  4    cancelled
  5    waiting for a person
  6    another process has the home open
  7    unknown whether the request was carried out
  130  interrupted
  141  the reader of the output went away

Examples:
  spinney init                  write a first tree file; no account needed
  spinney run tree.yaml         run it and watch
  spinney costs                 who spent what
  spinney help run              details of one command";

pub(super) const RUN: &str = "\
On a terminal you see the tree live; with --plain, or without a terminal, it prints a line for each event. Ctrl-C stops \
cleanly and the tree can be resumed; pressing it twice stops at once.

Exit codes: 0 completed, 1 failed, 2 invalid file or usage, 3 halted by a ceiling, 4 cancelled, 5 waiting for a person, \
6 home busy, 130 interrupted.

Examples:
  spinney run tree.yaml
  spinney run tree.yaml --goal 'Greet the moon.' --budget-usd 0.50
  spinney run tree.yaml --json";
pub(super) const EXEC: &str = "\
Your keys stay in your environment; the program gets a separate key for the gateway. Claude Code and Codex:
  spinney exec --budget-usd 5 -- claude -p 'your task'
  spinney exec --budget-usd 5 -- codex exec 'your task'

Examples:
  spinney exec --budget-usd 5 -- python3 agent.py
  spinney exec --budget-usd 5 --child-budget-usd 1 --timeout 30m -- ./agent.sh
  spinney exec --live --budget-usd 5 -- claude -p 'your task'
  spinney exec --resume last -- python3 agent.py";
pub(super) const MCP: &str = "\
The servers start in their boxes and end with the command. Nothing is written to a home.

Examples:
  spinney mcp install tree.yaml
  spinney mcp login https://tools.example.org/mcp
  spinney mcp list tree.yaml
  spinney mcp try tree.yaml notes__search '{ \"text\": \"milk\" }'";
pub(super) const CHECK: &str = "\
Examples:
  spinney check tree.yaml
  spinney check --schema";
pub(super) const INIT: &str = "\
Examples:
  spinney init hello.yaml
  spinney init agents.yaml --provider anthropic
  spinney init s18                               a scenario: map-reduce
  spinney init --template panel reviews          a template into a folder";
pub(super) const RESUME: &str = "\
Use it after a kill, Ctrl-C, an answer or a raise. For a tree that has ended, it prints the result again and exits with \
the same code.

Examples:
  spinney resume
  spinney resume last --unpause";
pub(super) const PS: &str = "\
Examples:
  spinney ps
  spinney ps --json";
pub(super) const TOP_COMMAND: &str = "\
Keys: ↑ and ↓ select a tree, Enter follows it like `attach`, c cancels it after asking, q quits. The trees keep running. \
Without a terminal it lists the trees once.

Examples:
  spinney top --once
  spinney top --json";
pub(super) const ATTACH: &str = "\
Ctrl-C detaches and the tree continues. The exit code is the tree's. Text that models stream is shown from the moment you \
attach.

Examples:
  spinney attach last --plain";
pub(super) const TREE: &str = "\
Examples:
  spinney tree
  spinney tree last --dot
  spinney tree --json";
pub(super) const COSTS: &str = "\
Every table adds up to what the tree spent, to the nano-dollar. `presumed` is the part no provider reported: calls that \
were lost, cut off or cancelled are booked at their full hold, and the true bill is at most that. `held` is what was set \
aside for the calls before they ran; `saved` is what cached prompts saved compared with the price of plain input.

Examples:
  spinney costs
  spinney costs --by tag
  spinney costs last --by model
  spinney costs --json";
pub(super) const FILES: &str = "\
Examples:
  spinney files
  spinney files last --json";
pub(super) const EVENTS: &str = "\
Examples:
  spinney events
  spinney events last --agent lead --topic model
  spinney events --from 5 --json";
pub(super) const SHOW: &str = "\
Examples:
  spinney show lead
  spinney show last lead --full";
pub(super) const WINDOW: &str = "\
Examples:
  spinney window lead
  spinney window last lead --json";
pub(super) const QUESTIONS: &str = "\
Examples:
  spinney questions
  spinney questions last --json";
pub(super) const SHARED: &str = "\
Examples:
  spinney shared
  spinney shared colour --set blue
  spinney shared colour
  spinney shared last --json";
pub(super) const CANCEL: &str = "\
Examples:
  spinney cancel
  spinney cancel last lead --reason 'It takes too long.'";
pub(super) const ANSWER_USAGE: &str = "spinney answer [OPTIONS] [ID] [QUESTION] [TEXT]";
pub(super) const ANSWER: &str = "\
Arguments:
  [ID]        A tree's id, any unique prefix of it, or `last` (default: last)
  [QUESTION]  The question's number; optional if only one is open
  [TEXT]      The answer; `yes` approves a tool. Without it, every open question is asked here, one by one

Examples:
  spinney answer blue
  spinney answer 2 blue
  spinney answer last 2 'as you like'";
pub(super) const SEND_USAGE: &str = "spinney send [OPTIONS] [ID] <AGENT> <TEXT>";
pub(super) const SEND: &str = "\
Arguments:
  [ID]     A tree's id, any unique prefix of it, or `last` (default: last)
  <AGENT>  The agent, by id or path
  <TEXT>   The message

Examples:
  spinney send lead 'Hurry up.'
  spinney send last lead 'The moon is blue.' --category context";
pub(super) const ASK_USAGE: &str = "spinney ask [OPTIONS] [ID] <AGENT> <TEXT>";
pub(super) const ASK: &str = "\
Arguments:
  [ID]     A tree's id, any unique prefix of it, or `last` (default: last)
  <AGENT>  The agent, by id or path
  <TEXT>   The message

Its answer is printed, and nothing else. A tree that no process runs is run here until it ends or waits for you; the root
of one that has ended answers in a new tree, which has its context and the rest of its budget.

Examples:
  spinney ask lead 'And in winter?'
  answer=$(spinney ask last lead 'Sum it up in one sentence.')";
pub(super) const REDIRECT_USAGE: &str = "spinney redirect [OPTIONS] [ID] [AGENT] [TEXT]";
pub(super) const REDIRECT: &str = "\
Arguments:
  [ID]     A tree's id, any unique prefix of it, or `last` (default: last)
  [AGENT]  The agent, by id or path (default: the root)
  [TEXT]   The new instruction; none with --skip and --end

What is done stays. The steps of a pipeline that begin from now on read the instruction with their task; with --now, those
that run are stopped and begin again with it.

Examples:
  spinney redirect 'Compare two of them only.'
  spinney redirect last lead 'Stop and write down what you have.' --now
  spinney redirect 'Write it for children.' --step draft --now
  spinney redirect last --skip translate --skip publish
  spinney redirect last --end";
pub(super) const CHARGE: &str = "\
The sum is booked at once and never refused, because it is spent already; it may go beyond a ceiling.

Examples:
  spinney charge --usd 0.05 --note 'a search elsewhere'
  spinney charge last lead --usd 1 --tokens 20000";
pub(super) const CHAT: &str = "\
What the agent says is shown as it comes, and between its answers what it does. Ctrl-D leaves the conversation, and
`spinney chat` continues it, also after a crash; /finish ends it.

Examples:
  spinney chat talk.yaml
  spinney chat talk.yaml --goal 'Help me plan a small garden.'
  spinney chat                  # continues the last one";
pub(super) const FINISH: &str = "\
Examples:
  spinney finish
  spinney finish 01a1ea14e4b5";
pub(super) const REFRESH: &str = "\
Examples:
  spinney refresh helper
  spinney refresh last helper --replace";
pub(super) const BROADCAST: &str = "\
Examples:
  spinney broadcast --from lead --to helper";
pub(super) const PAUSE: &str = "\
Examples:
  spinney pause
  spinney pause last lead";
pub(super) const UNPAUSE: &str = "\
Examples:
  spinney unpause
  spinney unpause last lead";
pub(super) const BUDGET: &str = "\
Examples:
  spinney budget --add-usd 0.50
  spinney budget last lead --add-tokens 20000";
pub(super) const CHECKPOINT: &str = "\
Examples:
  spinney checkpoint make lead
  spinney checkpoint make last lead --name before-the-question
  spinney checkpoint ls";
pub(super) const MODELS: &str = "\
Examples:
  spinney models anthropic haiku
  spinney models claude-3 --all";
pub(super) const CONFIG: &str = "\
Settings: budget.cost_usd, budget.tokens, budget.steps, budget.timeout, on_low, allow_hosts, allow_field, allow_box, prices.MODEL, \
notify, env_files. Comments in the file are kept.

Examples:
  spinney config
  spinney config set budget.cost_usd 5
  spinney config add allow_hosts openrouter.ai
  spinney config set prices.my-model 0.50,2
  spinney config unset budget.cost_usd";
pub(super) const DOCTOR: &str = "\
Examples:
  spinney doctor
  spinney doctor tree.yaml --no-calls";
pub(super) const RM: &str = "\
Examples:
  spinney rm last --force";
pub(super) const EXPORT: &str = "\
The file holds prompts, answers and the files that agents wrote: keep it as private as the home. It contains no keys.

Examples:
  spinney export -o run.trees
  spinney export --take-back --yes
  spinney export last --copy -o copy.trees
  spinney export --all --copy -o home.trees";
pub(super) const IMPORT: &str = "\
Every tree is checked like `replay --verify` before it is imported. `resume` asks before an imported tree sends your keys \
anywhere.

Examples:
  spinney --home other import copy.trees";
pub(super) const REPLAY: &str = "\
Examples:
  spinney replay
  spinney replay last --verify";
pub(super) const COMPLETIONS: &str = "\
The script asks spinney what to complete, so load it whenever your shell starts: in ~/.bashrc,
`source <(spinney completions bash)`; the same in zsh; in fish, `spinney completions fish | source`.

Examples:
  spinney completions bash > spinney.bash
  spinney completions fish > spinney.fish";

pub(super) const MAN: &str = "\
Examples:
  spinney man exec > spinney-exec.1
  spinney man --all man1";
