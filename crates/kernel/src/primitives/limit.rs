//! Every bound of the kernel, by name, with its reason. A definition may change those that are defaults; the rest
//! hold for every tree.

use crate::primitives::TokenCount;

/// Default depth below the root: enough for lead, worker and helper.
pub const DEPTH_MAX: u32 = 3;
/// Default live children of one agent: more than a model can keep track of.
pub const CHILDREN_MAX: u32 = 16;
/// Default agents of one tree, ended ones included: stops a runaway before it is expensive.
pub const AGENTS_MAX: u32 = 1_000;
/// Default effects of one tree that run at the same time: polite to providers, enough for people.
pub const PARALLEL_MAX: u32 = 64;
/// Largest depth a definition may allow.
pub const DEPTH_CAP: u32 = 100_000;
/// Largest number of children or agents a definition may allow.
pub const AGENTS_CAP: u32 = 1_000_000;

/// Largest goal, message, answer, instruction or inline result, in bytes. Anything larger becomes a blob with a
/// reference.
pub const TEXT_BYTES_MAX: usize = 32 * 1024;
/// Largest reason, note or name, in bytes: people read it in one line.
pub const NOTE_BYTES_MAX: usize = 1_024;
/// Most roles or models in one definition.
pub const NAMES_MAX: usize = 256;
/// Most tags of one tree: every event that is shown carries them.
pub const TAGS_MAX: usize = 32;
/// Longest name of a tag, in bytes.
pub const TAG_NAME_BYTES_MAX: usize = 64;
/// Longest tag, in bytes: an id or a short line.
pub const TAG_BYTES_MAX: usize = 256;

