//! Every bound of the kernel, by name, with its reason. A field of the definition may narrow or widen those that
//! are defaults; the rest hold for every tree.

/// Default depth below the root: enough for lead, worker, helper; deeper trees mostly repeat themselves.
pub const DEPTH_MAX: u32 = 3;
/// Default live children of one agent: more than a model can follow.
pub const CHILDREN_MAX: u32 = 16;
/// Default agents of one tree, ended ones included: a runaway is stopped before it is expensive.
pub const AGENTS_MAX: u32 = 1_000;
/// Default effects of one tree that run at the same time: polite to providers, plenty for people.
pub const PARALLEL_MAX: u32 = 64;
/// Largest depth a definition may allow.
pub const DEPTH_CAP: u32 = 100_000;
/// Largest number of children or agents a definition may allow.
pub const AGENTS_CAP: u32 = 1_000_000;

/// Largest goal, message, answer, instruction or inline result, in bytes. More is a blob and a reference.
pub const TEXT_BYTES_MAX: usize = 32 * 1024;
/// Largest reason, note or name, in bytes: it is for people to read in one line.
pub const NOTE_BYTES_MAX: usize = 1_024;
/// Most roles or models in one definition.
pub const NAMES_MAX: usize = 256;
/// Most tags of one tree: they stand on every event that is shown.
pub const TAGS_MAX: usize = 32;
/// Longest name of a tag, in bytes: a word.
pub const TAG_NAME_BYTES_MAX: usize = 64;
/// Longest tag, in bytes: an id or a short line.
pub const TAG_BYTES_MAX: usize = 256;

/// Default turns of one agent: a model that calls tools for ever is stopped here.
pub const TURNS_MAX: u32 = 20;
/// Largest number of turns a definition may allow.
pub const TURNS_CAP: u32 = 1_000_000;
/// Most tool calls in one answer; what is beyond is not called, and not in the journal.
pub const ASKS_MAX: usize = 1_000;
/// Largest arguments of all tool calls of one answer together, in bytes.
pub const ASKS_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Most tokens that name whoever a message is from.
pub const SENDER_TOKENS: u64 = 64;
/// Most tokens that say who knows what an agent is told of another's context.
pub const TOLD_TOKENS: u64 = SENDER_TOKENS + 16;
/// Longest id or name that a model may give a tool call, in bytes.
pub const NAME_BYTES_MAX: usize = 128;
/// Largest arguments of one tool call, in bytes.
pub const ARGS_BYTES_MAX: usize = 256 * 1024;
/// Longest notice that the kernel itself writes into a context, in bytes; it counts as so many tokens.
pub const NOTICE_BYTES_MAX: usize = 512;
/// Tokens that a message costs beside its text, at most: who speaks, where it begins and ends. OpenAI's chat form takes
/// three and the role, and three once for the beginning of the answer; a message of an agent has one more for the
/// sender's name, which counts as [`SENDER_TOKENS`].
pub const MESSAGE_TOKENS: u64 = 8;
/// Tokens that a tool costs beside its name, description and schema, at most. OpenAI's form takes seven, and twelve once
/// for the end of the list; its own way to write a schema is shorter than the JSON that is counted.
pub const TOOL_TOKENS: u64 = 24;
/// Share of what a model takes that a window may have, in percent: the rest is for the answer, and for what a provider
/// counts otherwise.
pub const WINDOW_PERCENT: u64 = 85;
/// Share of a window that is left when it was full and something had to go, in percent: the next packets begin with the
/// same bytes until it is full again.
pub const TRIM_PERCENT: u64 = 80;
/// Share of a window for telling in short what was left out of it, in percent.
pub const FOLDED_PERCENT: u64 = 10;
/// Least tokens for that: how many messages were left out.
pub const FOLDED_TOKENS_MIN: u64 = 64;
/// Of these, tokens that stand around a summary of a model: what it is, where it was cut, and what follows it.
pub const SUMMARY_AROUND_TOKENS: u64 = 96;
/// Least tokens for a summary: fewer say nothing.
pub const SUMMARY_TOKENS_MIN: u64 = 16;
/// Characters that a model is asked to keep its summary to for each token that it may have: less than a token mostly
/// has, so that the end is not cut off.
pub const SUMMARY_CHARS_PER_TOKEN: u64 = 3;
/// Smallest window: a goal and a line of answer.
pub const WINDOW_TOKENS_MIN: u64 = 256;
/// Default images of one packet.
pub const IMAGES_MAX: u32 = 5;
/// Most tokens that one image has if nobody counted: what providers bill for the largest that they do not shrink. A model
/// that takes more for one says so.
pub const IMAGE_TOKENS: u64 = 1_600;
/// Most images and files of one message, or of all that a child is given: more than anybody looks at.
pub const PARTS_MAX: usize = 16;
/// Largest image or file of a message, in bytes: above what providers take of one.
pub const PART_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Most bytes of all images and files of one message: what providers take of a request. Half of what one append may
/// bring along, so that a tool's long text has room beside them.
pub const PARTS_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Most turns that a child may be told of its parent's conversation.
pub const FORK_TURNS_MAX: u32 = 1_000;
/// Most agents that one message of the machine goes to, and most messages that a child is given at its birth.
pub const SHARES_MAX: usize = 256;
/// Largest `output_schema`, in bytes: it is told whole in a first message, and checked against every answer.
pub const SCHEMA_BYTES_MAX: usize = 16 * 1024;
/// Longest answer that is checked against a schema, in bytes. A longer one does not fit.
pub const CHECKED_BYTES_MAX: usize = 256 * 1024;
/// Most steps of checking one answer: a value against a part of a schema is one, and more if either is long. A schema
/// whose parts refer to each other could ask for any number.
pub const CHECK_STEPS_MAX: u64 = 1_000_000;
/// Deepest that parts of a schema may lead to others while one answer is checked.
pub const CHECK_DEPTH_MAX: usize = 256;
/// Most bytes that a pattern of a schema may take when it is compiled.
pub const PATTERN_BYTES_MAX: usize = 256 * 1024;
/// Most times that an agent is asked to repair one answer: what it does not get right then it does not get right.
pub const REPAIRS_MAX: u8 = 2;
/// Most things that are wrong with an answer of which its agent is told.
pub const MISMATCHES_SHOWN_MAX: usize = 3;
/// Longest description of one of them, in bytes.
pub const MISMATCH_BYTES_MAX: usize = 160;
/// Longest time that a model call is taken to last, in milliseconds: a day, far above what providers keep a stream open for.
/// A hold covers every rate that is active in that time.
pub const MODEL_CALL_MS_MAX: u64 = 24 * 60 * 60 * 1_000;
/// Most sets of rates that a price has, tiers and changes included: a price that changed every month for years.
pub const PRICE_RATES_MAX: usize = 256;
/// Default time one tool call may take.
pub const TOOL_TIMEOUT_MS: u64 = 60_000;
/// Most calls of one agent that have not ended: bounds a tool storm in one answer.
pub const OPEN_CALLS_MAX: usize = 1_024;
/// Most messages that wait for one agent.
pub const INBOX_MAX: usize = 1_024;
/// Most agents that are not there yet and have messages waiting: more are mistakes in a name.
pub const UNBORN_MAX: usize = 256;

