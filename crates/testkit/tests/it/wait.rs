//! Waiting in line: a call that only other holds block waits, and is refused only if it can never fit.

use spinney_testkit::check;

/// V18: a call that other holds block waits, and starts as soon as they settle.
#[test]
fn v18_a_call_waits_for_other_holds_and_runs_when_they_settle() {
    let script = "call a $0.60\ncall b $0.60\ndone #1 $0.30";
    insta::assert_snapshot!(check("root $1.00 / a\nroot / b", script), @"
    #1 asked by a
    #1 started: held $0.60 tokens=600 steps=1
    #2 asked by b
    #2 waiting: budget of root
    #1 ended: done, spent $0.30 tokens=300 steps=1
    #2 started: held $0.60 tokens=600 steps=1
    root idle, spent $0.30 tokens=300 steps=1, held $0.60 tokens=600 steps=1, of $1.00
      a idle, spent $0.30 tokens=300 steps=1, of $1.00
      b running, held $0.60 tokens=600 steps=1, of $1.00
    ");
}

/// V18: waiting calls start in order; a small late one does not starve a large early one.
#[test]
fn v18_a_small_late_call_does_not_pass_a_large_early_one() {
    let script = "call a $0.60\ncall b $0.70\ncall c $0.20\ndone #1 $0.10\ndone #2 $0.10";
    insta::assert_snapshot!(check("root $1.00 / a\nroot / b\nroot / c", script), @"
    #1 asked by a
    #1 started: held $0.60 tokens=600 steps=1
    #2 asked by b
    #2 waiting: budget of root
    #3 asked by c
    #3 waiting: budget of root
    #1 ended: done, spent $0.10 tokens=100 steps=1
    #2 started: held $0.70 tokens=700 steps=1
    #3 started: held $0.20 tokens=200 steps=1
    #2 ended: done, spent $0.10 tokens=100 steps=1
    root idle, spent $0.20 tokens=200 steps=2, held $0.20 tokens=200 steps=1, of $1.00
      a idle, spent $0.10 tokens=100 steps=1, of $1.00
      b idle, spent $0.10 tokens=100 steps=1, of $1.00
      c running, held $0.20 tokens=200 steps=1, of $1.00
    ");
}

/// V18: a line in one branch does not block another branch that needs nothing from it.
#[test]
fn v18_a_line_in_one_branch_does_not_block_another() {
    let script = "call b $0.40\ncall c $0.40\ncall d $0.30";
    insta::assert_snapshot!(check("root $2.00 / a $0.50 / b\nroot / a / c\nroot / d", script), @"
    #1 asked by b
    #1 started: held $0.40 tokens=400 steps=1
    #2 asked by c
    #2 waiting: budget of a
    #3 asked by d
    #3 started: held $0.30 tokens=300 steps=1
    root idle, held $0.70 tokens=700 steps=2, of $2.00
      a idle, held $0.40 tokens=400 steps=1, of $0.50
        b running, held $0.40 tokens=400 steps=1, of $0.50
        c waiting: budget, of $0.50
      d running, held $0.30 tokens=300 steps=1, of $2.00
    ");
}

/// V18: it is refused only once it can never fit, because too little is left.
#[test]
fn v18_a_waiting_call_is_refused_once_it_can_never_fit() {
    let script = "call b $0.40\ncall c $0.20\ndone #1 $0.40";
    insta::assert_snapshot!(check("root $2.00 / a $0.50 / b\nroot / a / c", script), @"
    #1 asked by b
    #1 started: held $0.40 tokens=400 steps=1
    #2 asked by c
    #2 waiting: budget of a
    #1 ended: done, spent $0.40 tokens=400 steps=1
    #2 ended: refused (cost ceiling of `a`: limit $0.50, spent $0.40, held $0.00, asked $0.20: answer with what you have, or ask for less), spent nothing
    c ended: exhausted (cost of a), spent nothing
    root idle, spent $0.40 tokens=400 steps=1, of $2.00
      a idle, spent $0.40 tokens=400 steps=1, of $0.50
        b idle, spent $0.40 tokens=400 steps=1, of $0.50
        c exhausted
    ");
}

/// V18: a call that only lent amounts block is refused at once: it is unknown when they return.
#[test]
fn v18_what_only_lent_amounts_block_is_refused() {
    let script = "call b $0.30\nfinish c ok";
    insta::assert_snapshot!(check("root $2.00 / a $1.00 / b\nroot / a / c $0.80 lend", script), @"
    #1 asked by b
    #1 ended: refused (cost ceiling of `a`: limit $1.00, spent $0.00, held $0.00, lent $0.80, asked $0.30: answer with what you have, or ask for less), spent nothing
    c ended: completed, spent nothing
    root idle, of $2.00
      a idle, of $1.00
        b idle, of $1.00
        c completed
    ");
}

/// V18: tokens and steps are waited for like money.
#[test]
fn v18_tokens_and_steps_are_waited_for_too() {
    let tokens = "call a $0.60\ncall b $0.60\ndone #1 $0.30";
    insta::assert_snapshot!(check("root tokens=1000 / a\nroot / b", tokens), @"
    #1 asked by a
    #1 started: held $0.60 tokens=600 steps=1
    #2 asked by b
    #2 waiting: budget of root
    #1 ended: done, spent $0.30 tokens=300 steps=1
    #2 started: held $0.60 tokens=600 steps=1
    root idle, spent $0.30 tokens=300 steps=1, held $0.60 tokens=600 steps=1, of tokens=1000
      a idle, spent $0.30 tokens=300 steps=1, of tokens=1000
      b running, held $0.60 tokens=600 steps=1, of tokens=1000
    ");
    let steps = "call a $0.10\ncall b $0.10\nfailed #1 stopped";
    insta::assert_snapshot!(check("root steps=1 / a\nroot / b", steps), @"
    #1 asked by a
    #1 started: held $0.10 tokens=100 steps=1
    #2 asked by b
    #2 waiting: budget of root
    #1 ended: failed (Stopped), spent nothing
    #2 started: held $0.10 tokens=100 steps=1
    root idle, held $0.10 tokens=100 steps=1, of steps=1
      a idle, of steps=1
      b running, held $0.10 tokens=100 steps=1, of steps=1
    ");
}

/// V18: a cancelled agent leaves the line, and those behind it move up.
#[test]
fn v18_a_cancelled_agent_leaves_the_line() {
    let script = "call a $0.60\ncall b $0.70\ncall c $0.20\ncancel b";
    insta::assert_snapshot!(check("root $1.00 / a\nroot / b\nroot / c", script), @"
    #1 asked by a
    #1 started: held $0.60 tokens=600 steps=1
    #2 asked by b
    #2 waiting: budget of root
    #3 asked by c
    #3 waiting: budget of root
    #2 ended: cancelled, spent nothing
    b ended: cancelled (), spent nothing
    #3 started: held $0.20 tokens=200 steps=1
    root idle, held $0.80 tokens=800 steps=2, of $1.00
      a running, held $0.60 tokens=600 steps=1, of $1.00
      b cancelled
      c running, held $0.20 tokens=200 steps=1, of $1.00
    ");
}

/// V18: a failed attempt returns its hold, so waiting calls start before its retry does.
#[test]
fn v18_a_failed_attempt_lets_the_line_move() {
    let script = "call a $0.60\ncall b $0.60\nfailed #1 rate_limit after=1s\npass 1s\ndone #2 $0.10";
    insta::assert_snapshot!(check("root $1.00 / a\nroot / b", script), @"
    #1 asked by a
    #1 started: held $0.60 tokens=600 steps=1
    #2 asked by b
    #2 waiting: budget of root
    #1 attempt failed: RateLimit, spent nothing
    #1 waiting: backoff until 2000
    #2 started: held $0.60 tokens=600 steps=1
    #1 waiting: budget of root
    #2 ended: done, spent $0.10 tokens=100 steps=1
    #1 started again (2): held $0.60 tokens=600 steps=1 retries=1
    root idle, spent $0.10 tokens=100 steps=1, held $0.60 tokens=600 steps=1 retries=1, of $1.00
      a running, held $0.60 tokens=600 steps=1 retries=1, of $1.00
      b idle, spent $0.10 tokens=100 steps=1, of $1.00
    ");
}