/// Default turns of one agent: stops a model that calls tools forever, and leaves room for long work.
pub const TURNS_MAX: u32 = 100;
/// Default number of identical tool calls in a row after which an agent is warned: two may be a retry.
pub const REPEATS_NOTICE: u32 = 3;
/// Default number of identical tool calls in a row after which an agent ends: it was warned and changed nothing.
pub const REPEATS_END: u32 = 6;
/// Largest number of turns a definition may allow.
pub const TURNS_CAP: u32 = 1_000_000;
/// Most tool calls in one answer. Further ones are neither made nor recorded.
pub const ASKS_MAX: usize = 1_000;
/// Largest total size of the arguments of all tool calls in one answer, in bytes.
pub const ASKS_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Most tokens for the name of a message's sender.
pub const SENDER_TOKENS: TokenCount = TokenCount::new(64, 8);
/// Most tokens for the header that names the agent whose context was shared.
pub const TOLD_TOKENS: TokenCount = SENDER_TOKENS.plus(TokenCount::new(16, 4));
/// The same from rules 6 on. The header says more, and the reader's own task is its own message.
pub const BACKGROUND_TOKENS: TokenCount = SENDER_TOKENS.plus(TokenCount::new(28, 8)).plus(MESSAGE_TOKENS);
/// Longest id or name that a model may give a tool call, in bytes.
pub const NAME_BYTES_MAX: usize = 128;
/// Largest arguments of one tool call, in bytes.
pub const ARGS_BYTES_MAX: usize = 256 * 1024;
/// Longest notice that the kernel writes into a context, in bytes. Each byte counts as one token.
pub const NOTICE_BYTES_MAX: usize = 512;
/// Most tokens that a message costs beyond its text, for role and delimiters. OpenAI's chat format takes three plus
/// the role, and three once for the start of the answer; a message from an agent also has the sender's name, which
/// counts as [`SENDER_TOKENS`].
pub const MESSAGE_TOKENS: TokenCount = TokenCount::new(8, 4);
/// Most words of the command of a tool that a tree file defines.
pub const COMMAND_WORDS_MAX: usize = 64;
/// The largest word of a command, once it is filled. Linux takes no larger ones.
pub const COMMAND_WORD_BYTES_MAX: usize = 127 << 10;
/// Most tokens that a tool costs beyond its name, description and schema. OpenAI's format takes seven, and twelve
/// once for the end of the list; its schema encoding is shorter than the JSON that we count.
pub const TOOL_TOKENS: TokenCount = TokenCount::new(24, 8);
/// Share of a model's context length that a window may fill, in percent. The rest is for the answer and for
/// differences in how providers count.
pub const WINDOW_PERCENT: u64 = 85;
/// Share of a full window that is kept when it is trimmed, in percent. Trimming below full keeps the prefix of the
/// next packets identical, so provider caches hit.
pub const TRIM_PERCENT: u64 = 80;
/// Share of a packet that was too long for its model that is tried again, in percent: counts are off by less.
pub const SHORTENED_PERCENT: u64 = 75;
/// Share of a window for the digest of left-out messages, in percent.
pub const FOLDED_PERCENT: u64 = 10;
/// Fewest tokens for that digest: enough to say how many messages were left out.
pub const FOLDED_TOKENS_MIN: u64 = 64;
/// Tokens of the digest that surround a model's summary: its heading, the cut mark and what follows.
pub const SUMMARY_AROUND_TOKENS: u64 = 96;
/// Fewest tokens for a summary; less says nothing useful.
pub const SUMMARY_TOKENS_MIN: u64 = 16;
/// Characters per token that a model is asked to keep its summary to: less than a token usually has, so the end
/// is not cut off.
pub const SUMMARY_CHARS_PER_TOKEN: u64 = 3;
/// Smallest window: a goal and one line of answer.
pub const WINDOW_TOKENS_MIN: u64 = 256;
/// Default images of one packet.
pub const IMAGES_MAX: u32 = 5;
/// Most tokens of one image that was not counted: what providers bill for the largest image that they do not shrink.
/// A model that takes more declares it.
pub const IMAGE_TOKENS: u64 = 1_600;
/// Most images and files of one message, or of everything a child is given.
pub const PARTS_MAX: usize = 16;
/// Largest image or file of a message, in bytes: above what providers accept for one.
pub const PART_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Most bytes of all images and files of one message: what providers accept in a request, and half of what one append
/// may carry, so a tool's long text fits beside them.
pub const PARTS_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Most turns of its parent's conversation that a child may be given.
pub const FORK_TURNS_MAX: u32 = 1_000;
/// Most recipients of one system message, and most messages that a child is given at its start.
pub const SHARES_MAX: usize = 256;
/// Largest `output_schema`, in bytes: the first message contains it whole, and every answer is checked against it.
pub const SCHEMA_BYTES_MAX: usize = 16 * 1024;
/// Fewest choices that a person has, if a question has choices.
pub const CHOICES_MIN: usize = 2;
/// Most choices of a question: more than a person reads before answering.
pub const CHOICES_MAX: usize = 50;
/// Longest choice, in bytes.
pub const CHOICE_BYTES_MAX: usize = 200;
/// Longest answer that is checked against a schema, in bytes. A longer one does not match.
pub const CHECKED_BYTES_MAX: usize = 256 * 1024;
/// Most steps to check one answer: one per value and schema part, more if either is long. Bounds schemas whose parts
/// refer to each other.
pub const CHECK_STEPS_MAX: u64 = 1_000_000;
/// Deepest chain of schema references while one answer is checked.
pub const CHECK_DEPTH_MAX: usize = 256;
/// Largest compiled size of a schema's pattern, in bytes.
pub const PATTERN_BYTES_MAX: usize = 256 * 1024;
/// Most times that an agent is asked to repair one answer: more attempts rarely help.
pub const REPAIRS_MAX: u8 = 2;
/// Most mismatches of an answer that are listed to its agent.
pub const MISMATCHES_SHOWN_MAX: usize = 3;
/// Longest description of one mismatch, in bytes.
pub const MISMATCH_BYTES_MAX: usize = 160;
/// Longest time that a model call may take, in milliseconds: a day, far above how long providers keep a stream open.
/// A hold covers every rate that is active in that time, and drivers end a call after it.
pub const MODEL_CALL_MS_MAX: u64 = 24 * 60 * 60 * 1_000;
/// Most sets of rates in one price, tiers and changes included: a price that changes every month for years.
pub const PRICE_RATES_MAX: usize = 256;
/// Default time one tool call may take.
pub const TOOL_TIMEOUT_MS: u64 = 60_000;
/// How long a model call of a program that is an agent waits at a ceiling, if its role says nothing.
pub const HALT_WAIT_MS: u64 = 10 * 60 * 1_000;
/// Longest time in which a source of tools lists them, when a tree starts or is resumed.
pub const TOOL_DISCOVERY_MS_MAX: u64 = 30_000;
/// Most open calls of one agent: bounds a storm of tool calls in one answer.
pub const OPEN_CALLS_MAX: usize = 1_024;
/// Most messages that wait for one agent.
pub const INBOX_MAX: usize = 1_024;
/// Most agents that have messages waiting before they exist: more are misspelled names.
pub const UNSPAWNED_MAX: usize = 256;