/// Most attempts at one call that meet a fault, every fallback included.
pub const ATTEMPTS_MAX: u32 = 4;
/// Most times one call is started again because its process died: it may be what kills it.
pub const LOSSES_MAX: u32 = 8;
/// First pause before a retry, in milliseconds; it doubles each time.
pub const BACKOFF_FIRST_MS: u64 = 500;
/// Longest pause before a retry that we choose ourselves, in milliseconds.
pub const BACKOFF_MAX_MS: u64 = 30_000;
/// Longest pause a provider may ask for; a longer one is a fault that no retry mends.
pub const RETRY_AFTER_MAX_MS: u64 = 600_000;

/// Default share of cost and tokens that an agent's descendants must leave for its own answer, in percent.
pub const ANSWER_RESERVE_PERCENT: u8 = 10;
/// Largest answer reserve, in percent: children must be left something.
pub const ANSWER_RESERVE_PERCENT_MAX: u8 = 90;
/// Smallest output cap that `on_low: shrink` may choose: fewer tokens answer nothing.
pub const OUTPUT_TOKENS_MIN: u64 = 16;
/// Smallest output cap that an ordinary turn is shrunk to where its full one does not fit: a long paragraph.
pub const OUTPUT_TOKENS_SHRUNK: u64 = 1_024;
/// Smallest output cap of an agent's last call: fewer tokens are no answer.
pub const WRAP_UP_OUTPUT_TOKENS_MIN: u64 = 256;
/// Most tokens of what tells an agent that a call is its last.
pub const WRAP_UP_TOKENS: u64 = 128;
/// Input tokens beyond its first packet that an agent's reserve pays for: what its children returned, in short.
pub const RESERVE_INPUT_TOKENS: u64 = 2_048;
/// Output tokens that an agent's reserve pays for.
pub const RESERVE_OUTPUT_TOKENS: u64 = 1_024;
/// Longest time before its deadline at which an agent begins to wrap up, in milliseconds; it is a tenth of its time if
/// that is less.
pub const WRAP_UP_MS_MAX: u64 = 60_000;
/// Shortest time in which an agent wraps up before its deadline at all, in milliseconds.
pub const WRAP_UP_TIMEOUT_MS_MIN: u64 = 10_000;
/// Most children that a ceiling stopped of which their parent is told by name when it is topped up.
pub const LOST_NAMED_MAX: usize = 16;
/// Default output cap of one model call.
pub const OUTPUT_TOKENS: u64 = 2_000;