/// Most failed attempts at one call, all fallbacks included.
pub const ATTEMPTS_MAX: u32 = 4;
/// Most times one call is restarted because its process died: the call may be what kills it.
pub const LOSSES_MAX: u32 = 8;
/// First pause before a retry, in milliseconds; it doubles each time.
pub const BACKOFF_FIRST_MS: u64 = 500;
/// Longest pause before a retry that we choose ourselves, in milliseconds.
pub const BACKOFF_MAX_MS: u64 = 30_000;
/// Longest pause a provider may ask for. A longer one is a fault that is not retried.
pub const RETRY_AFTER_MAX_MS: u64 = 600_000;
/// Longest usage window of an account that calls wait for: a week and a day.
pub const USAGE_WINDOW_MAX_MS: u64 = 8 * 24 * 60 * 60 * 1_000;
/// Most times in a row that a call waits for a provider that is down: half an hour if each wait lasts a minute.
pub const BREAKER_WAITS_MAX: u32 = 30;
/// Largest rate of requests or tokens per minute: far above every provider, and sums of it stay small.
pub const RATE_MAX: u64 = 1_000_000_000_000;

/// Default share of cost and tokens that an agent's descendants must leave for its own answer, in percent.
pub const ANSWER_RESERVE_PERCENT: u8 = 10;
/// Largest answer reserve, in percent: something must be left for children.
pub const ANSWER_RESERVE_PERCENT_MAX: u8 = 90;
/// Smallest output cap that `on_low: shrink` may choose: fewer tokens are not enough for an answer.
pub const OUTPUT_TOKENS_MIN: u64 = 16;
/// Smallest output cap that an ordinary turn is shrunk to when its full cap does not fit: a long paragraph.
pub const OUTPUT_TOKENS_SHRUNK: u64 = 1_024;
/// The smallest fitted output cap, as long as the remaining budget covers it: enough for a long answer.
pub const OUTPUT_TOKENS_FITTED: u64 = 4_096;
/// Smallest output cap of an agent's last call: fewer tokens are not enough for an answer.
pub const WRAP_UP_OUTPUT_TOKENS_MIN: u64 = 256;
/// Most tokens of the notice that tells an agent that this call is its last.
pub const WRAP_UP_TOKENS: TokenCount = TokenCount::new(128, 32);
/// Input tokens beyond its first packet that an agent's reserve pays for: short results of its children.
pub const RESERVE_INPUT_TOKENS: u64 = 2_048;
/// Output tokens that an agent's reserve pays for.
pub const RESERVE_OUTPUT_TOKENS: u64 = 1_024;
/// Longest time before its deadline at which an agent starts to wrap up, in milliseconds. A tenth of its time, if
/// that is less.
pub const WRAP_UP_MS_MAX: u64 = 60_000;
/// Agents with less time than this do not wrap up before their deadline, in milliseconds.
pub const WRAP_UP_TIMEOUT_MS_MIN: u64 = 10_000;
/// Most children stopped by a ceiling that are named to their parent after a top-up.
pub const LOST_NAMED_MAX: usize = 16;
/// Default output cap of one model call, unless its model takes less: enough to think and to write a long answer.
pub const OUTPUT_TOKENS: u64 = 16_000;
/// The default output cap is at most one part in this many of the model's context, so most of it is for the input.
pub const OUTPUT_CONTEXT_PART: u64 = 4;
/// Default output cap of one model call before rules 5.
pub const OUTPUT_TOKENS_RULES_4: u64 = 2_000;

/// Longest path of an agent's file, in bytes.
pub const FILE_PATH_BYTES_MAX: usize = 1_024;
/// Most names in such a path, the first one (`outputs`) included.
pub const FILE_PATH_NAMES_MAX: usize = 16;
/// Longest path of a folder that is granted, in bytes.
pub const FOLDER_PATH_BYTES_MAX: usize = 1_024;
/// Most names in such a path.
pub const FOLDER_PATH_NAMES_MAX: usize = 64;
/// Most folders of one agent: each is a mount and a rule of every command.
pub const FOLDERS_MAX: usize = 64;
/// Most hosts that one agent may connect to: each is compared with every connection.
pub const HOST_RULES_MAX: usize = 64;
/// Most hosts that one call may name beside those that its agent has: what a person reads before a yes.
pub const HOSTS_ASKED_MAX: usize = 16;
/// Longest host of a connection, in bytes: a name of DNS has at most 253.
pub const HOST_BYTES_MAX: usize = 255;
/// Most connections of one call that its journal has one by one; of the others it has the sums.
pub const CALL_CONNECTIONS_MAX: u16 = 256;
/// Most sessions that one program may name. It is continued by the last one.
pub const CALL_SESSIONS_MAX: u8 = 16;
/// Most files that one tool call may write. Together they have at most as many bytes as one blob.
pub const CALL_FILES_MAX: usize = 256;
/// Longest pattern of an approval that is remembered, in bytes: what a person can read.
pub const APPROVAL_BYTES_MAX: usize = 1_024;
/// Most approvals that a tree remembers at the same time.
pub const APPROVALS_MAX: usize = 256;
/// Most files of one agent that are known to be removed: filling its folder also removes them there.
pub const REMOVED_FILES_MAX: usize = 4_096;
/// Default output files of one agent, sub-folders included: what a person can still look through.
pub const OUTPUT_FILES_MAX: u64 = 10;
/// Default total bytes of one agent's outputs: a megabyte is a long report.
pub const OUTPUT_BYTES_MAX: u64 = 1_000_000;

/// Longest tool output that a context holds whole, in characters. A longer one is reduced to head and tail.
pub const OFFLOAD_CHARS: usize = 2_048;
/// Most lines of a tool output that a context holds whole.
pub const OFFLOAD_LINES: usize = 50;
/// Largest head of a long tool output, in bytes.
pub const OFFLOAD_HEAD_BYTES: usize = 1_024;
/// Most lines of that head.
pub const OFFLOAD_HEAD_LINES: usize = 20;
/// Largest tail of a long tool output, in bytes. Head and tail together stay below what is shown whole, so they never
/// overlap.
pub const OFFLOAD_TAIL_BYTES: usize = 512;
/// Most lines of that tail.
pub const OFFLOAD_TAIL_LINES: usize = 10;
/// Most bytes of long tool outputs that are kept as files in one agent's workspace: one blob of the largest size, or
/// many small ones.
pub const OFFLOAD_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// How long a kept agent waits for a person after its answer.
pub const KEPT_MS: u64 = 30 * 24 * 60 * 60 * 1_000;
/// Default time a question waits for its answer: the person may have gone home.
pub const QUESTION_TIMEOUT_MS: u64 = 24 * 60 * 60 * 1_000;
/// How long a call waits by default until another one has filled the provider's prompt cache.
pub const CACHE_WAIT_MS: u64 = 10 * 1_000;
/// How long a provider surely keeps a cached prompt: the shortest time of those that we know.
pub const CACHE_KEPT_MS: u64 = 5 * 60 * 1_000;
/// The shortest prompt that providers cache, in tokens.
pub const CACHED_TOKENS_MIN: u64 = 1_024;
/// Default time a wait for children or messages lasts: nothing waits forever.
pub const WAIT_TIMEOUT_MS: u64 = 60 * 60 * 1_000;
/// Default active time of a sub-agent: ten minutes in which at least one model or tool of its own runs.
pub const ACTIVE_MS: u64 = 10 * 60 * 1_000;
/// Longest timeout that may be requested: a year.
pub const TIMEOUT_MS_MAX: u64 = 365 * 24 * 60 * 60 * 1_000;

/// Most messages that a rollback restores into a window: about two megabytes of headers in a journal.
pub const RESTORED_MESSAGES_MAX: usize = 65_536;
/// Turns of one agent between automatic checkpoints: often enough to lose little, rarely enough to cost little.
pub const CHECKPOINT_EVERY_TURNS: u32 = 10;
/// How long every automatic checkpoint is kept, in milliseconds: a day, while people still remember what went wrong
/// when.
pub const CHECKPOINT_EACH_KEPT_MS: u64 = 24 * 60 * 60 * 1_000;
/// Of an agent's older automatic checkpoints, one in this many is kept: coarse, but never far from any turn.
pub const CHECKPOINT_KEPT_EVERY: u32 = 10;
/// How long an automatic checkpoint is kept at most, in milliseconds: 30 days. Name a checkpoint to keep it longer.
pub const CHECKPOINT_KEPT_MS: u64 = 30 * 24 * 60 * 60 * 1_000;
/// Most checkpoints of a home, of all kinds, beyond which automatic ones are dropped: a list reads them all.
pub const CHECKPOINTS_KEPT_MAX: usize = 1_000;
/// Most times that cleaning starts over because a tree was written meanwhile.
pub const CLEAN_TRIES_MAX: usize = 8;

/// Longest chain of branches: reading the first event of the last one visits each of them.
pub const LINEAGE_MAX: usize = 64;