/// Default files that one agent may have among its outputs, in sub-folders too: what a person still looks through.
pub const OUTPUT_FILES_MAX: u64 = 10;
/// Default bytes of all outputs of one agent together: a megabyte is a long report.
pub const OUTPUT_BYTES_MAX: u64 = 1_000_000;

/// Longest tool output that a context holds whole, in characters. Of a longer one it holds head and tail.
pub const OFFLOAD_CHARS: usize = 2_048;
/// Most lines of a tool output that a context holds whole.
pub const OFFLOAD_LINES: usize = 50;
/// Largest head of a long tool output, in bytes: what it is.
pub const OFFLOAD_HEAD_BYTES: usize = 1_024;
/// Most lines of that head.
pub const OFFLOAD_HEAD_LINES: usize = 20;
/// Largest tail of a long tool output, in bytes: how it ended. With the head it is less than what is shown whole, so
/// that the two never overlap.
pub const OFFLOAD_TAIL_BYTES: usize = 512;
/// Most lines of that tail.
pub const OFFLOAD_TAIL_LINES: usize = 10;
/// Most bytes of long tool outputs that lie as files in one agent's workspace: one of the largest blob, or many.
pub const OFFLOAD_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Default time a question waits for its answer: a person may have gone home.
pub const QUESTION_TIMEOUT_MS: u64 = 24 * 60 * 60 * 1_000;
/// Default time a wait for children or messages lasts: nothing waits for ever.
pub const WAIT_TIMEOUT_MS: u64 = 60 * 60 * 1_000;
/// How long a sub-agent may work by default: ten minutes, in which at least one model or tool of its own runs.
pub const ACTIVE_MS: u64 = 10 * 60 * 1_000;
/// Longest timeout anyone may ask for: a year.
pub const TIMEOUT_MS_MAX: u64 = 365 * 24 * 60 * 60 * 1_000;

/// Most messages that a rollback brings back into a window: about two megabytes of headers in a journal.
pub const RESTORED_MESSAGES_MAX: usize = 65_536;
/// Turns of one agent from one automatic checkpoint to the next: often enough that little is lost by going back, and
/// seldom enough that nobody notices what it costs.
pub const CHECKPOINT_EVERY_TURNS: u32 = 10;
/// How long every automatic checkpoint is kept, in milliseconds: a day, in which people still know what went wrong when.
pub const CHECKPOINT_EACH_KEPT_MS: u64 = 24 * 60 * 60 * 1_000;
/// Of older automatic checkpoints, one in so many of an agent is kept: coarse, but never far from any turn.
pub const CHECKPOINT_KEPT_EVERY: u32 = 10;
/// How long any automatic checkpoint is kept, in milliseconds: 30 days. What is wanted for longer deserves a name.
pub const CHECKPOINT_KEPT_MS: u64 = 30 * 24 * 60 * 60 * 1_000;
/// Most checkpoints of a home, of all kinds, for which automatic ones are still kept: a list reads them all.
pub const CHECKPOINTS_KEPT_MAX: usize = 1_000;
/// Most times that cleaning looks again because a tree was written meanwhile.
pub const CLEAN_TRIES_MAX: usize = 8;

/// Most branches of branches: reading the first event of the last one looks at each of them.
pub const LINEAGE_MAX: usize = 64;

/// Most batches that one page of a journal is read with.
pub const PAGE_BATCHES_MAX: usize = 1_024;
/// Most trees in one page of the list of trees.
pub const HEADS_MAX: usize = 1_024;
/// Bytes of one page of a journal: a long journal is never in memory as a whole. A larger batch is a page by itself.
pub const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Largest batch, in bytes: far above what the other bounds allow, and far below what hurts.
pub const BATCH_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Largest blob, in bytes: a tool's whole output. What is larger belongs in a file of the workspace.
pub const BLOB_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Most bytes of blobs in one append: what waits for the writer sits in memory.
pub const BLOBS_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Most blobs in one append.
pub const BLOBS_MAX: usize = 1_024;
/// Longest key in the catalog, in bytes: a name and an id.
pub const CATALOG_KEY_BYTES_MAX: usize = 512;
/// Longest value in the catalog, in bytes: it is for lists, the journal has the rest.
pub const CATALOG_VALUE_BYTES_MAX: usize = 4 * 1024;
/// Most rows of the catalog that one append changes.
pub const CATALOG_ROWS_MAX: usize = 1_024;

/// Most sources that are listed of what several agents found.
pub const SOURCES_MAX: usize = 64;
/// Longest source that counts as one, in bytes: a long link.
pub const SOURCE_BYTES_MAX: usize = 512;
/// Most bytes of such a list: it stands in a window.
pub const SOURCES_BYTES_MAX: usize = 2_048;
/// Most children that completed of which one agent keeps what they knew, for another task: the last ones.
pub const FINISHED_KEPT_MAX: usize = 8;