/// Most batches in one page of a journal.
pub const PAGE_BATCHES_MAX: usize = 1_024;
/// Most trees in one page of the list of trees.
pub const HEADS_MAX: usize = 1_024;
/// Bytes of one page of a journal, so a long journal is never in memory as a whole. A larger batch is a page by
/// itself.
pub const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Largest batch, in bytes: far above what the other bounds allow.
pub const BATCH_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Largest blob, in bytes: a tool's whole output. Anything larger belongs in a workspace file.
pub const BLOB_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Most bytes of blobs in one append: queued appends are held in memory.
pub const BLOBS_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Most blobs in one append.
pub const BLOBS_MAX: usize = 1_024;
/// Most files that a tree is resumed from: a script for each of its models, and a few more.
pub const SOURCE_FILES_MAX: usize = 2 * NAMES_MAX;
/// Most bytes of all those files: they come with the first batch, beside long prompts.
pub const SOURCE_FILES_BYTES_MAX: u64 = 48 * 1024 * 1024;
/// Longest key in the catalog, in bytes: a name and an id.
pub const CATALOG_KEY_BYTES_MAX: usize = 512;
/// Longest value in the catalog, in bytes: it serves lists, the journal has the rest.
pub const CATALOG_VALUE_BYTES_MAX: usize = 4 * 1024;
/// Most rows of the catalog that one append changes.
pub const CATALOG_ROWS_MAX: usize = 1_024;

/// Most sources listed when several agents' findings are merged.
pub const SOURCES_MAX: usize = 64;
/// Longest text that counts as a source, in bytes: a long link.
pub const SOURCE_BYTES_MAX: usize = 512;
/// Most bytes of such a list: it takes space in a window.
pub const SOURCES_BYTES_MAX: usize = 2_048;
/// Most completed children whose knowledge one agent keeps for another task; the latest ones.
pub const FINISHED_KEPT_MAX: usize = 8;

/// Most steps and groups of a graph in a tree file.
pub const GRAPH_NODES_MAX: usize = 100_000;
/// Most steps and groups of a graph that a model writes: more than it can keep track of.
pub const GRAPH_NODES_MODEL_MAX: usize = 1_000;
/// Deepest nesting of groups: a deeper one is unreadable.
pub const GRAPH_DEPTH_MAX: usize = 16;
/// Most problems of a graph that are listed at once.
pub const GRAPH_PROBLEMS_MAX: usize = 100;
/// Most names that one step reads as inputs.
pub const GRAPH_INPUTS_MAX: usize = 64;
/// Most further agents for one step whose agent failed.
pub const GRAPH_RETRIES_MAX: u32 = 10;
/// Most rounds of a loop in a graph.
pub const GRAPH_ROUNDS_MAX: u32 = 1_000;
/// Most copies of a step that vote.
pub const GRAPH_VOTERS_MAX: u32 = 100;
/// How many turns of a conversation an agent knows that it is handed to, if nothing else is said.
pub const DELEGATED_TURNS: u32 = 20;
/// Most instructions of people for one graph that runs.
pub const GRAPH_INSTRUCTIONS_MAX: usize = 16;
/// Longest of them, in bytes: every step that begins reads all of them.
pub const GRAPH_INSTRUCTION_BYTES_MAX: usize = 8 * 1024;
/// Most items of a list that a map runs over.
pub const GRAPH_ITEMS_MAX: usize = 100_000;
/// Most named values of a tree.
pub const VALUES_MAX: usize = 1_024;
/// Largest named value, in bytes.
pub const VALUE_BYTES_MAX: usize = 1_048_576;
/// Largest arguments of a tool call that writes a named value, in bytes: the value, its name and white space.
pub const VALUE_ARGS_BYTES_MAX: usize = VALUE_BYTES_MAX + 64 * 1024;
/// Most bytes of all named values of a tree.
pub const VALUES_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Longest condition or other expression of a graph, in bytes. A template is a text, so [`TEXT_BYTES_MAX`] is its limit.
pub const EXPRESSION_BYTES_MAX: usize = 4 * 1024;
/// Most names, constants, operators and filters in one source.
pub const EXPRESSION_NODES_MAX: usize = 512;
/// Most levels of parentheses, brackets and `not` in one source: parser and evaluator go that deep.
pub const EXPRESSION_DEPTH_MAX: usize = 16;
/// Most steps of one evaluation: a few milliseconds. Nodes, compared elements and bytes of text cost steps.
pub const EXPRESSION_STEPS_MAX: u64 = 1_000_000;
/// Bytes of text that cost one step.
pub const EXPRESSION_STEP_BYTES: usize = 16;
/// Largest value of an expression, in bytes of JSON, and the largest text in between.
pub const EXPRESSION_VALUE_BYTES_MAX: usize = 1_048_576;
/// Deepest value that an expression compares or copies: what a JSON parser reads by default.
pub const EXPRESSION_VALUE_DEPTH_MAX: usize = 128;
